"""What clients of a process do, over and over: write, read, follow, drop.

Each is the short form of what an adapter does for a statement, over the same parts.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from evertide.adapter.reading.timestamp import select_as_of
from evertide.adapter.writing.group_commit import NotTheUpper
from evertide.persist.coding.parts import table_to_columns
from evertide.persist.contents import Contents
from evertide.persist.faults import BelowSince, StoreFailing, StoreFull
from evertide.persist.machine import Refused
from evertide.persist.snapshot import snapshot_table, table_snapshot_table
from evertide.persist.state import (
    Changed,
    ShardChange,
    ShardState,
    existing,
    release_hold,
    set_hold,
)
from evertide.persist.txn import TableWrite, forget_table, register_table
from evertide.vocab.datum import Row
from evertide.vocab.errors import SerializationFailure, UndefinedTable
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timeline, Timestamp, step_back, step_forward
from tests.sim.history import (
    DESC,
    Diffs,
    Followed,
    Forgot,
    Held,
    History,
    Read,
    Rows,
    Write,
    require,
)
from tests.sim.node import MAX_SKEW_MS, Node
from tests.sim.stored import COUNTERS, Collection

OPTIMISTIC_ATTEMPTS = 3
MAX_ATTEMPTS = 30


@dataclass(slots=True)
class Client:
    """One who works with a process. `pause_s` is the mean time between two statements."""

    node: Node
    history: History
    rng: random.Random
    tables: Sequence[ShardId]
    # All that may be read as of any time.
    readable: Sequence[Collection]
    pause_s: float
    # Set when the day is over: statements under way are finished, no new ones begun.
    closing: asyncio.Event
    # Rows that are there for certain, and that nobody else deletes.
    written: list[tuple[ShardId, Row]] = field(default_factory=list)

    @property
    def moment(self) -> int:
        return self.node.place.loop.moment

    async def think(self) -> bool:
        """Wait a little; False when it is time to go."""
        await asyncio.sleep(self.rng.expovariate(1 / self.pause_s))
        return not self.closing.is_set()

    def seen(self, contents: Contents, shard_id: ShardId) -> Read:
        """What was seen, for the record."""
        rows = Counter(dict(contents.rows))
        return Read(self.node.process.name, shard_id, contents.as_of, rows)

    def invoke(self, operation: int, diffs: dict[ShardId, Diffs]) -> Write:
        """A write, for the record."""
        write = Write(
            operation=operation,
            process=self.node.process.name,
            epoch=self.node.epoch,
            diffs=diffs,
            invoked=self.moment,
            seen_before=self.history.seen,
        )
        self.history.invoke(write)
        return write

    def acknowledge(self, write: Write, write_ts: Timestamp) -> None:
        self.node.place.readings.applied(Timeline.EPOCH_MS, write_ts)
        self.history.acknowledge(write, write_ts)


async def over_and_over(statement: Callable[[Client], Awaitable[None]], client: Client) -> None:
    """A full or failing store concerns the statement that met it, and no other."""
    while await client.think():
        try:
            await statement(client)
        except (StoreFull, StoreFailing) as fault:
            client.node.place.loop.note(f"told: {fault}")


async def write_tables(client: Client) -> None:
    """INSERT and DELETE of several tables in one transaction."""
    rng, operation = client.rng, client.history.next_operation()
    tables = rng.sample(client.tables, rng.randint(1, len(client.tables)))
    row: Row = ("row", rng.randrange(4), operation)
    diffs: dict[ShardId, list[tuple[Row, int]]] = {table: [(row, 1)] for table in tables}
    if client.written and rng.random() < 0.4:
        table, gone = client.written.pop(rng.randrange(len(client.written)))
        diffs.setdefault(table, []).append((gone, -1))
    if rng.random() < 0.2:
        filler = range(rng.randrange(12))
        diffs[tables[0]] += [(("filler", number, operation), 1) for number in filler]
    write = client.invoke(operation, dict(diffs))
    writes = {table: TableWrite(DESC, rows) for table, rows in diffs.items()}
    try:
        write_ts = await client.node.writes.write(writes, {})
    except (UndefinedTable, SerializationFailure, StoreFull):
        write.refused = True
    else:
        client.acknowledge(write, write_ts)
        client.written += [(table, row) for table in tables]


async def increment(client: Client) -> None:
    """UPDATE counters SET value = value + 1: nobody's increment may be lost."""
    for attempt in range(MAX_ATTEMPTS):
        if attempt < OPTIMISTIC_ATTEMPTS:
            done = await _increment_once(client)
        else:
            async with client.node.writes.lock:
                done = await _increment_once(client)
        if done:
            break


