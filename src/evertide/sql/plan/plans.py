"""What a statement asks for, fully resolved: one frozen record per kind.

A plan names objects by id, holds typed trees in place of text, and was checked against one catalog
snapshot. It says nothing about when or where it runs.
"""

from dataclasses import dataclass
from typing import TypeAlias

from evertide.expr.relation import Finishing, Relation
from evertide.expr.scalar import Scalar
from evertide.vocab.errors import Notice
from evertide.vocab.ids import ClusterId, DatabaseId, GlobalId, ItemId, ReplicaId, SchemaId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """A query. `relation` may hold Parameter and SessionCall; views appear as Get.

    `desc` describes the rows after `finishing`.
    """

    relation: Relation
    finishing: Finishing
    desc: RelationDesc
    as_of: Timestamp | None = None
    # The word of the command tag: SHOW and EXPLAIN answers are rows too.
    tag: str = "SELECT"


@dataclass(frozen=True, slots=True)
class InsertPlan:
    """Rows for a table, already in its column order, cast and with defaults filled in."""

    table_id: ItemId
    source: SelectPlan
    # Scalars over the table's columns; None: no RETURNING.
    returning: "Returning | None" = None


@dataclass(frozen=True, slots=True)
class Returning:
    """What RETURNING computes from each written row."""

    scalars: tuple[Scalar, ...]
    desc: RelationDesc


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """`selection` gives the table's whole rows that go, over the table's columns."""

    table_id: ItemId
    selection: Relation
    returning: Returning | None = None


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """`selection` gives the table's columns of each row that changes; `assignments` gives, for
    every column of the table in order, its new value over those columns (ColumnRef where it stays).
    """

    table_id: ItemId
    selection: Relation
    assignments: tuple[Scalar, ...]
    returning: Returning | None = None


@dataclass(frozen=True, slots=True)
class ItemName:
    """Where a new item goes."""

    database_id: DatabaseId
    schema_id: SchemaId
    name: str


@dataclass(frozen=True, slots=True)
class CreateTablePlan:
    """`defaults` holds for each column the SQL text of its DEFAULT, or None."""

    name: ItemName
    desc: RelationDesc
    defaults: tuple[str | None, ...]
    create_sql: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateViewPlan:
    """`or_replace` names the view that goes first."""

    name: ItemName
    relation: Relation
    desc: RelationDesc
    depends_on: tuple[ItemId, ...]
    create_sql: str
    if_not_exists: bool
    replaces: ItemId | None = None


@dataclass(frozen=True, slots=True)
class CreateMaterializedViewPlan:
    """A durable collection that a cluster keeps up to date. Finishing is part of `relation`."""

    name: ItemName
    cluster_id: ClusterId
    relation: Relation
    desc: RelationDesc
    depends_on: tuple[ItemId, ...]
    create_sql: str
    if_not_exists: bool
    replaces: ItemId | None = None


@dataclass(frozen=True, slots=True)
class CreateIndexPlan:
    """An arrangement of `on_id` by `key` in a cluster. Keys are columns of the relation."""

    name: ItemName
    cluster_id: ClusterId
    on_item: ItemId
    on_id: GlobalId
    key: tuple[int, ...]
    desc: RelationDesc
    create_sql: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateSchemaPlan:
    database_id: DatabaseId
    name: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateDatabasePlan:
    name: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class CreateClusterPlan:
    """`size` None: virtual. `replicas` are explicit (name, size) pairs of an unmanaged cluster."""

    name: str
    size: str | None
    virtual: bool
    replication_factor: int
    replicas: tuple[tuple[str, str], ...] | None
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropPlan:
    """Everything that goes, dependants first (CASCADE was resolved by the planner).

    Empty with IF EXISTS and nothing there; `notices` say so.
    """

    tag: str  # DROP TABLE, DROP VIEW, ...
    items: tuple[ItemId, ...] = ()
    schemas: tuple[SchemaId, ...] = ()
    databases: tuple[DatabaseId, ...] = ()
    clusters: tuple[ClusterId, ...] = ()
    replicas: tuple[ReplicaId, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class RenameItemPlan:
    """`create_sql` is the item's definition under the new name."""

    item_id: ItemId
    new_name: str
    create_sql: str
    tag: str


@dataclass(frozen=True, slots=True)
class ShowVariablePlan:
    """SHOW x; None: SHOW ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class SetVariablePlan:
    """SET x TO values; None: to the default (also RESET)."""

    name: str
    values: tuple[str, ...] | None
    local: bool
    tag: str = "SET"


@dataclass(frozen=True, slots=True)
class ResetAllPlan:
    """RESET ALL, DISCARD ALL."""

    tag: str


@dataclass(frozen=True, slots=True)
class AlterSystemPlan:
    """ALTER SYSTEM SET x TO values; None: RESET."""

    name: str
    values: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class BeginPlan:
    read_only: bool | None
    isolation: str | None
    tag: str = "BEGIN"


@dataclass(frozen=True, slots=True)
class SetTransactionPlan:
    read_only: bool | None
    isolation: str | None
    # SET SESSION CHARACTERISTICS: for transactions to come.
    session: bool = False


@dataclass(frozen=True, slots=True)
class CommitPlan:
    pass


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    pass


@dataclass(frozen=True, slots=True)
class ExplainPlan:
    """Shows a query's or a maintained object's plan. `stage`: "raw", "optimized", "physical"."""

    stage: str
    select: SelectPlan | None = None
    item_id: ItemId | None = None
    relation: Relation | None = None  # EXPLAIN CREATE MATERIALIZED VIEW ...
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class ExplainTimestampPlan:
    select: SelectPlan
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class CopyToPlan:
    select: SelectPlan


@dataclass(frozen=True, slots=True)
class DeclarePlan:
    """DECLARE name CURSOR FOR query; `sql` is planned when it is declared."""

    name: str
    select: SelectPlan


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """`count` None: ALL."""

    name: str
    count: int | None


@dataclass(frozen=True, slots=True)
class ClosePlan:
    """None: CLOSE ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class PreparePlan:
    name: str
    sql: str
    parameter_types: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class ExecutePlan:
    name: str
    arguments: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class DeallocatePlan:
    """None: ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class NoticePlan:
    """A statement that has no effect here but is answered, with a notice where that helps."""

    tag: str
    notices: tuple[Notice, ...] = ()


DdlPlan: TypeAlias = (
    CreateTablePlan | CreateViewPlan | CreateMaterializedViewPlan | CreateIndexPlan
    | CreateSchemaPlan | CreateDatabasePlan | CreateClusterPlan | DropPlan | RenameItemPlan
    | AlterSystemPlan
)  # fmt: skip
# Statements that concern the session alone: no collection is read or written.
SessionPlan: TypeAlias = (
    ShowVariablePlan | SetVariablePlan | ResetAllPlan | BeginPlan | SetTransactionPlan | CommitPlan
    | RollbackPlan | FetchPlan | ClosePlan | PreparePlan | ExecutePlan | DeallocatePlan | NoticePlan
)  # fmt: skip
DataPlan: TypeAlias = (
    SelectPlan | InsertPlan | DeletePlan | UpdatePlan | ExplainPlan | ExplainTimestampPlan
    | CopyToPlan | DeclarePlan
)  # fmt: skip
Plan: TypeAlias = DdlPlan | DataPlan | SessionPlan
