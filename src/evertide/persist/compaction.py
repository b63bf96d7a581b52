"""Merging batches, so that neither the state nor the number of parts grows with history.

Batches are sorted into levels by size. Eight neighbours of one level or below become one batch of
the next; small ones, which lie in the state, wait until there are more, because they cost one
store transaction to merge and nothing to read. Every update is therefore rewritten a few times at
most, and a shard has a few dozen batches at most.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import Final

from evertide.persist.machine import Applied, Machine
from evertide.persist.merge import MERGED_INLINE_BYTES, EncodedPart, merge_parts
from evertide.persist.prepare import discard, store_part
from evertide.persist.state import (
    Batch,
    BatchesGone,
    Changed,
    InlinePart,
    Part,
    ShardChange,
    ShardState,
    advance_since,
    allowed_since,
    compact,
    drop_expired,
    existing,
)
from evertide.persist.store.protocol import Blob
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp

# Upper bounds of the levels' batch sizes; a batch beyond the last is not merged again.
_LEVEL_BYTES: Final = (64 * 1024, 512 * 1024, 4 * 1024**2)
_FANOUT: Final = 8
_ROW_BYTES: Final = 16
_INLINE_BATCHES: Final = 64
_INLINE_BYTES: Final = 128 * 1024
# The newest batches are left alone: whoever follows the shard is about to read them, and would
# have to read all that they were merged with.
_NEWEST_BATCHES: Final = 8
_NEWEST_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Compacted:
    """A run of batches was replaced; these parts are no longer referred to."""

    garbage: tuple[Part, ...]


def choose_merge(batches: Sequence[Batch]) -> tuple[Batch, ...]:
    """The run of neighbours to merge next; empty if there is no need.

    Small ones first: that is cheap, and leaves fewer batches to the next level.
    """
    batches = batches[: len(batches) - _count_newest(batches)]
    small = _runs(batches, _LEVEL_BYTES[0])
    longest = max(small, key=len, default=())
    if len(longest) >= _INLINE_BATCHES:
        return longest
    if _inline_bytes(batches) > _INLINE_BYTES:
        # By where they lie, not by weight: a large batch in the state presses on it too.
        fullest = max(_inline_runs(batches), key=_inline_bytes, default=())
        if len(fullest) > 1 or _inline_bytes(fullest) > MERGED_INLINE_BYTES:
            return fullest
    for below, limit in pairwise(_LEVEL_BYTES):
        for run in _runs(batches, limit):
            if sum(_weight(batch) > below for batch in run) >= _FANOUT:
                return run
    return ()


def _inline_runs(batches: Sequence[Batch]) -> list[tuple[Batch, ...]]:
    """Neighbours that lie in the state, at least in part."""
    grouped = groupby(batches, key=lambda batch: batch.inline_bytes > 0)
    return [tuple(run) for inline, run in grouped if inline]


async def compact_shard(
    machine: Machine,
    blob: Blob,
    shard_id: ShardId,
    desc: RelationDesc,
    now_ms: int,
    *,
    choose: Callable[[Sequence[Batch]], tuple[Batch, ...]] = choose_merge,
) -> Compacted | None:
    """Merge one run of batches, if one is due; None: none is, or another process was faster.

    Since moves here and nowhere else, as far as holds and lag allow: only a merge profits from it.
    """
    state = (await machine.read(shard_id)).state
    replaced = choose(state.batches) if state is not None else ()
    if state is None or not replaced:
        return None
    since = allowed_since(state, now_ms)
    merged = await _merge(blob, shard_id, desc, replaced, since)
    change = ShardChange(
        shard_id, existing(lambda now: _replace(now, replaced, merged, since, now_ms))
    )
    outcome = await machine.apply_all([change])
    if isinstance(outcome, Applied):
        return Compacted(tuple(part for batch in replaced for part in batch.parts))
    await discard(blob, (part for batch in merged for part in batch.parts))
    return None


def _replace(
    state: ShardState,
    replaced: tuple[Batch, ...],
    merged: tuple[Batch, ...],
    since: Timestamp,
    now_ms: int,
) -> Changed:
    """Refused if a hold came meanwhile that needs the history which the merge gave up."""
    live = drop_expired(state, now_ms)
    advanced = advance_since(live, to=since)
    if advanced.since < since:
        return BatchesGone()
    return compact(advanced, replaced=replaced, replacement=merged)


async def _merge(
    blob: Blob, shard_id: ShardId, desc: RelationDesc, batches: Sequence[Batch], since: Timestamp
) -> tuple[Batch, ...]:
    parts = [part for batch in batches for part in batch.parts]
    with_bytes = [
        (part, part.payload if isinstance(part, InlinePart) else await blob.get(part.key))
        for part in parts
    ]
    merged = await asyncio.to_thread(merge_parts, desc, with_bytes, since)
    if merged is None:
        return ()
    if isinstance(merged, EncodedPart):
        stored: Part = await store_part(blob, shard_id, merged.value, merged.rows)
    else:
        stored = merged
    return (Batch(batches[0].lower, batches[-1].upper, since, (stored,)),)


def _count_newest(batches: Sequence[Batch]) -> int:
    sizes = accumulate(batch.size_bytes for batch in batches[: -_NEWEST_BATCHES - 1 : -1])
    return sum(size <= _NEWEST_BYTES for size in sizes)


def _inline_bytes(batches: Sequence[Batch]) -> int:
    return sum(batch.inline_bytes for batch in batches)


def _runs(batches: Sequence[Batch], limit_bytes: int) -> list[tuple[Batch, ...]]:
    """The longest stretches of neighbours none of which is larger."""
    groups = groupby(batches, key=lambda batch: _weight(batch) <= limit_bytes)
    return [tuple(run) for small, run in groups if small]


def _weight(batch: Batch) -> int:
    """Its size, or what its rows would have if they were not so alike: they cost work too."""
    return max(batch.size_bytes, batch.rows * _ROW_BYTES)
