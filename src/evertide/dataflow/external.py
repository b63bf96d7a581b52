"""Sources and sinks of a cluster, as data."""

from dataclasses import dataclass

from evertide.catalog.objects import Load
from evertide.dataflow.description import Import
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class GeneratedTable:
    """One collection that a generator fills."""

    global_id: GlobalId
    shard_id: ShardId
    desc: RelationDesc
    table: str  # what the generator calls it


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """A load generator, and where its rows go. Contents at every time follow from this alone."""

    global_id: GlobalId
    cluster_id: ClusterId
    load: Load
    as_of: Timestamp
    tables: tuple[GeneratedTable, ...]


@dataclass(frozen=True, slots=True)
class SinkDescription:
    """A file, and the collection whose changes go into it."""

    global_id: GlobalId
    cluster_id: ClusterId
    collection: Import
    as_of: Timestamp
    path: str
    snapshot: bool
