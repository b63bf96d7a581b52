"""Statements that change the catalog."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from evertide.sql.syntax.cluster import (
    AlterClusterProfileResetStatement,
    AlterClusterProfileSetStatement,
    CreateClusterProfileStatement,
    MoveReplicaStatement,
)
from evertide.sql.syntax.comment import CommentStatement
from evertide.sql.syntax.expression import UNPLACED, DataType, Expression, Name
from evertide.sql.syntax.external import (
    CreateSinkStatement,
    CreateSourceStatement,
    CreateSubsourceStatement,
)
from evertide.sql.syntax.named import NamedStatement
from evertide.sql.syntax.option import Option, OptionValue
from evertide.sql.syntax.password import PasswordClause
from evertide.sql.syntax.query import Query
from evertide.sql.syntax.replacement import ReplacementStatement
from evertide.sql.syntax.role import RoleStatement
from evertide.sql.syntax.undrop import UndropStatement


class ObjectKind(StrEnum):
    """What DROP, ALTER and SHOW CREATE may name; the value is the SQL words."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    MATERIALIZED_VIEW = "MATERIALIZED VIEW"
    INDEX = "INDEX"
    SOURCE = "SOURCE"
    SINK = "SINK"
    TYPE = "TYPE"
    SECRET = "SECRET"
    CONNECTION = "CONNECTION"
    CLUSTER = "CLUSTER"
    CLUSTER_REPLICA = "CLUSTER REPLICA"
    CLUSTER_PROFILE = "CLUSTER PROFILE"
    SCHEMA = "SCHEMA"
    DATABASE = "DATABASE"
    ROLE = "ROLE"


class OnCommit(StrEnum):
    """What becomes of a temporary table's rows, or of itself, when a transaction ends."""

    PRESERVE_ROWS = "PRESERVE ROWS"
    DELETE_ROWS = "DELETE ROWS"
    DROP = "DROP"


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A table column. An explicit NULL constraint is the same as none."""

    name: str
    type_: DataType
    not_null: bool = False
    default: Expression | None = None
    collation: Name | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class TableKey:
    """Columns that name a row; those of a primary key are never NULL."""

    columns: tuple[str, ...]
    primary: bool = False
    name: str | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateTableStatement:
    name: Name
    columns: tuple[ColumnDefinition, ...]
    if_not_exists: bool = False
    temporary: bool = False
    options: tuple[Option, ...] = ()
    keys: tuple[TableKey, ...] = ()
    on_commit: OnCommit | None = None  # only of a temporary table
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateViewStatement:
    name: Name
    query: Query
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    temporary: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateMaterializedViewStatement:
    name: Name
    query: Query
    columns: tuple[str, ...] = ()
    cluster: str | None = None  # None: the session's, written in before the text is stored
    options: tuple[Option, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    replacing: Name | None = None  # the view whose new definition it is, once applied
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateIndexStatement:
    """A default index has `default` set and no keys: its keys are chosen for it."""

    name: str | None  # None: made from the object's name and the keys
    on: Name
    keys: tuple[Expression, ...] = ()
    cluster: str | None = None  # None: the session's
    method: str | None = None
    default: bool = False
    if_not_exists: bool = False
    options: tuple[Option, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateClusterStatement:
    name: str
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateClusterReplicaStatement:
    cluster: str
    name: str
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False
    profile: str | None = None  # None: the cluster's implicit one
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateSchemaStatement:
    name: Name
    if_not_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateDatabaseStatement:
    name: str
    if_not_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateRoleStatement:
    """Attributes are flags (SUPERUSER, NOLOGIN, ...) in upper case, in the order written."""

    name: str
    attributes: tuple[str, ...] = ()
    password: PasswordClause | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class DropStatement:
    """Names of clusters, databases and roles have one part; of replicas and profiles two."""

    kind: ObjectKind
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RenameStatement:
    """`ALTER kind name RENAME TO new_name`."""

    kind: ObjectKind
    name: Name
    new_name: str
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterOwnerStatement:
    """`ALTER kind name OWNER TO role`."""

    kind: ObjectKind
    name: Name
    role: str
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterSetClusterStatement:
    """`ALTER kind name SET CLUSTER cluster`."""

    kind: ObjectKind
    name: Name
    cluster: str
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterSetSchemaStatement:
    """`ALTER kind name SET SCHEMA schema`."""

    kind: ObjectKind
    name: Name
    schema: str
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterHistoryStatement:
    """`ALTER kind name SET (RETAIN HISTORY FOR history)`; None: RESET (RETAIN HISTORY)."""

    kind: ObjectKind
    name: Name
    history: OptionValue | None
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class SwapStatement:
    """`ALTER CLUSTER a SWAP WITH b`, also of schemas: both renames or none."""

    kind: ObjectKind
    name: Name
    other: str
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterClusterSetStatement:
    """`ALTER CLUSTER c [SET] options [WITH (wait options)]`."""

    name: str
    options: tuple[Option, ...]
    with_options: tuple[Option, ...] = ()
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterClusterResetStatement:
    """`ALTER CLUSTER c RESET (names)`; names as in Option."""

    name: str
    option_names: tuple[str, ...]
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


DefinitionStatement: TypeAlias = (
    CreateTableStatement
    | CreateViewStatement
    | CreateMaterializedViewStatement
    | CreateIndexStatement
    | CreateSourceStatement
    | CreateSubsourceStatement
    | CreateSinkStatement
    | CreateClusterStatement
    | CreateClusterReplicaStatement
    | CreateClusterProfileStatement
    | CreateSchemaStatement
    | CreateDatabaseStatement
    | CreateRoleStatement
    | DropStatement
    | RenameStatement
    | AlterOwnerStatement
    | AlterSetClusterStatement
    | AlterSetSchemaStatement
    | AlterHistoryStatement
    | SwapStatement
    | AlterClusterSetStatement
    | AlterClusterResetStatement
    | AlterClusterProfileSetStatement
    | AlterClusterProfileResetStatement
    | MoveReplicaStatement
    | RoleStatement
    | ReplacementStatement
    | CommentStatement
    | NamedStatement
    | UndropStatement
)
