"""Statements that change the catalog, as text; for CREATE it is what the catalog stores."""

from __future__ import annotations

from typing import assert_never

from evertide.sql.printer import external
from evertide.sql.printer.expression import expression, expressions
from evertide.sql.printer.named import named_statement
from evertide.sql.printer.names import (
    CLUSTER_WORDS,
    columns,
    data_type,
    dotted,
    in_cluster,
    name,
    object_name,
    quote_ident,
    quote_literal,
)
from evertide.sql.printer.option import options, with_options
from evertide.sql.printer.query import query
from evertide.sql.printer.replacement import replacement_statement, replacing
from evertide.sql.printer.role import attributes, role_statement
from evertide.sql.printer.undrop import undrop
from evertide.sql.syntax.cluster import (
    AlterClusterProfileResetStatement,
    AlterClusterProfileSetStatement,
    CreateClusterProfileStatement,
    MoveReplicaStatement,
)
from evertide.sql.syntax.comment import CommentStatement
from evertide.sql.syntax.definition import (
    AlterClusterResetStatement,
    AlterClusterSetStatement,
    AlterHistoryStatement,
    AlterOwnerStatement,
    AlterSetClusterStatement,
    AlterSetSchemaStatement,
    ColumnDefinition,
    CreateClusterReplicaStatement,
    CreateClusterStatement,
    CreateDatabaseStatement,
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateRoleStatement,
    CreateSchemaStatement,
    CreateTableStatement,
    CreateViewStatement,
    DefinitionStatement,
    DropStatement,
    RenameStatement,
    SwapStatement,
    TableKey,
)
from evertide.sql.syntax.external import (
    CreateSinkStatement,
    CreateSourceStatement,
    CreateSubsourceStatement,
)
from evertide.sql.syntax.named import NamedStatement
from evertide.sql.syntax.option import Option
from evertide.sql.syntax.replacement import ReplacementStatement
from evertide.sql.syntax.role import RoleStatement
from evertide.sql.syntax.undrop import UndropStatement

Create = (
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
)
Alter = (
    RenameStatement
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
)


_Member = AlterClusterProfileSetStatement | AlterClusterProfileResetStatement | MoveReplicaStatement
# Those that name an object of any kind.
_ByKind = (
    RenameStatement
    | AlterOwnerStatement
    | AlterSetClusterStatement
    | AlterSetSchemaStatement
    | AlterHistoryStatement
    | SwapStatement
)


def definition(node: DefinitionStatement) -> str:
    if isinstance(node, RoleStatement):
        return role_statement(node)
    if isinstance(node, ReplacementStatement):
        return replacement_statement(node)
    if isinstance(node, NamedStatement):
        return named_statement(node)
    match node:
        case CommentStatement():
            return _comment(node)
        case UndropStatement():
            return undrop(node)
        case DropStatement():
            names = ", ".join([object_name(node.kind, item) for item in node.names])
            exists = "IF EXISTS " if node.if_exists else ""
            return f"DROP {node.kind} {exists}{names}{' CASCADE' if node.cascade else ''}"
        case (
            RenameStatement()
            | AlterOwnerStatement()
            | AlterSetClusterStatement()
            | AlterSetSchemaStatement()
            | AlterHistoryStatement()
            | SwapStatement()
            | AlterClusterSetStatement()
            | AlterClusterResetStatement()
            | AlterClusterProfileSetStatement()
            | AlterClusterProfileResetStatement()
            | MoveReplicaStatement()
        ):
            return _alter(node)
        case _:
            return create(node)


def _comment(node: CommentStatement) -> str:
    kind = "COLUMN" if node.kind is None else node.kind
    target = name(node.name) if node.kind is None else object_name(node.kind, node.name)
    text = "NULL" if node.comment is None else quote_literal(node.comment)
    return f"COMMENT ON {kind} {target} IS {text}"


def create(node: Create) -> str:
    match node:
        case CreateTableStatement():
            return _table(node)
        case CreateViewStatement():
            return _view(node)
        case CreateMaterializedViewStatement():
            return _materialized_view(node)
        case CreateIndexStatement():
            return _index(node)
        case CreateSourceStatement():
            return external.source(node)
        case CreateSubsourceStatement():
            return external.subsource(node)
        case CreateSinkStatement():
            return external.sink(node)
        case CreateClusterStatement():
            target = quote_ident(node.name, CLUSTER_WORDS)
            exists = _if_not_exists(node.if_not_exists)
            return f"CREATE CLUSTER {exists}{target}{_in_parentheses(node.options)}"
        case CreateClusterReplicaStatement() | CreateClusterProfileStatement():
            return _create_member(node)
        case CreateSchemaStatement():
            return f"CREATE SCHEMA {_if_not_exists(node.if_not_exists)}{name(node.name)}"
        case CreateDatabaseStatement():
            return f"CREATE DATABASE {_if_not_exists(node.if_not_exists)}{quote_ident(node.name)}"
        case CreateRoleStatement():
            words = attributes(node.attributes, node.password)
            return " ".join(["CREATE ROLE", quote_ident(node.name), *words])
        case _:
            assert_never(node)


def _if_not_exists(wanted: bool) -> str:
    return "IF NOT EXISTS " if wanted else ""


def _in_parentheses(nodes: tuple[Option, ...]) -> str:
    return f" ({options(nodes)})" if nodes else ""


