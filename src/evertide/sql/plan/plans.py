"""What a statement asks for, fully resolved: one frozen record per kind.

A plan names objects by id, holds typed trees in place of text, and was checked against one catalog
snapshot. It says nothing about when or where it runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from evertide.catalog.objects import Replacement
from evertide.expr.relation import Finishing, OrderKey, Relation
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.sql.plan.clusters.plans import ClusterPlan
from evertide.sql.plan.external.plans import CreateSinkPlan, CreateSourcePlan
from evertide.sql.plan.named.plans import NamedPlan
from evertide.sql.plan.refresh import RefreshPlan
from evertide.sql.plan.replacements.plans import ApplyReplacementPlan
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.sql.syntax.command import SavepointAction
from evertide.sql.syntax.definition import OnCommit
from evertide.sql.syntax.expression import Expression
from evertide.vocab.errors import Notice
from evertide.vocab.ids import ClusterId, DatabaseId, GlobalId, ItemId, ReplicaId, SchemaId
from evertide.vocab.refresh import RefreshSchedule
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
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
    # `as_of` is only a lower bound.
    at_least: bool = False
    # The word of the command tag: SHOW and EXPLAIN answers are rows too.
    tag: str = "SELECT"
    # Columns of arrays that clients get as words: `desc` says text of them.
    vectors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DiffForm:
    """Each change as its diff and its row.

    Those of one timestamp are told in order of `keys`, which are scalars over the diff and the row;
    `order` numbers the keys. Without keys the order within a timestamp means nothing.
    """

    keys: tuple[Scalar, ...] = ()
    order: tuple[OrderKey, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvelopeForm:
    """The changes of one timestamp as one row for each key; `before`: with the values it had."""

    key: tuple[int, ...]
    before: bool


ChangeForm: TypeAlias = DiffForm | EnvelopeForm


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribePlan:
    """`relation` has exactly the `columns` that are followed; `desc` is what a client is sent."""

    relation: Relation
    columns: RelationDesc
    desc: RelationDesc
    depends_on: tuple[ItemId, ...]
    form: ChangeForm
    snapshot: bool
    progress: bool
    # With `at_least`, `as_of` is only a lower bound.
    as_of: Timestamp | None
    at_least: bool
    up_to: Timestamp | None


@dataclass(frozen=True, slots=True)
class InsertPlan:
    """Rows for a table, already in its column order, cast and with defaults filled in."""

    table_id: ItemId
    source: "SelectPlan | LiteralColumns"
    # Scalars over the table's columns; None: no RETURNING.
    returning: "Returning | None" = None


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """How COPY's lines are to be read or written; `quote` and `escape` count for CSV alone."""

    csv: bool
    delimiter: str
    null: str
    # The first line is none of the rows; it names the columns, which may be to be checked.
    header: bool
    match_header: bool
    quote: str
    escape: str
    # No lines at all: none of the above counts.
    binary: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CopyFromPlan:
    """Rows that the client sends after the statement, with these of the table's columns in order.

    The others get their defaults.
    """

    table_id: ItemId
    targets: tuple[int, ...]
    defaults: Mapping[int, Scalar]
    format: CopyFormat


@dataclass(frozen=True, slots=True, eq=False)
class LiteralColumns:
    """Many rows of constants, by columns c0, c1, ... in their physical encoding."""

    table: pa.Table
    types: tuple[SqlType, ...]


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
    """`selection` gives the table's columns of each row that changes, and what else new values are
    made of; `assignments` gives, for every column of the table in order, its new value over those
    columns (ColumnRef where it stays).
    """

    table_id: ItemId
    selection: Relation
    assignments: tuple[Scalar, ...]
    returning: Returning | None = None


@dataclass(frozen=True, slots=True)
class ItemName:
    """Where a new item goes. Temporary ones are in no database."""

    database_id: DatabaseId | None
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
    history_ms: int | None = None
    on_commit: OnCommit | None = None
    depends_on: tuple[ItemId, ...] = ()  # types of its columns


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
    history_ms: int | None = None
    # What it is staged to replace, and how; None: it stands for itself.
    replacement: Replacement | None = None
    # When it is brought up to date, as far as that can be told before it is created, and then for
    # good; None: all the time.
    asked_refresh: RefreshPlan | None = None
    refresh: RefreshSchedule | None = None
    # Versions that its text means where that is not the first; None: the last ones.
    planned_against: tuple[GlobalId, ...] | None = None
    tag: str = "CREATE MATERIALIZED VIEW"


