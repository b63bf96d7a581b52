"""Statements that read, write or steer the session; none of them changes the catalog.

ALTER SYSTEM is here beside SET, whose grammar it shares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateViewStatement,
    ObjectKind,
)
from evertide.sql.syntax.expression import UNPLACED, DataType, Expression, Name
from evertide.sql.syntax.option import Option
from evertide.sql.syntax.query import OrderItem, Query, SelectItem, TableExpression
from evertide.sql.syntax.replacement import (
    ExplainReplacementStatement,
    ShowReplacementChangesStatement,
)


@dataclass(frozen=True, slots=True)
class AsOf:
    """`AS OF [AT LEAST] t`."""

    timestamp: Expression
    at_least: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """Any query as a statement: SELECT, VALUES, TABLE, WITH, set operations."""

    query: Query
    as_of: AsOf | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class InsertStatement:
    """No columns means all, in order. A DefaultValue may stand in the cells of VALUES."""

    table: Name
    columns: tuple[str, ...]
    source: Query | None  # None: DEFAULT VALUES
    returning: tuple[SelectItem, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column = value` in UPDATE; the value may be a DefaultValue."""

    column: str
    value: Expression
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class UpdateStatement:
    table: Name
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    from_: tuple[TableExpression, ...] = ()
    where: Expression | None = None
    returning: tuple[SelectItem, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class DeleteStatement:
    table: Name
    alias: str | None = None
    using: tuple[TableExpression, ...] = ()
    where: Expression | None = None
    returning: tuple[SelectItem, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class EnvelopeOutput:
    """`ENVELOPE UPSERT (KEY (a, b))`."""

    envelope: Literal["UPSERT", "DEBEZIUM"]
    key: tuple[str, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class WithinTimestampOutput:
    """`WITHIN TIMESTAMP ORDER BY ...`."""

    order_by: tuple[OrderItem, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class SubscribeStatement:
    source: Name | Query
    output: EnvelopeOutput | WithinTimestampOutput | None = None
    options: tuple[Option, ...] = ()
    as_of: AsOf | None = None
    up_to: Expression | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CopyTable:
    """A relation named in COPY, with the columns wanted; none means all."""

    name: Name
    columns: tuple[str, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CopyToStatement:
    """`COPY source TO STDOUT`."""

    source: CopyTable | SelectStatement | SubscribeStatement
    options: tuple[Option, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CopyFromStatement:
    """`COPY table FROM STDIN`."""

    target: CopyTable
    options: tuple[Option, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


class ShowKind(StrEnum):
    """What SHOW can list; the value is the SQL words."""

    TABLES = "TABLES"
    VIEWS = "VIEWS"
    MATERIALIZED_VIEWS = "MATERIALIZED VIEWS"
    INDEXES = "INDEXES"
    SOURCES = "SOURCES"
    SINKS = "SINKS"
    TYPES = "TYPES"
    SECRETS = "SECRETS"
    CONNECTIONS = "CONNECTIONS"
    OBJECTS = "OBJECTS"
    COLUMNS = "COLUMNS"
    CLUSTERS = "CLUSTERS"
    CLUSTER_REPLICAS = "CLUSTER REPLICAS"
    CLUSTER_PROFILES = "CLUSTER PROFILES"
    SCHEMAS = "SCHEMAS"
    DATABASES = "DATABASES"
    ROLES = "ROLES"
    PRIVILEGES = "PRIVILEGES"
    DEFAULT_PRIVILEGES = "DEFAULT PRIVILEGES"
    ROLE_MEMBERSHIP = "ROLE MEMBERSHIP"
    DROPPED_OBJECTS = "DROPPED OBJECTS"


@dataclass(frozen=True, slots=True)
class LikeFilter:
    pattern: str
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class WhereFilter:
    condition: Expression
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ShowObjectsStatement:
    """A list of objects.

    `from_` is what stood after FROM or IN: a schema; for SCHEMAS a database; for COLUMNS the
    relation; for INDEXES a schema or, as users of other systems write it, the relation.
    """

    kind: ShowKind
    from_: Name | None = None
    on: Name | None = None  # of INDEXES: the relation; of PRIVILEGES: a type, such as TABLES
    cluster: str | None = None
    filter_: LikeFilter | WhereFilter | None = None
    for_: str | None = None  # of PRIVILEGES and ROLE MEMBERSHIP: the role
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ShowCreateStatement:
    kind: ObjectKind
    name: Name
    redacted: bool = False  # without the values in the definition
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ShowVariableStatement:
    """`SHOW TIME ZONE` names `timezone`, `SHOW TRANSACTION ISOLATION LEVEL` that variable."""

    name: str | None  # None: ALL
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


ShowStatement: TypeAlias = ShowObjectsStatement | ShowCreateStatement | ShowVariableStatement


@dataclass(frozen=True, slots=True)
class SetVariableStatement:
    """Values are plain texts: words, strings and numbers mean the same to a variable."""

    name: str
    values: tuple[str, ...] | None  # None: DEFAULT
    local: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ResetVariableStatement:
    name: str | None  # None: ALL
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class TransactionModes:
    """None: not said. The isolation level is in lower case: `strict serializable`."""

    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class SetTransactionStatement:
    """`SET TRANSACTION`, or with `session` the default of later ones."""

    modes: TransactionModes
    session: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class BeginStatement:
    modes: TransactionModes
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CommitStatement:
    chain: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RollbackStatement:
    chain: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


class SavepointAction(StrEnum):
    """What to do with a savepoint; the value is the command's tag."""

    SET = "SAVEPOINT"
    RELEASE = "RELEASE"
    ROLL_BACK = "ROLLBACK"


@dataclass(frozen=True, slots=True)
class SavepointStatement:
    """`SAVEPOINT name`, `RELEASE SAVEPOINT name`, `ROLLBACK TO SAVEPOINT name`."""

    action: SavepointAction
    name: str
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ExplainObject:
    """A stored object whose plan is asked for; `replan` plans it anew with today's optimizer."""

    kind: ObjectKind
    name: Name
    replan: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


ExplainTarget: TypeAlias = (
    SelectStatement
    | SubscribeStatement
    | CreateViewStatement
    | CreateMaterializedViewStatement
    | CreateIndexStatement
    | ExplainObject
)
ExplainFormat: TypeAlias = Literal["TEXT", "VERBOSE TEXT", "JSON"]


@dataclass(frozen=True, slots=True)
class ExplainPlanStatement:
    """`stage` is in upper case, such as "OPTIMIZED"; None: the one users want by default."""

    target: ExplainTarget
    stage: str | None = None
    options: tuple[Option, ...] = ()
    format_: ExplainFormat | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ExplainTimestampStatement:
    target: SelectStatement
    format_: ExplainFormat | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class DeclareStatement:
    name: str
    statement: SelectStatement | SubscribeStatement
    hold: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class FetchStatement:
    name: str
    count: int | None = 1  # None: ALL
    options: tuple[Option, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CloseStatement:
    name: str | None  # None: ALL
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


Preparable: TypeAlias = (
    SelectStatement | InsertStatement | UpdateStatement | DeleteStatement | SubscribeStatement
)


@dataclass(frozen=True, slots=True)
class PrepareStatement:
    name: str
    statement: Preparable
    parameter_types: tuple[DataType, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ExecuteStatement:
    name: str
    args: tuple[Expression, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class DeallocateStatement:
    name: str | None  # None: ALL
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class DiscardStatement:
    target: Literal["ALL", "PLANS", "SEQUENCES", "TEMP"]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterSystemSetStatement:
    name: str
    values: tuple[str, ...] | None  # None: DEFAULT
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterSystemResetStatement:
    name: str | None  # None: ALL
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


CommandStatement: TypeAlias = (
    SelectStatement
    | InsertStatement
    | UpdateStatement
    | DeleteStatement
    | SubscribeStatement
    | CopyToStatement
    | CopyFromStatement
    | ShowObjectsStatement
    | ShowCreateStatement
    | ShowVariableStatement
    | ShowReplacementChangesStatement
    | SetVariableStatement
    | ResetVariableStatement
    | SetTransactionStatement
    | BeginStatement
    | CommitStatement
    | RollbackStatement
    | SavepointStatement
    | ExplainPlanStatement
    | ExplainTimestampStatement
    | ExplainReplacementStatement
    | DeclareStatement
    | FetchStatement
    | CloseStatement
    | PrepareStatement
    | ExecuteStatement
    | DeallocateStatement
    | DiscardStatement
    | AlterSystemSetStatement
    | AlterSystemResetStatement
)