def _table(node: CreateTableStatement) -> str:
    kind = "TEMPORARY TABLE" if node.temporary else "TABLE"
    parts = [*map(_column, node.columns), *map(_key, node.keys)]
    inside = ", ".join(parts)
    head = f"CREATE {kind} {_if_not_exists(node.if_not_exists)}{name(node.name)}"
    ending = "" if node.on_commit is None else f" ON COMMIT {node.on_commit}"
    return f"{head} ({inside}){with_options(node.options)}{ending}"


def _column(node: ColumnDefinition) -> str:
    text = f"{quote_ident(node.name)} {data_type(node.type_)}"
    if node.collation is not None:
        text += f" COLLATE {name(node.collation)}"
    if node.not_null:
        text += " NOT NULL"
    if node.default is not None:
        text += f" DEFAULT {expression(node.default)}"
    return text


def column_or_key(node: ColumnDefinition | TableKey) -> str:
    """One of the parts of a table's definition."""
    return _key(node) if isinstance(node, TableKey) else _column(node)


def _key(node: TableKey) -> str:
    head = "" if node.name is None else f"CONSTRAINT {quote_ident(node.name)} "
    head += "PRIMARY KEY" if node.primary else "UNIQUE"
    return f"{head} ({', '.join(map(quote_ident, node.columns))})"


def _view(node: CreateViewStatement) -> str:
    head = "CREATE OR REPLACE " if node.or_replace else "CREATE "
    head += "TEMPORARY VIEW " if node.temporary else "VIEW "
    head += _if_not_exists(node.if_not_exists) + name(node.name) + columns(node.columns)
    return f"{head} AS {query(node.query)}"


def _materialized_view(node: CreateMaterializedViewStatement) -> str:
    head = "CREATE OR REPLACE " if node.or_replace else "CREATE "
    head += f"MATERIALIZED VIEW {_if_not_exists(node.if_not_exists)}{name(node.name)}"
    head += columns(node.columns) + replacing(node.replacing)
    head += in_cluster(node.cluster) + with_options(node.options)
    return f"{head} AS {query(node.query)}"


def _index(node: CreateIndexStatement) -> str:
    text = "CREATE DEFAULT INDEX " if node.default else "CREATE INDEX "
    text += _if_not_exists(node.if_not_exists)
    text += "" if node.name is None else quote_ident(node.name)
    text = text.rstrip() + in_cluster(node.cluster) + f" ON {name(node.on)}"
    if node.method is not None:
        text += f" USING {quote_ident(node.method)}"
    text += "" if node.default else f" ({expressions(node.keys)})"
    return text + with_options(node.options)


def _alter(node: Alter) -> str:
    if isinstance(node, AlterClusterSetStatement | AlterClusterResetStatement):
        return _alter_cluster(node)
    if not isinstance(node, _ByKind):
        return _alter_member(node)
    exists = "" if isinstance(node, SwapStatement) or not node.if_exists else "IF EXISTS "
    head = f"ALTER {node.kind} {exists}{object_name(node.kind, node.name)}"
    match node:
        case RenameStatement():
            return f"{head} RENAME TO {quote_ident(node.new_name)}"
        case AlterOwnerStatement():
            return f"{head} OWNER TO {quote_ident(node.role)}"
        case AlterSetClusterStatement():
            return f"{head} SET CLUSTER {quote_ident(node.cluster)}"
        case AlterSetSchemaStatement():
            return f"{head} SET SCHEMA {quote_ident(node.schema)}"
        case AlterHistoryStatement(history=None):
            return f"{head} RESET (RETAIN HISTORY)"
        case AlterHistoryStatement(history=history):
            return f"{head} SET ({options((Option('RETAIN HISTORY', history),))})"
        case SwapStatement():
            return f"{head} SWAP WITH {quote_ident(node.other)}"
        case _:
            assert_never(node)


def _create_member(node: CreateClusterReplicaStatement | CreateClusterProfileStatement) -> str:
    kind = "PROFILE" if isinstance(node, CreateClusterProfileStatement) else "REPLICA"
    target = dotted((node.cluster, node.name))
    text = f"CREATE CLUSTER {kind} {_if_not_exists(node.if_not_exists)}{target}"
    text += _in_parentheses(node.options)
    if isinstance(node, CreateClusterReplicaStatement) and node.profile is not None:
        text += f" IN PROFILE {quote_ident(node.profile)}"
    return text


def _alter_member(node: _Member) -> str:
    kind = "REPLICA" if isinstance(node, MoveReplicaStatement) else "PROFILE"
    exists = "IF EXISTS " if node.if_exists else ""
    head = f"ALTER CLUSTER {kind} {exists}{dotted((node.cluster, node.name))}"
    match node:
        case MoveReplicaStatement():
            return f"{head} IN PROFILE {quote_ident(node.profile)}"
        case AlterClusterProfileSetStatement():
            return f"{head} SET ({options(node.options)})"
        case AlterClusterProfileResetStatement():
            return f"{head} RESET ({', '.join(node.option_names)})"
        case _:
            assert_never(node)


def _alter_cluster(node: AlterClusterSetStatement | AlterClusterResetStatement) -> str:
    exists = "IF EXISTS " if node.if_exists else ""
    head = f"ALTER CLUSTER {exists}{quote_ident(node.name, CLUSTER_WORDS)}"
    if isinstance(node, AlterClusterResetStatement):
        return f"{head} RESET ({', '.join(node.option_names)})"
    if node.options:
        head += f" SET ({options(node.options)})"
    return head + with_options(node.with_options)
