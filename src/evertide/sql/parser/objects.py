"""Kinds of catalog objects, and their names in the form each kind has."""

from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import cluster_name, identifier, qualified_name
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
    if kind is ObjectKind.CLUSTER_REPLICA:
        return replica_name(cursor)
    if kind in _UNQUALIFIED:
        at = cursor.at
        return Name((identifier(cursor),), at=at)
    return qualified_name(cursor)


def replica_name(cursor: Cursor) -> Name:
    """`cluster.replica`: both parts are needed, since replicas live in no schema."""
    name = qualified_name(cursor)
    if len(name.parts) == 1:
        cursor.fail("dot")
    if len(name.parts) > 2:
        cursor.fail("a replica name of two parts")
    return name


def optional_cluster(cursor: Cursor) -> str | None:
    """`IN CLUSTER c` if it is there."""
    return cluster_name(cursor) if cursor.accept_words("IN", "CLUSTER") else None
