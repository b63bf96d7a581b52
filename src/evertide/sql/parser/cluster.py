"""CREATE of clusters, replicas and profiles, and what only they can be altered to."""

from evertide.sql.parser import option
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import cluster_name, comma_separated, if_not_exists
from evertide.sql.parser.objects import member_name
from evertide.sql.syntax.cluster import (
    AlterClusterProfileResetStatement,
    AlterClusterProfileSetStatement,
    CreateClusterProfileStatement,
    MoveReplicaStatement,
)
from evertide.sql.syntax.definition import (
    AlterClusterResetStatement,
    AlterClusterSetStatement,
    CreateClusterReplicaStatement,
    CreateClusterStatement,
)
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.option import Option


def create_cluster(cursor: Cursor, at: int) -> CreateClusterStatement:
    """The cursor is behind CREATE CLUSTER."""
    exists_ok = if_not_exists(cursor)
    name = cluster_name(cursor)
    return CreateClusterStatement(name, _options(cursor, option.CLUSTER), exists_ok, at=at)


def create_replica(cursor: Cursor, at: int) -> CreateClusterReplicaStatement:
    """The cursor is behind CREATE CLUSTER REPLICA."""
    exists_ok = if_not_exists(cursor)
    cluster, replica = member_name(cursor).parts
    if cursor.key == "(" or (cursor.key == "WITH" and cursor.peek() == "("):
        found = _options(cursor, option.REPLICA)
        profile = _in_profile(cursor)
    else:
        found, profile = _loose_options(cursor)
    return CreateClusterReplicaStatement(cluster, replica, found, exists_ok, profile, at=at)


def _loose_options(cursor: Cursor) -> tuple[tuple[Option, ...], str | None]:
    """`[WITH] SIZE 'x' IN PROFILE p INTERNAL`: commas may be left out, the profile is anywhere."""
    cursor.accept("WITH")
    found: list[Option] = []
    profile = None
    while cursor.key not in (";", ""):
        if profile is None and cursor.key == "IN":
            profile = _in_profile(cursor)
        else:
            found.append(option.one_option(cursor, option.REPLICA))
        if cursor.accept(",") and cursor.key in (";", ""):
            cursor.fail("an option")
    return tuple(found), profile


def _in_profile(cursor: Cursor) -> str | None:
    """`IN PROFILE p` if it is there."""
    if not cursor.accept("IN"):
        return None
    cursor.expect("PROFILE")
    return cluster_name(cursor)


def create_profile(cursor: Cursor, at: int) -> CreateClusterProfileStatement:
    """The cursor is behind CREATE CLUSTER PROFILE."""
    exists_ok = if_not_exists(cursor)
    cluster, profile = member_name(cursor).parts
    found = _options(cursor, option.PROFILE)
    return CreateClusterProfileStatement(cluster, profile, found, exists_ok, at=at)


def alter_profile(
    cursor: Cursor, name: Name, if_exists: bool, at: int
) -> AlterClusterProfileSetStatement | AlterClusterProfileResetStatement:
    """`SET (options)` or `RESET (names)`; the cursor is behind the profile's name."""
    cluster, profile = name.parts
    if cursor.accept("RESET"):
        names = _reset_names(cursor, option.PROFILE)
        return AlterClusterProfileResetStatement(cluster, profile, names, if_exists, at=at)
    if not cursor.accept("SET"):
        cursor.fail("one of OWNER or RENAME or RESET or SET")
    if cursor.key == "(":
        found = option.parenthesized_options(cursor, option.PROFILE)
    else:
        found = option.options(cursor, option.PROFILE)
    return AlterClusterProfileSetStatement(cluster, profile, found, if_exists, at=at)


def move_replica(cursor: Cursor, name: Name, if_exists: bool, at: int) -> MoveReplicaStatement:
    """`IN PROFILE p`; the cursor is behind the replica's name."""
    profile = _in_profile(cursor)
    if profile is None:
        cursor.fail("one of RENAME or OWNER or IN PROFILE")
    cluster, replica = name.parts
    return MoveReplicaStatement(cluster, replica, profile, if_exists, at=at)


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
    names = _reset_names(cursor, option.CLUSTER)
    return AlterClusterResetStatement(name, names, if_exists, at=at)


def _reset_names(cursor: Cursor, grammar: option.Grammar) -> tuple[str, ...]:
    cursor.expect("(")
    names = comma_separated(cursor, lambda inner: option.option_name(inner, grammar))
    cursor.expect(")")
    return names
