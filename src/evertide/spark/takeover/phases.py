"""The life of a takeover, as one replica lives it.

Every move is decided from what is durable, so a replica that starts anew begins with Staged and
finds its way: a shard that is frozen already is taken for frozen, one that has changed hands is
just written to.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from evertide.persist.state import (
    Changed,
    ShardChange,
    ShardState,
    WriterMismatch,
    append,
    existing,
    set_writer,
)
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp

# A new version that is late by no more than this keeps readers waiting for about as long.
LATE_S: Final = 0.05
# One that is later each time is taken as it is in the end.
MOST_MISSED: Final = 10


@dataclass(frozen=True, slots=True)
class Staged:
    """Compares, and writes nothing."""


@dataclass(frozen=True, slots=True)
class Aim:
    """Where the old version was at a moment, by the monotonic clock, for the new one to reach; how
    often it took too long to get there."""

    upper: Timestamp
    noted_s: float
    missed: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """The catalog has switched; whoever reads by what it said before reads at `covers` or below."""

    covers: Timestamp
    forward_time: bool
    # None: the new version has not been seen to lag behind the old one.
    aim: Aim | None = None


@dataclass(frozen=True, slots=True)
class Frozen:
    """The shard is this version's, and stands at `at` until the contents have been brought over."""

    at: Timestamp
    covers: Timestamp
    forward_time: bool


@dataclass(frozen=True, slots=True)
class Chosen:
    """The new contents begin at `begins`; from `masked_from` up to there reads fail.

    Where they never begin, the old ones hold for all times.
    """

    frozen_at: Timestamp
    begins: Timestamp
    masked_from: Timestamp


@dataclass(frozen=True, slots=True)
class Done:
    """The contents are brought over, by this replica or another; the shard's upper is known."""

    upper: Timestamp


Phase: TypeAlias = Staged | Waiting | Frozen | Chosen | Done


def keep_waiting(
    waiting: Waiting,
    *,
    old_known: Timestamp,
    own_frontier: Timestamp,
    as_of: Timestamp,
    now_s: float,
) -> Waiting | None:
    """How to go on waiting; None: the shard may be taken now.

    The old version must have got beyond every timestamp that somebody may have been promised its
    contents at, and beyond where the new one begins. The new one should be as far, or readers would
    wait for it. But it may read what always comes a little later than what the old one reads: then
    it is enough that it is late by a moment only, and in the end that it gets there at all.
    """
    beyond = max(waiting.covers, as_of)
    if own_frontier <= beyond or not (waiting.forward_time or old_known > beyond):
        return waiting
    if own_frontier >= old_known:
        return None
    aim = waiting.aim
    if aim is None:
        return replace(waiting, aim=Aim(old_known, now_s))
    if own_frontier < aim.upper:
        return waiting
    if now_s - aim.noted_s <= LATE_S or aim.missed >= MOST_MISSED:
        return None
    return replace(waiting, aim=Aim(old_known, now_s, aim.missed + 1))


def choose(frozen: Frozen, *, stands_until: Timestamp, as_of: Timestamp) -> Chosen:
    """Where the new contents begin, given how long the old ones have been concluded to hold."""
    begins = stands_until
    if frozen.forward_time:
        begins = max(begins, Timestamp(frozen.covers + 1), as_of)
    return Chosen(frozen.at, begins, stands_until)


def freeze(shard_id: ShardId, old: GlobalId, new: GlobalId, known: Timestamp) -> ShardChange:
    """Take the shard from the old version for good, at what is known of it.

    Where it is known further than stored, it stands still up to there; storing that first spares
    readers of those timestamps the wait. One that is the new version's already stays as it is.
    """
    taken = partial(_take, old=old, new=new, to=known, pending=True)
    return ShardChange(shard_id, existing(taken))


def seal(shard_id: ShardId, old: GlobalId, new: GlobalId) -> ShardChange:
    """Take a shard of which readers know for all times what it holds: it can hold nothing else.

    The view has changed hands then, so that nobody waits for that, and keeps the old contents.
    """
    taken = partial(_take, old=old, new=new, to=EMPTY_FRONTIER, pending=False)
    return ShardChange(shard_id, existing(taken))


def _take(
    state: ShardState, *, old: GlobalId, new: GlobalId, to: Timestamp, pending: bool
) -> Changed:
    if state.writer == new:
        return state
    if state.writer != old or state.pending is not None:
        return WriterMismatch(state.writer)
    if state.upper < to:
        advanced = append(state, lower=state.upper, upper=to, writer=old)
        if not isinstance(advanced, ShardState):
            return advanced
        state = advanced
    return set_writer(state, writer=new, expected_upper=state.upper, pending=pending)
