"""At which timestamp a new definition begins to show.

Readers may know of a view more than its shard says: while its inputs stand still, so does it. So
once the shard is frozen at a timestamp U, somebody may still have concluded that the old contents
hold at later timestamps. Whoever did so before the shard was frozen saw inputs that had not changed
up to there. Hence the new contents may begin at the first timestamp at or beyond U at which an
input of the old version changes, or, if none has changed, where the inputs are known no further;
and up to there the old contents are right by the old definition.

What an input is known up to must not be taken from how far it is known *now*: a view below, whose
own inputs have changed meanwhile, is known less far than it was. `stands_until` therefore goes down
to where the changes are, and gives a timestamp that never becomes less as time goes on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from evertide.dataflow.description import Derived, Import
from evertide.spark.source import Look
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp

# By shard, and from where on: the first timestamp at which it changed; None: it has not.
FirstChanges: TypeAlias = Mapping[tuple[ShardId, Timestamp], Timestamp | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """When does this collection change first, from this timestamp on?"""

    collection: Import
    from_ts: Timestamp

    @property
    def key(self) -> tuple[ShardId, Timestamp]:
        return (self.collection.shard_id, self.from_ts)


def unsettled(old: Import, look: Look) -> Import | None:
    """A view below the old version that is just changing hands itself, or is thought to.

    What it will hold is not decided yet, so nothing above it can be.
    """
    for below in _views_below(old):
        assert below.derived is not None
        state = look.state(below)
        if state.pending is not None or state.writer != below.derived.writer:
            return below
    return None


def questions(old: Import, look: Look, frozen_at: Timestamp) -> list[Asked]:
    """What `stands_until` must be told, beside the look itself."""
    asked: dict[tuple[ShardId, Timestamp], Asked] = {}
    for one in _asked(old, look, frozen_at):
        if not look.unchanged(one.collection, one.from_ts):
            asked[one.key] = one
    return list(asked.values())


def stands_until(old: Import, look: Look, frozen_at: Timestamp, changes: FirstChanges) -> Timestamp:
    """The first timestamp from `frozen_at` on at which the old version may hold something else
    than at the one before. Nobody can have concluded anything of it at or beyond that."""
    derived = old.derived
    if derived is None or not _inferred(derived, frozen_at):
        return frozen_at
    return max(frozen_at, _first(derived, look, frozen_at, changes))


def _first(derived: Derived, look: Look, from_ts: Timestamp, changes: FirstChanges) -> Timestamp:
    """When one of the inputs changes first, or is known no further."""
    found = EMPTY_FRONTIER
    for below in derived.inputs:
        changed = changes.get((below.shard_id, from_ts))
        found = min(found, _reach(below, look, changes) if changed is None else changed)
    return found


def _reach(collection: Import, look: Look, changes: FirstChanges) -> Timestamp:
    """How far anybody can have known it at any time before the look."""
    if collection.is_table:
        return look.upper(collection)
    own = look.state(collection).upper
    derived = collection.derived
    if derived is not None and derived.refresh is not None:
        return look.upper(collection)  # nothing happens to it before its next refresh
    if derived is None or not _inferred(derived, own):
        return own
    return max(own, _first(derived, look, own, changes))


def _inferred(derived: Derived, own_upper: Timestamp) -> bool:
    """Whether anything is ever concluded of a view beyond its shard's upper."""
    return not derived.by_time and own_upper > derived.as_of


def _asked(old: Import, look: Look, frozen_at: Timestamp) -> Iterator[Asked]:
    waiting = [(old, frozen_at)]
    seen: set[tuple[ShardId, Timestamp]] = set()
    while waiting:
        collection, from_ts = waiting.pop()
        derived = collection.derived
        if derived is None or not _inferred(derived, from_ts):
            continue
        for below in derived.inputs:
            yield Asked(below, from_ts)
            own = look.state(below).upper
            if not below.is_table and (below.shard_id, own) not in seen:
                seen.add((below.shard_id, own))
                waiting.append((below, own))


def _views_below(old: Import) -> Iterator[Import]:
    waiting = [] if old.derived is None else list(old.derived.inputs)
    seen: set[ShardId] = set()
    while waiting:
        one = waiting.pop()
        if one.derived is not None and one.shard_id not in seen:
            seen.add(one.shard_id)
            yield one
            waiting.extend(one.derived.inputs)
