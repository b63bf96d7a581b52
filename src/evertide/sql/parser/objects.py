"""Kinds of catalog objects, and their names in the form each kind has."""

from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import cluster_name, identifier, label, qualified_name
from evertide.sql.syntax.definition import ObjectKind
from evertide.sql.syntax.expression import Name

_UNQUALIFIED = frozenset({ObjectKind.CLUSTER, ObjectKind.DATABASE, ObjectKind.ROLE})
# Longest first, so that CLUSTER REPLICA is not taken for a cluster named replica.
_KINDS = tuple(sorted(ObjectKind, key=lambda kind: -len(kind.split())))


def object_kind(cursor: Cursor, after: str) -> ObjectKind:
    """Steps over the words that name a kind of object."""
    for kind in _KINDS:
        if cursor.accept_words(*kind.split()):
            return kind
    cursor.fail("one of " + " or ".join(ObjectKind) + f" after {after}")


def object_name(cursor: Cursor, kind: ObjectKind) -> Name:
    """A name in the form its kind has."""
    if kind in (ObjectKind.CLUSTER_REPLICA, ObjectKind.CLUSTER_PROFILE):
        return member_name(cursor)
    if kind in _UNQUALIFIED:
        at = cursor.at
        take = cluster_name if kind is ObjectKind.CLUSTER else identifier
        return Name((take(cursor),), at=at)
    return qualified_name(cursor)


def member_name(cursor: Cursor) -> Name:
    """`cluster.replica` or `cluster.profile`: both parts are needed, since they are in no schema.

    The first cluster is called `default`, which is a keyword elsewhere.
    """
    at = cursor.at
    parts = [cluster_name(cursor)]
    while cursor.accept("."):
        parts.append(label(cursor))
    if len(parts) == 1:
        cursor.fail("dot")
    if len(parts) > 2:
        cursor.fail("a name of two parts")
    return Name(tuple(parts), at=at)


def optional_cluster(cursor: Cursor) -> str | None:
    """`IN CLUSTER c` if it is there."""
    return cluster_name(cursor) if cursor.accept_words("IN", "CLUSTER") else None
