"""What the system changes in the catalog by itself where that concerns shards too."""

from evertide.adapter.writing.shard_changes import shard_changes
from evertide.catalog.service import CatalogService
from evertide.controller.append import Deciding, append_ops
from evertide.vocab.clock import Clock


async def append_with_shards(catalog: CatalogService, clock: Clock, decide: Deciding) -> bool:
    """One transaction with what it does to shards; see append_ops."""
    return await append_ops(
        catalog, clock, decide, lambda result, snapshot: shard_changes(result, (), snapshot)
    )
