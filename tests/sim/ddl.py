"""DDL: names come and go in the catalog, in the same store transactions as their shards."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from evertide.adapter.writing.shard_changes import shard_changes
from evertide.catalog.durable.codec import decode_object
from evertide.catalog.objects import Item, ObjectKind
from evertide.catalog.ops import DropItemsOp, NewTable, Op
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.persist.append import Appended
from evertide.persist.faults import StoreFull
from evertide.vocab.errors import SqlError
from evertide.vocab.timestamp import Timeline, Timestamp, step_back
from tests.catalog.samples import PUBLIC, create
from tests.sim.history import Ddl, Rows, require
from tests.sim.node import CATALOG
from tests.sim.truth import Truth
from tests.sim.work import Client

NAMES: Final = ("a", "b", "c")
_OPERATION: Final = re.compile(r"operation (\d+)")


async def change_catalog(client: Client) -> None:
    """CREATE TABLE, or DROP TABLE if there is one of that name."""
    node, history = client.node, client.history
    name, seen_before = client.rng.choice(NAMES), history.ddl_seen
    catalog = await node.catalog()
    snapshot = await catalog.current()
    require(
        snapshot.upper > seen_before,
        f"DDL up to {seen_before} was acknowledged, and a later statement is planned at"
        f" {snapshot.upper}",
    )
    item = snapshot.item_named(PUBLIC, name)
    ddl = Ddl(history.next_operation(), name, None if item is None else _operation(item))
    history.ddls.append(ddl)
    try:
        while True:
            result = transact(snapshot, [_op(ddl, item)], now_ms=node.clock.now_ms(), user="sim")
            outcome = await catalog.compare_and_append(
                result.updates,
                expected_upper=snapshot.upper,
                shard_changes=shard_changes(result, (), snapshot),
            )
            if isinstance(outcome, Appended):
                break
            # Somebody else was first: in the catalog, or with a shard of this very name.
            snapshot = await catalog.current()
    except (SqlError, StoreFull):
        ddl.refused = True
        return
    _acknowledge(client, ddl, step_back(outcome.upper))


def _op(ddl: Ddl, item: Item | None) -> Op:
    if item is not None:
        return DropItemsOp((item.item_id,))
    return create(ddl.name, NewTable(), sql=f"CREATE TABLE {ddl.name} operation {ddl.operation}")


def _acknowledge(client: Client, ddl: Ddl, write_ts: Timestamp) -> None:
    ddl.write_ts = write_ts
    client.node.place.readings.applied(Timeline.CATALOG, write_ts)
    client.history.ddl_seen = max(client.history.ddl_seen, write_ts)


def _operation(item: Item) -> int:
    found = _OPERATION.search(item.create_sql)
    assert found is not None, "every item here was made by an operation"
    return int(found[1])


async def audit_catalog(client: Client) -> None:
    """Somebody new finds what the others left, as a snapshot and as a log."""
    catalog = await client.node.catalog()
    snapshot = await catalog.current()
    client.history.catalog = snapshot
    events = await catalog.audit_events(step_back(snapshot.upper))
    numbers = [event.event_id for event in events]
    require(len(set(numbers)) == len(numbers), "audit events have numbers of their own")


def check_catalog(ddls: Sequence[Ddl], snapshot: Snapshot | None, truth: Truth) -> None:
    """Each change is there once at most, where its client was told it is; so are its shards."""
    shard, known = truth.shards[CATALOG], {ddl.operation: ddl for ddl in ddls}
    created: dict[int, Timestamp] = {}
    dropped: dict[int, Timestamp] = {}
    live: Counter[str] = Counter()
    items: dict[int, Item] = {}
    by_time = sorted(truth.by_timestamp(CATALOG).items())
    for ts, contents in shard.at([ts for ts, _ in by_time]):
        require(set(contents.values()) == {1}, f"a row of the catalog is not single at {ts}")
    for ts, rows in by_time:
        for item, diff in _items(rows):
            operation = _operation(item)
            require(operation in known, f"{item.name} was created by nobody")
            moments = created if diff > 0 else dropped
            require(operation not in moments, f"operation {operation} is in the catalog twice")
            moments[operation], items[operation] = ts, item
            live[item.name] += diff
        require(set(live.values()) <= {0, 1}, f"names are not unique at {ts}: {dict(live)}")
    for ddl in ddls:
        happened = created.get(ddl.operation) if ddl.drops is None else dropped.get(ddl.drops)
        if ddl.write_ts is not None:
            require(happened == ddl.write_ts, f"{ddl} is at {happened}")
        require(not (ddl.refused and ddl.drops is None and happened), f"{ddl} is at {happened}")
    for operation, item in items.items():
        assert item.shard_id is not None
        state = truth.shards[item.shard_id].state
        gone = operation in dropped
        require(state.forgotten == gone, f"{item.name} and its shard do not agree")
    if snapshot is not None:
        names = sorted(item.name for item in snapshot.items.values())
        require(snapshot.upper == shard.state.upper, "the last snapshot is the newest")
        require(names == sorted(live.elements()), f"{names} are there instead of {live}")


def _items(rows: Rows) -> list[tuple[Item, int]]:
    found = [(decode_object(row), n) for row, n in rows.items() if row[0] == ObjectKind.ITEM.value]
    return [(item, diff) for item, diff in found if isinstance(item, Item)]
