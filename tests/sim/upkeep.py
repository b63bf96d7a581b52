"""Compaction and garbage collection, far more eager than any process would be."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from evertide.persist.faults import BlobMissing, StoreFailing
from evertide.persist.prepare import discard
from evertide.persist.state import Batch, Part
from evertide.persist.upkeep.compaction import compact_shard
from evertide.persist.upkeep.merge_choice import SIZES
from evertide.persist.upkeep.sweep import Sweeper, SweepTimes
from evertide.vocab.ids import ShardId
from tests.sim.decode import desc_of
from tests.sim.work import Client


async def compact_some(client: Client, shard_ids: Sequence[ShardId], part_bytes: int) -> None:
    """Merge any run of batches of any shard."""
    node, rng, shard_id = client.node, client.rng, client.rng.choice(shard_ids)

    def choose(batches: Sequence[Batch]) -> tuple[Batch, ...]:
        if not batches:
            return ()
        first = rng.randrange(len(batches))
        return tuple(batches[first : first + rng.randint(1, 6)])

    try:
        done = await compact_shard(
            node.client.machine,
            node.client.blob,
            shard_id,
            desc_of(shard_id),
            node.clock.now_ms(),
            choose=choose,
            sizes=replace(SIZES, part_bytes=part_bytes, step_bytes=4 * part_bytes),
        )
    except BlobMissing:
        return  # another process merged and collected them first
    if done is not None:
        node.start(partial(_collect, client, done.garbage), "collect")


async def _collect(client: Client, garbage: Sequence[Part]) -> None:
    await asyncio.sleep(client.node.place.grace_s)
    try:
        await discard(client.node.client.blob, garbage)
    except StoreFailing:
        pass  # the sweeper finds it


async def sweep(client: Client, times: SweepTimes) -> None:
    """Remove what crashed processes left behind, for ever."""
    node = client.node
    consensus = node.place.store.consensus(node.epoch)
    await Sweeper(node.client, consensus, node.clock, times).run()
