"""Plans of CREATE SOURCE and CREATE SINK."""

from dataclasses import dataclass

from evertide.catalog.objects import Load
from evertide.vocab.ids import ClusterId, ItemId, SchemaId
from evertide.vocab.relation_desc import RelationDesc


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a new item goes, and the text that is stored for it."""

    schema_id: SchemaId
    name: str
    create_sql: str


@dataclass(frozen=True, slots=True)
class NewTablePlan:
    """One of the tables of a source that makes several."""

    item: Placed
    table: str
    desc: RelationDesc


@dataclass(frozen=True, slots=True)
class NewIndexPlan:
    """An index over all columns of the source itself, or of one of its tables."""

    item: Placed
    on: Placed
    desc: RelationDesc


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSourcePlan:
    """A source. Either it has columns itself, or it has tables."""

    item: Placed
    cluster_id: ClusterId
    load: Load
    desc: RelationDesc
    tables: tuple[NewTablePlan, ...]
    indexes: tuple[NewIndexPlan, ...]
    history_ms: int | None
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSinkPlan:
    """`path` is below the directory of sinks."""

    item: Placed
    cluster_id: ClusterId
    from_id: ItemId
    path: str
    snapshot: bool
    if_not_exists: bool
