"""What must hold of the catalog, given what clients were told and what truly happened."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evertide.catalog.durable.codec import decode_object
from evertide.catalog.objects import AuditEvent, Item, MaterializedView, ObjectKind
from evertide.catalog.snapshot import Snapshot
from evertide.dataflow.description import hold_owner
from evertide.persist.state import ShardState
from evertide.vocab.ids import ItemId, ShardId
from evertide.vocab.timestamp import Timestamp
from tests.sim.catalog_clients import CatalogHistory, Followed, names_in
from tests.sim.catalog_kept import CatalogTruth, KeptCatalog
from tests.sim.history import Rows, require
from tests.sim.truth import Truth
from tests.support.ddl_accounts import Accounts, Audited, account, audited, kinds


def check_catalog(
    kept: KeptCatalog, told: CatalogHistory, last: Snapshot, events: Sequence[AuditEvent]
) -> Accounts:
    """Raise Violation or Unaccounted for the first promise that was broken."""
    truth = CatalogTruth(kept.place.store, kept.place.blob)
    changes = kept.changes(truth)
    for followed in told.followed:
        check_followed(followed, changes)
    check_shards(changes, kept.moments(truth), truth)
    accounts = account(_audited(events), told.ledger)
    require(
        names_in(last) == kinds(accounts.states[-1]),
        f"the catalog holds {names_in(last)} instead of {accounts.states[-1]}",
    )
    check_every_change_is_told(accounts, changes)
    return accounts


def _audited(events: Iterable[AuditEvent]) -> list[Audited]:
    found = (audited(e.event_id, e.user, e.event_type, e.object_type, e.details) for e in events)
    return [one for one in found if one is not None and one.user is not None]


def check_followed(followed: Followed, changes: Mapping[Timestamp, Rows]) -> None:
    """Every transaction once, whole, in order."""
    wanted = [
        (ts, rows) for ts, rows in sorted(changes.items()) if followed.first <= ts < followed.upper
    ]
    for (ts, rows), (found_ts, found) in zip(wanted, followed.changes, strict=False):
        require(
            (ts, rows) == (found_ts, found),
            f"{followed.process} was given {found} at {found_ts} instead of {rows} at {ts}",
        )
    require(
        len(wanted) == len(followed.changes),
        f"{followed.process} was given {len(followed.changes)} transactions of {len(wanted)}",
    )


def check_every_change_is_told(accounts: Accounts, changes: Mapping[Timestamp, Rows]) -> None:
    """What clients did is all that changed items: nothing came in without an event."""
    touching = [ts for ts, rows in changes.items() if any(_items(rows))]
    items = sum(change.statement.kind != "schema" for change in accounts.changes)
    require(
        items <= len(touching) <= len(accounts.changes),
        f"{len(touching)} transactions changed items, and {items} are known",
    )


@dataclass(frozen=True, slots=True)
class Moments:
    """A shard's states, each from its moment on."""

    states: Sequence[tuple[int, ShardState]]

    def at(self, moment: int) -> ShardState | None:
        """The state after what was done at that moment; None: there was no such shard."""
        before = [state for when, state in self.states if when <= moment]
        return before[-1] if before else None


def check_shards(
    changes: Mapping[Timestamp, Rows], moments: Mapping[Timestamp, int], truth: Truth
) -> None:
    """At the very moment a transaction is in, so is what it does to the shards of its items."""
    shards = {
        shard_id: Moments([(v.moment, v.state) for v in shard.versions])
        for shard_id, shard in truth.shards.items()
    }
    items: dict[ItemId, Item] = {}
    for ts, rows in sorted(changes.items()):
        came = {item.item_id: item for item, diff in _items(rows) if diff > 0}
        gone = {item.item_id: item for item, diff in _items(rows) if diff < 0}
        moment = moments[Timestamp(ts + 1)]
        for item in came.values():
            if item.item_id not in gone:
                _check_created(item, {**items, **came}, shards, moment)
        for item in gone.values():
            if item.item_id not in came:
                _check_dropped(item, items, shards, moment)
                del items[item.item_id]
        items |= came


def _check_created(
    item: Item, items: Mapping[ItemId, Item], shards: Mapping[ShardId, Moments], moment: int
) -> None:
    if item.shard_id is None:
        return
    require(item.shard_id in shards, f"{item.name} never had a shard")
    shard = shards[item.shard_id]
    require(shard.at(moment - 1) is None, f"{item.name} had a shard before it was there")
    state = shard.at(moment)
    require(state is not None and not state.forgotten, f"{item.name} came without its shard")
    if isinstance(item.definition, MaterializedView):
        for below in _stored_inputs(item, items):
            require(_holds(shards[below].at(moment), item), f"{item.name} does not hold {below}")


def _check_dropped(
    item: Item, items: Mapping[ItemId, Item], shards: Mapping[ShardId, Moments], moment: int
) -> None:
    if item.shard_id is None:
        return
    state = shards[item.shard_id].at(moment)
    require(state is not None and state.forgotten, f"{item.name} went, and its shard did not")
    if isinstance(item.definition, MaterializedView):
        for below in _stored_inputs(item, items):
            held = _holds(shards[below].at(moment), item)
            require(not held, f"{item.name} went, and still holds {below}")


def _stored_inputs(item: Item, items: Mapping[ItemId, Item]) -> list[ShardId]:
    below = (items[item_id].shard_id for item_id in item.depends_on if item_id in items)
    return [shard_id for shard_id in below if shard_id is not None]


def _holds(state: ShardState | None, item: Item) -> bool:
    owners = Counter() if state is None else Counter(hold.owner for hold in state.holds)
    return hold_owner(item.global_id) in owners


def _items(rows: Rows) -> list[tuple[Item, int]]:
    found = [(decode_object(row), n) for row, n in rows.items() if row[0] == ObjectKind.ITEM.value]
    return [(item, diff) for item, diff in found if isinstance(item, Item)]
