"""Merging a shard's batches, so that neither its state nor the number of parts grows with history.

merge_choice.py says which batches; this is the work and its store transactions. A small merge is
one transaction at its end. A large one begins with another, which claims it and moves since: what
takes minutes must not be lost to a hold that is taken meanwhile.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import msgspec

from evertide.persist.coding.schemas import merged_relation
from evertide.persist.machine import Applied, Machine
from evertide.persist.owned_blob import OwnedBlob
from evertide.persist.prepare import discard, store_part
from evertide.persist.state import (
    Batch,
    BatchesGone,
    BlobPart,
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
from evertide.persist.upkeep.bucket_merge import BucketMerge
from evertide.persist.upkeep.claims import CLAIM_MS, claim, claim_name, end_claim, renew_claim
from evertide.persist.upkeep.merge import EncodedPart
from evertide.persist.upkeep.merge_choice import SIZES, DueMerge, MergeSizes, due_merge, planned
from evertide.persist.upkeep.part_age import check_young
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc

Choose: TypeAlias = Callable[[Sequence[Batch]], tuple[Batch, ...]]

_RENEW_MS: Final = CLAIM_MS // 5


@dataclass(frozen=True, slots=True)
class Compacted:
    """A run of batches was replaced; these parts are no longer referred to."""

    garbage: tuple[Part, ...]
    written_bytes: int = 0


async def compact_shard(
    machine: Machine,
    blob: OwnedBlob,
    shard_id: ShardId,
    desc: RelationDesc,
    now_ms: int,
    *,
    choose: Choose | None = None,
    sizes: MergeSizes = SIZES,
) -> Compacted | None:
    """Merge one run of batches, if one is due; None: none is, or another process was faster."""
    state = (await machine.read(shard_id)).state
    if state is None:
        return None
    due = due_merge(state, now_ms, sizes) if choose is None else None
    if choose is not None and (batches := choose(state.batches)):
        due = planned(batches, allowed_since(state, now_ms), sizes)
    if due is None:
        return None
    work = Compaction(machine, blob, shard_id, lambda: now_ms, sizes)
    return await work.merge(state, desc, due)


class Compaction:
    """The way to merge batches of one shard.

    Since moves here and nowhere else, as far as holds and lag allow: only a merge profits from it.
    """

    def __init__(
        self,
        machine: Machine,
        blob: OwnedBlob,
        shard_id: ShardId,
        now_ms: Callable[[], int],
        sizes: MergeSizes = SIZES,
    ) -> None:
        self._machine = machine
        self._blob = blob
        self._shard_id = shard_id
        self._now_ms = now_ms
        self._sizes = sizes
        # What the parts of this merge have in common, and its claim.
        self._run_id = uuid.uuid4().hex
        self._renewed_ms = 0

    async def merge(self, state: ShardState, desc: RelationDesc, due: DueMerge) -> Compacted | None:
        """Do it; None: another process was faster. What is given up leaves no part."""
        claimed = claim_name(due.batches[-1].upper, self._run_id) if due.large else None
        self._renewed_ms = self._now_ms()
        if claimed is not None and not await self._change(partial(_begin, due, claimed)):
            return None
        inputs = [part for batch in due.batches for part in batch.parts]
        relation, version = merged_relation(state, inputs, desc)
        pace = partial(self._renew, claimed)
        merge = BucketMerge(
            self._blob, relation, due.since, self._store, pace, part_bytes=self._sizes.part_bytes
        )
        try:
            await merge.run([_spread_as(part, version) for part in inputs], due.plan)
        except Exception:
            await self._give_up(merge.parts, claimed)
            raise
        parts = tuple(msgspec.structs.replace(part, schema=version) for part in merge.parts)
        # If this raises, nobody knows whether the state refers to the parts.
        if await self._change(partial(_replace, due, parts, merge.retractions, claimed)):
            return Compacted(tuple(inputs), sum(part.size_bytes for part in parts))
        await self._give_up(parts, claimed)
        return None

    async def _change(self, transition: Callable[[ShardState, int], Changed]) -> bool:
        change = existing(lambda state: transition(state, self._now_ms()))
        outcome = await self._machine.apply_all([ShardChange(self._shard_id, change)])
        return isinstance(outcome, Applied)

    async def _store(self, part: EncodedPart, bucket: int, buckets: int) -> BlobPart:
        name = f"{self._run_id}-{bucket}of{buckets}"
        return await store_part(
            self._blob,
            self._shard_id,
            part.value,
            part.rows,
            decoded_bytes=part.decoded_bytes,
            name=name,
        )

    async def _renew(self, claimed: str | None) -> None:
        if claimed is not None and self._now_ms() - self._renewed_ms > _RENEW_MS:
            self._renewed_ms = self._now_ms()
            await self._change(lambda state, now_ms: renew_claim(state, claimed, now_ms))

    async def _give_up(self, parts: Sequence[Part], claimed: str | None) -> None:
        await discard(self._blob, parts)
        if claimed is not None:
            await self._change(lambda state, _: end_claim(state, claimed))


def _spread_as(part: Part, version: int) -> Part:
    """How a part's rows are spread, by a hash of all columns, says nothing to another version."""
    if isinstance(part, InlinePart) or part.schema == version:
        return part
    return msgspec.structs.replace(part, bucket=0, buckets=1)


def _begin(due: DueMerge, claimed: str, state: ShardState, now_ms: int) -> Changed:
    """Claim the batches, and let nobody take a hold any more on what the merge will give up."""
    live = drop_expired(state, now_ms)
    if allowed_since(live, now_ms) < due.since:
        return BatchesGone()
    there = compact(live, replaced=due.batches, replacement=due.batches)
    if not isinstance(there, ShardState):
        return there
    return claim(advance_since(live, to=due.since), claimed, now_ms)


def _replace(
    due: DueMerge,
    parts: tuple[Part, ...],
    retractions: int,
    claimed: str | None,
    state: ShardState,
    now_ms: int,
) -> Changed:
    """Refused if a hold came meanwhile that needs the history which the merge gave up."""
    check_young(parts)
    live = drop_expired(state, now_ms)
    if claimed is not None:
        live = end_claim(live, claimed)
    advanced = advance_since(live, to=due.since)
    if advanced.since < due.since:
        return BatchesGone()
    lower, upper = due.batches[0].lower, due.batches[-1].upper
    merged = (Batch(lower, upper, due.since, parts, retractions),) if parts else ()
    return compact(advanced, replaced=due.batches, replacement=merged)
