"""What a catalog transaction does to shards; pure.

Shards come and go with their items, and views and sinks hold back the history of their inputs: in
the same store transaction as the catalog append, so that no crash can part them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from evertide.catalog.objects import (
    DroppedItem,
    Index,
    Item,
    MaterializedView,
    NamedType,
    Replacement,
    Sink,
    Source,
    Subsource,
    Table,
    View,
)
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import TransactResult
from evertide.dataflow.description import Import, hold_owner
from evertide.persist.shelf import give_up, shelf_owner, shelve, unshelve
from evertide.persist.state import (
    DEFAULT_SINCE_LAG,
    Changed,
    ShardChange,
    ShardState,
    create,
    existing,
    forget,
    initial_state,
    release_hold,
    set_hold,
    set_since_lag,
)
from evertide.vocab.ids import ItemId, ShardId
from evertide.vocab.timestamp import Timestamp

# Reads begin at most so long before the upper, unless they ask for a time.
LEAST_SINCE_LAG: Final = 1_000


@dataclass(frozen=True, slots=True)
class ViewStart:
    """What a materialized view that comes back reads, and from where on it needs that."""

    imports: tuple[Import, ...]
    hold_ts: Timestamp


def shard_changes(
    result: TransactResult,
    imports: Sequence[Import],
    snapshot: Snapshot,
    returning: Mapping[ItemId, ViewStart] | None = None,
) -> list[ShardChange]:
    """One change per shard: a store transaction sets a shard once.

    `returning`: of every materialized view that was dropped, comes back, and needs what it reads.
    """
    changes: dict[ShardId, ShardChange] = {}
    unshelved = result.unshelved
    for item in result.created_items:
        dropped = unshelved.pop(item.item_id, None)
        if dropped is None:
            found = _created(item, imports)
        else:
            found = _returned(item, dropped, (returning or {}).get(item.item_id))
        for change in found:
            _add(changes, change)
    for purged in unshelved.values():
        for change in _given_up(purged):
            _add(changes, change)
    for item in _ended(result):
        for change in _dropped(item, snapshot, kept=item.item_id in result.shelved):
            _add(changes, change)
    for before, after in result.changed_items:
        for change in _changed(before, after, snapshot):
            _add(changes, change)
    return list(changes.values())


def _ended(result: TransactResult) -> list[Item]:
    """What is gone for good: a replacement that is applied goes on as a version of its target."""
    living = {version.global_id for _, item in result.changed_items for version in item.versions}
    return [item for item in result.dropped_items if item.global_id not in living]


def since_lag(item: Item) -> int:
    """How far the since of an item's shard trails its upper; never so little that reads under way
    would lose what they read."""
    return DEFAULT_SINCE_LAG if item.history_ms is None else max(item.history_ms, LEAST_SINCE_LAG)


def _created(item: Item, imports: Sequence[Import]) -> list[ShardChange]:
    match item.definition:
        case Table(shard_id=shard_id):
            return [create(shard_id, initial_state(since_lag=since_lag(item)))]
        case MaterializedView(replacement=Replacement(), as_of=as_of):
            return [_hold(i.shard_id, item, as_of) for i in imports]
        case MaterializedView(shard_id=shard_id, as_of=as_of):
            lag = since_lag(item)
            first = initial_state(since=as_of, writer=item.global_id, since_lag=lag)
            return [create(shard_id, first), *(_hold(i.shard_id, item, as_of) for i in imports)]
        case (
            Source(shard_id=str(shard_id), as_of=as_of) | Subsource(shard_id=shard_id, as_of=as_of)
        ):
            lag = since_lag(item)
            first = initial_state(since=as_of, writer=item.global_id, since_lag=lag)
            return [create(shard_id, first)]
        case Sink(as_of=as_of):
            return [_hold(i.shard_id, item, as_of) for i in imports]
        case View() | Index() | Source() | NamedType():
            return []


def _dropped(item: Item, snapshot: Snapshot, *, kept: bool) -> list[ShardChange]:
    """A dropped shard takes no more appends; what the item held back may be merged."""
    changes = []
    if item.shard_id is not None:
        gone = partial(shelve, owner=shelf_owner(item.item_id)) if kept else forget
        changes.append(ShardChange(item.shard_id, existing(gone), ends=True))
    for version in (item, item.outgoing):
        if version is not None and isinstance(version.definition, MaterializedView | Sink):
            changes.extend(_released(version, snapshot))
    return changes


def _returned(item: Item, dropped: DroppedItem, start: ViewStart | None) -> list[ShardChange]:
    """The shard goes on where it ended; or, of a view that is computed anew, another begins."""
    if item.shard_id is None:
        return []
    if item.shard_id != dropped.item.shard_id:
        assert start is not None, "a view is computed anew from what it reads"
        return [*_given_up(dropped), *_created(item, start.imports)]
    writer = None if isinstance(item.definition, Table) else item.global_id
    back = partial(unshelve, owner=shelf_owner(item.item_id), writer=writer)
    changes = [ShardChange(item.shard_id, existing(back))]
    if start is not None:
        changes += [_hold(one.shard_id, item, start.hold_ts) for one in start.imports]
    return changes


def _given_up(dropped: DroppedItem) -> list[ShardChange]:
    if dropped.item.shard_id is None:
        return []
    release = partial(give_up, owner=shelf_owner(dropped.item_id))
    return [ShardChange(dropped.item.shard_id, existing(release), ends=True)]


def _changed(before: Item, after: Item, snapshot: Snapshot) -> list[ShardChange]:
    """A version that no longer runs holds nothing back; that it will stop changes nothing yet."""
    changes = []
    if after.shard_id is not None and before.history_ms != after.history_ms:
        lag = partial(set_since_lag, since_lag=since_lag(after))
        changes.append(ShardChange(after.shard_id, existing(lag)))
    if before.outgoing is not None and after.outgoing is None:
        changes.extend(_released(before.outgoing, snapshot))
    return changes


def _released(item: Item, snapshot: Snapshot) -> list[ShardChange]:
    release = partial(release_hold, owner=hold_owner(item.global_id))
    below = (read.shard_id for read in snapshot.stored_inputs(item.reads))
    return [ShardChange(shard_id, existing(release)) for shard_id in below if shard_id is not None]


def _hold(shard_id: ShardId, item: Item, as_of: Timestamp) -> ShardChange:
    owner = hold_owner(item.global_id)
    return ShardChange(shard_id, existing(partial(set_hold, owner=owner, hold_ts=as_of)))


def _add(changes: dict[ShardId, ShardChange], change: ShardChange) -> None:
    """Put a change behind those that the shard has already."""
    earlier = changes.get(change.shard_id)
    if earlier is None:
        changes[change.shard_id] = change
        return

    def both(state: ShardState | None) -> Changed:
        between = earlier.transition(state)
        return change.transition(between) if isinstance(between, ShardState) else between

    ends = earlier.ends or change.ends
    changes[change.shard_id] = ShardChange(change.shard_id, both, ends)