async def _increment_once(client: Client) -> bool:
    node = client.node
    upper = await node.txns.upper()
    try:
        contents = await node.txns.table_contents(COUNTERS, DESC, step_back(upper))
    except BelowSince:
        return False  # others were so quick that this is history already
    old: list[tuple[Row, int]] = [(row, -diff) for row, diff in contents.rows]
    operation = client.history.next_operation()
    value = max((int(str(row[1])) for row, _ in contents.rows), default=0)
    diffs = [*old, (("counter", value + 1, operation), 1)]
    write = client.invoke(operation, {COUNTERS: diffs})
    try:
        outcome = await node.writes.write_if({COUNTERS: TableWrite(DESC, diffs)}, {}, upper)
    except StoreFull:
        write.refused = True
        raise
    if isinstance(outcome, NotTheUpper):
        write.refused = True
        return False
    client.acknowledge(write, outcome)
    return True


async def read_newest(client: Client) -> None:
    """SELECT from several collections, strict serializable."""
    node, rng = client.node, client.rng
    some = rng.sample(client.readable, rng.randint(1, min(3, len(client.readable))))
    imports = [one.imported for one in some]
    seen_before = client.history.seen
    for _ in range(MAX_ATTEMPTS):
        read_ts = await node.oracle.read_ts(Timeline.EPOCH_MS)
        as_of = select_as_of(oracle_read_ts=read_ts, sinces=await node.storage.sinces(imports))
        if as_of == EMPTY_FRONTIER:
            return  # dropped for good
        try:
            hold = await node.storage.hold(imports, as_of)
        except BelowSince:
            continue  # since moved in between
        with hold:
            try:
                reads = [await _read(client, one, as_of) for one in some]
            except BelowSince:
                # The lease ran out: this process was frozen, or its clock was turned.
                continue
        # Others must not be able to see less than this afterwards.
        while await node.oracle.read_ts(Timeline.EPOCH_MS) < as_of:
            await asyncio.sleep(0.05)
        client.history.read_newest(seen_before, as_of, reads)
        break


async def _read(client: Client, collection: Collection, as_of: Timestamp) -> Read:
    contents = await client.node.storage.contents(collection.imported, as_of)
    require(contents.as_of == as_of, "contents are of the time asked for")
    return client.seen(contents, collection.shard_id)


async def read_columns(client: Client, collection: Collection, as_of: Timestamp) -> Read:
    """The same by another way: columns, without an object per row."""
    node, shard_id = client.node, collection.shard_id
    if collection.imported.is_table:
        table = await table_snapshot_table(node.client, node.txns, shard_id, DESC, as_of)
    else:
        table = await snapshot_table(node.client, shard_id, DESC, as_of)
    rows: Rows = Counter()
    for update in table_to_columns(DESC, table).updates():
        require(update.ts == as_of, "contents are of the time asked for")
        rows[update.row] += update.diff
    return Read(node.process.name, shard_id, as_of, rows)


async def read_history(client: Client) -> None:
    """SELECT ... AS OF, again and again at one timestamp, under a hold that keeps it readable."""
    collection = client.rng.choice(client.readable)
    held = await _take_hold(client, collection)
    if held is None:
        return
    for _ in range(client.rng.randint(1, 4)):
        if not _trusted(client, held):
            break
        try:
            by_columns = client.rng.random() < 0.1
            read = read_columns if by_columns and collection.imported.is_table else _read
            client.history.reads.append(await read(client, collection, held.hold_ts))
            await _read_on(client, collection, held)
        except BelowSince as error:
            require(not _trusted(client, held), f"a hold was not respected: {error}")
            break
        await client.think()
    held.released = client.moment
    await _change(client, held.shard_id, partial(release_hold, owner=held.owner))