@dataclass(frozen=True, slots=True)
class PlannedKey:
    """A key of an index. `node` names the relation's columns by their bare names, so that it means
    the same whatever the relation is called; `column` is what system relations show."""

    node: Expression
    scalar: Scalar
    column: ColumnDesc

    @property
    def position(self) -> int | None:
        """The column that it is; None: an expression."""
        return self.scalar.index if isinstance(self.scalar, ColumnRef) else None


@dataclass(frozen=True, slots=True)
class CreateIndexPlan:
    """An arrangement of `on_id` in a cluster, by columns of the relation or expressions."""

    name: ItemName
    cluster_id: ClusterId
    on_item: ItemId
    on_id: GlobalId
    keys: tuple[PlannedKey, ...]
    # What it holds.
    relation: Relation
    create_sql: str
    if_not_exists: bool
    history_ms: int | None = None


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
    secrets: tuple[ItemId, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class RenameItemPlan:
    """`create_sql` is the item's definition under the new name.

    `others_sql` holds the new definitions of its parts, and of what it is part of.
    """

    item_id: ItemId
    new_name: str
    create_sql: str
    tag: str
    others_sql: tuple[tuple[ItemId, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AlterHistoryPlan:
    """`create_sql` is the item's definition with the new option; None: the default history."""

    item_id: ItemId
    history_ms: int | None
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
class DiscardTemporaryPlan:
    """DISCARD TEMP."""


@dataclass(frozen=True, slots=True)
class ResetAllPlan:
    """RESET ALL, DISCARD ALL."""

    tag: str


@dataclass(frozen=True, slots=True)
class AlterSystemPlan:
    """ALTER SYSTEM SET x TO values; None: RESET.

    `any_name`: a variable that nobody knows is kept too, as a flag of the peer's would be.
    """

    name: str
    values: tuple[str, ...] | None
    any_name: bool = False


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
    """Shows a query's or a maintained object's plan.

    `stage`: "raw", "decorrelated", "optimized", "physical", "delta" or "spark".
    """

    stage: str
    select: SelectPlan | None = None
    item_id: ItemId | None = None
    relation: Relation | None = None  # EXPLAIN CREATE MATERIALIZED VIEW ...
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class ExplainTimestampPlan:
    select: SelectPlan
    as_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainReplacementPlan:
    """What a replacement would change: how many rows come and go, and the first of them."""

    replacement_id: ItemId
    totals: SelectPlan
    rows: SelectPlan


@dataclass(frozen=True, slots=True)
class CopyToPlan:
    source: SelectPlan | SubscribePlan
    format: CopyFormat


@dataclass(frozen=True, slots=True)
class DeclarePlan:
    """DECLARE name CURSOR FOR query; it is planned when it is declared."""

    name: str
    source: SelectPlan | SubscribePlan


@dataclass(frozen=True, slots=True)
class SavepointPlan:
    """SAVEPOINT, RELEASE, or ROLLBACK TO it."""

    action: SavepointAction
    name: str


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """`count` None: ALL. `timeout_ms` bounds a wait for a stream's rows; None: until some come."""

    name: str
    count: int | None
    timeout_ms: float | None = None


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
    RolePlan |
    CreateTablePlan | CreateViewPlan | CreateMaterializedViewPlan | CreateIndexPlan
    | CreateSourcePlan | CreateSinkPlan | NamedPlan
    | CreateSchemaPlan | CreateDatabasePlan | ClusterPlan | DropPlan | RenameItemPlan
    | AlterHistoryPlan | AlterSystemPlan | ApplyReplacementPlan | UndropPlan
)  # fmt: skip
# Statements that concern the session alone: no collection is read or written.
SessionPlan: TypeAlias = (
    ShowVariablePlan | SetVariablePlan | ResetAllPlan | BeginPlan | SetTransactionPlan | CommitPlan
    | RollbackPlan | SavepointPlan | FetchPlan | ClosePlan | PreparePlan | ExecutePlan
    | DeallocatePlan | NoticePlan
    | DiscardTemporaryPlan
)  # fmt: skip
DataPlan: TypeAlias = (
    SelectPlan | InsertPlan | DeletePlan | UpdatePlan | ExplainPlan | ExplainTimestampPlan
    | CopyToPlan | CopyFromPlan | DeclarePlan | SubscribePlan | ExplainReplacementPlan
)  # fmt: skip
Plan: TypeAlias = DdlPlan | DataPlan | SessionPlan
