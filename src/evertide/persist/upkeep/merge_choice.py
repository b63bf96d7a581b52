"""Which batches to merge next; pure.

Batches are sorted into levels by size, each eight times the one below, without end. Eight
neighbours of one level or below become one batch of the next, so every update is rewritten about
once for each level, and a shard has a few batches of each. Small ones, which lie in the state, wait
until there are more, because they cost one store transaction to merge and nothing to read.

Levels alone would keep what was deleted from a large batch until seven others are as large. So all
batches from the oldest on become one as soon as half of their updates would cancel: what a shard
keeps of history beyond since is at most about as much as its contents. Every update of a rewritten
batch is then paid for by one that cancels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, islice, takewhile
from typing import Final

from evertide.persist.state import Batch, InlinePart, ShardState, allowed_since
from evertide.persist.upkeep.bucket_merge import BucketPlan, plan_buckets, weight
from evertide.persist.upkeep.claims import claimed_below
from evertide.persist.upkeep.merge import MERGED_INLINE_BYTES
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class MergeSizes:
    """The limits that decide when batches are merged, and how."""

    # The largest batch of the lowest level, and how many times that a level's batches are than
    # those below; also how many of a level make one of the next.
    level_bytes: int = 8 * 1024
    fanout: int = 8
    # What may lie in the state: batches of the lowest level, and bytes.
    inline_batches: int = 64
    inline_bytes: int = 32 * 1024
    # The newest batches are left alone: whoever follows the shard is about to read them, and would
    # have to read all that they were merged with.
    newest_batches: int = 8
    newest_bytes: int = 64 * 1024
    # A part of a merged batch, and how much of its inputs is in memory at a time.
    part_bytes: int = 16 * 1024**2
    step_bytes: int = 32 * 1024**2


SIZES: Final = MergeSizes()
_OVERFULL: Final = 4


@dataclass(frozen=True, slots=True)
class DueMerge:
    """Batches to replace by one in which times are raised to since."""

    batches: tuple[Batch, ...]
    since: Timestamp
    plan: BucketPlan

    @property
    def large(self) -> bool:
        """Whether it takes so long that others must not wait for it."""
        return self.plan.buckets > 1


def due_merge(state: ShardState, now_ms: int, sizes: MergeSizes = SIZES) -> DueMerge | None:
    """The merge to do next, of batches that nobody else is merging; None: there is no need."""
    since = allowed_since(state, now_ms)
    below = claimed_below(state, now_ms)
    if below is None:
        batches = choose_merge(state.batches, since, sizes)
    else:
        free = [batch for batch in state.batches if batch.lower >= below]
        batches = choose_by_size(_settled(free, sizes), sizes)
    return planned(batches, since, sizes) if batches else None


def planned(batches: Sequence[Batch], since: Timestamp, sizes: MergeSizes) -> DueMerge:
    """The merge of these batches."""
    parts = [part for batch in batches for part in batch.parts]
    plan = plan_buckets(parts, part_bytes=sizes.part_bytes, step_bytes=sizes.step_bytes)
    return DueMerge(tuple(batches), since, plan)


def choose_merge(
    batches: Sequence[Batch], since: Timestamp, sizes: MergeSizes = SIZES
) -> tuple[Batch, ...]:
    """The run of neighbours to merge next, out of all batches of a shard; empty if none is due."""
    settled = _settled(batches, sizes)
    return choose_by_size(settled, sizes) or _choose_cancelling(settled, since, sizes)


def choose_by_size(batches: Sequence[Batch], sizes: MergeSizes) -> tuple[Batch, ...]:
    """Small ones first: that is cheap, and leaves fewer batches to the next level."""
    # Weighed once: writers wait while this is gone through.
    weights = [_weight(batch) for batch in batches]
    longest = max(_runs(weights, sizes.level_bytes), key=len, default=range(0))
    if len(longest) >= sizes.inline_batches:
        return tuple(batches[longest.start : longest.stop])
    if _inline_bytes(batches) > sizes.inline_bytes:
        # By where they lie, not by weight: a large batch in the state presses on it too.
        fullest = max(_inline_runs(batches), key=_inline_bytes, default=())
        if len(fullest) > 1 or _inline_bytes(fullest) > MERGED_INLINE_BYTES:
            return fullest
    below, largest = sizes.level_bytes, max(weights, default=0)
    while below < largest:
        limit = below * sizes.fanout
        for run in _runs(weights, limit):
            level = [place for place in run if weights[place] > below]
            if len(level) >= sizes.fanout:
                # What is small and comes last may wait for others like it.
                return tuple(batches[run.start : level[-1] + 1])
        below = limit
    return ()


def _choose_cancelling(
    batches: Sequence[Batch], since: Timestamp, sizes: MergeSizes
) -> tuple[Batch, ...]:
    """All batches up to since, if half of their updates would cancel: each that takes a row away
    does so with another one.

    The oldest batch only counts if it was made with an earlier since: what is left in it otherwise
    has nothing to cancel with.
    """
    run = tuple(takewhile(lambda batch: batch.upper - 1 <= since, batches))
    if sum(map(_weight, run)) <= sizes.level_bytes:
        return ()
    oldest, *others = run
    taking = sum(b.rows if b.retractions is None else b.retractions for b in others)
    if oldest.since < oldest.upper - 1:
        taking += oldest.retractions or 0
    return run if taking and 4 * taking >= sum(batch.rows for batch in run) else ()


def is_overfull(state: ShardState, sizes: MergeSizes = SIZES) -> bool:
    """Whether far more lies in the state than would, if merges kept up with appends."""
    inline_bytes = _OVERFULL * (sizes.inline_bytes + sizes.newest_bytes)
    many = len(state.batches) > _OVERFULL * sizes.inline_batches
    return many or _inline_bytes(state.batches) > inline_bytes


def _settled(batches: Sequence[Batch], sizes: MergeSizes) -> Sequence[Batch]:
    """All but the newest."""
    newest = islice(reversed(batches), sizes.newest_batches)
    sizes_bytes = accumulate(batch.size_bytes for batch in newest)
    return batches[: len(batches) - sum(size <= sizes.newest_bytes for size in sizes_bytes)]


def _inline_runs(batches: Sequence[Batch]) -> list[tuple[Batch, ...]]:
    """Neighbours that lie in the state, at least in part."""
    grouped = groupby(batches, key=lambda batch: batch.inline_bytes > 0)
    return [tuple(run) for inline, run in grouped if inline]


def _inline_bytes(batches: Sequence[Batch]) -> int:
    """In plain loops: writers ask for it while merges are under way."""
    total = 0
    for batch in batches:
        for part in batch.parts:
            if isinstance(part, InlinePart):
                total += len(part.payload)
    return total


def _runs(weights: Sequence[int], limit_bytes: int) -> list[range]:
    """The longest stretches of neighbours none of which is larger, by their places."""
    runs: list[range] = []
    start = 0
    for place, weighed in enumerate(weights):
        if weighed > limit_bytes:
            runs.append(range(start, place))
            start = place + 1
    runs.append(range(start, len(weights)))
    return [run for run in runs if run]


def _weight(batch: Batch) -> int:
    parts = batch.parts
    return weight(parts[0]) if len(parts) == 1 else sum(map(weight, parts))