async def _read_on(client: Client, collection: Collection, held: Held) -> None:
    """The updates since then, if there are any."""
    storage = client.node.storage
    lower, upper = step_forward(held.hold_ts), await storage.upper(collection.imported)
    if lower < upper:
        followed = Followed(client.node.process.name, held.shard_id, lower, lower)
        followed.add(await storage.updates(collection.imported, lower, upper), upper)
        client.history.followed.append(followed)


def _trusted(client: Client, held: Held) -> bool:
    return client.node.place.loop.time() < held.until_s


async def _take_hold(client: Client, collection: Collection) -> Held | None:
    """On a timestamp that is readable now; None if it was not quick enough."""
    storage = client.node.storage
    since = await storage.since(collection.imported)
    upper = await storage.upper(collection.imported)
    if upper <= since or since == EMPTY_FRONTIER:
        return None
    hold_ts = Timestamp(client.rng.randint(since, upper - 1))
    owner = f"reader-{client.history.next_operation()}"
    lease_ms = None if client.rng.random() < 0.2 else _lease_ms(client)
    return await _hold(client, collection.shard_id, owner, hold_ts, lease_ms)


def _lease_ms(client: Client) -> int:
    return client.rng.randint(MAX_SKEW_MS + 500, 3 * MAX_SKEW_MS)


async def _hold(
    client: Client, shard_id: ShardId, owner: str, hold_ts: Timestamp, lease_ms: int | None
) -> Held | None:
    """Take a hold, or move and renew it. None for the lease: it lasts until it is released."""
    node = client.node
    expires_ms = None if lease_ms is None else node.clock.now_ms() + lease_ms
    until_s = float("inf")
    if lease_ms is not None:
        until_s = node.place.loop.time() + (lease_ms - MAX_SKEW_MS) / 1_000
    hold = partial(set_hold, owner=owner, hold_ts=hold_ts, expires_ms=expires_ms)
    if not await _change(client, shard_id, hold):
        return None
    held = Held(shard_id, owner, hold_ts, client.moment, until_s)
    client.history.holds.append(held)
    return held


async def _change(
    client: Client, shard_id: ShardId, transition: Callable[[ShardState], Changed]
) -> bool:
    change = ShardChange(shard_id, existing(transition))
    return not isinstance(await client.node.client.machine.apply_all([change]), Refused)


async def follow(client: Client) -> None:
    """SUBSCRIBE to a table from some time on, under a lease that follows, for ever."""
    table = client.rng.choice([one for one in client.readable if one.imported.is_table])
    held = await _take_hold(client, table)
    if held is None:
        return
    lower = step_forward(held.hold_ts)
    followed = Followed(client.node.process.name, table.shard_id, lower, lower, listening=True)
    client.history.followed.append(followed)
    try:
        async for updates, upper in client.node.txns.table_listen(table.shard_id, DESC, lower):
            followed.add(updates, upper)
            if client.rng.random() < 0.3:
                held.released = client.moment
                moved = await _hold(
                    client, table.shard_id, held.owner, step_back(upper), _lease_ms(client)
                )
                held = moved or held
    except (BelowSince, StoreFull, StoreFailing) as fault:
        followed.listening = False
        if isinstance(fault, BelowSince) and held.released is None:
            require(not _trusted(client, held), f"a listener's hold was not respected: {fault}")


async def drop_and_restore(client: Client) -> None:
    """DROP TABLE, and somebody who brings it back if that is still possible."""
    node, table, invoked = client.node, client.rng.choice(client.tables), client.moment
    await node.client.append_all([], also=[forget_table(table)])
    client.history.forgot.append(Forgot(table, invoked, client.moment))
    await client.think()
    for one in client.tables:
        await node.client.append_all([], also=[register_table(one)])
