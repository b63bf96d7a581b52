"""CREATE CLUSTER and CREATE CLUSTER REPLICA, and what only clusters can be altered to."""

from evertide.sql.parser import option
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import (
    comma_separated,
    identifier,
    if_not_exists,
)
from evertide.sql.parser.objects import replica_name
from evertide.sql.syntax.definition import (
    AlterClusterResetStatement,
    AlterClusterSetStatement,
    CreateClusterReplicaStatement,
    CreateClusterStatement,
)
from evertide.sql.syntax.option import Option


def create_cluster(cursor: Cursor, at: int) -> CreateClusterStatement:
    """The cursor is behind CREATE CLUSTER."""
    exists_ok = if_not_exists(cursor)
    name = identifier(cursor)
    return CreateClusterStatement(name, _options(cursor, option.CLUSTER), exists_ok, at=at)


def create_replica(cursor: Cursor, at: int) -> CreateClusterReplicaStatement:
    """The cursor is behind CREATE CLUSTER REPLICA."""
    exists_ok = if_not_exists(cursor)
    cluster, replica = replica_name(cursor).parts
    found = _options(cursor, option.REPLICA)
    return CreateClusterReplicaStatement(cluster, replica, found, exists_ok, at=at)


def _options(cursor: Cursor, grammar: option.Grammar) -> tuple[Option, ...]:
    """Options in parentheses, behind WITH, or bare; none at all is for the planner to judge."""
    if cursor.key in (";", ""):
        return ()
    cursor.accept("WITH")
    if cursor.key != "(":
        return option.options(cursor, grammar)
    if cursor.peek() == ")":
        cursor.expect("(", ")")
        return ()
    return option.parenthesized_options(cursor, grammar)


def alter_options(cursor: Cursor, name: str, if_exists: bool, at: int) -> AlterClusterSetStatement:
    """`[SET] options [WITH (WAIT ...)]`; the cursor is behind the cluster's name."""
    found: tuple[Option, ...] = ()
    if not cursor.accept("SET") and cursor.key in (";", ""):
        pass  # the grammar lets one ask for nothing
    elif cursor.key == "(":
        found = option.parenthesized_options(cursor, option.CLUSTER)
    else:
        found = option.options(cursor, option.CLUSTER)
    wait = option.with_options(cursor, option.ALTER_CLUSTER_WITH)
    return AlterClusterSetStatement(name, found, wait, if_exists, at=at)


def reset_options(
    cursor: Cursor, name: str, if_exists: bool, at: int
) -> AlterClusterResetStatement:
    """`RESET (name, ...)`; the cursor is behind RESET."""
    cursor.expect("(")
    names = comma_separated(cursor, lambda inner: option.option_name(inner, option.CLUSTER))
    cursor.expect(")")
    return AlterClusterResetStatement(name, names, if_exists, at=at)
