"""Catalog to sources and sinks: what one replica must write follows from the catalog alone."""

from collections.abc import Collection

from evertide.catalog.objects import Item, Sink, Source, Subsource
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from evertide.dataflow.external import GeneratedTable, SinkDescription, SourceDescription
from evertide.vocab.ids import ClusterId

# What a generator of one table calls it.
ONLY_TABLE = "counter"


def sources_of(
    snapshot: Snapshot, cluster_ids: Collection[ClusterId]
) -> tuple[SourceDescription, ...]:
    """Every source that these clusters write."""
    items = [i for c in cluster_ids for i in snapshot.items_in_cluster(c)]
    return tuple(
        SourceDescription(
            item.global_id,
            item.definition.cluster_id,
            item.definition.load,
            item.definition.as_of,
            _tables(item, snapshot),
        )
        for item in items
        if isinstance(item.definition, Source)
    )


def _tables(source: Item, snapshot: Snapshot) -> tuple[GeneratedTable, ...]:
    """Its own, or those of its subsources that still exist."""
    if source.shard_id is not None:
        return (GeneratedTable(source.global_id, source.shard_id, source.desc, ONLY_TABLE),)
    return tuple(
        GeneratedTable(part.global_id, part.definition.shard_id, part.desc, part.definition.table)
        for part in snapshot.dependants(source.item_id)
        if isinstance(part.definition, Subsource)
    )


def sinks_of(snapshot: Snapshot, cluster_ids: Collection[ClusterId]) -> tuple[SinkDescription, ...]:
    """Every sink that these clusters write."""
    items = [i for c in cluster_ids for i in snapshot.items_in_cluster(c)]
    return tuple(
        _sink(item, item.definition, snapshot)
        for item in items
        if isinstance(item.definition, Sink)
    )


def _sink(item: Item, sink: Sink, snapshot: Snapshot) -> SinkDescription:
    written = snapshot.items[sink.from_id]
    version = written.version_among(item.planned_against)
    collection = collection_of(written, snapshot, version.global_id)
    assert collection is not None, "only what is stored is written into a sink"
    return SinkDescription(
        item.global_id, sink.cluster_id, collection, sink.as_of, sink.path, sink.snapshot
    )
