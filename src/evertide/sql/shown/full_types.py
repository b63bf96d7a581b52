"""Types under their full names, whatever synonym was written."""

from dataclasses import replace
from typing import Final, TypeVar, cast

from evertide.sql.rebuild import with_changed_parts
from evertide.sql.syntax.expression import TypedLiteral, TypeName
from evertide.sql.type_words import NAMED, is_system_type
from evertide.vocab.sql_type import Kind

NodeT = TypeVar("NodeT")

# Kinds that PostgreSQL does not have are in a schema of their own.
_OWN: Final = (Kind.UINT2, Kind.UINT4, Kind.UINT8, Kind.MZ_TIMESTAMP)


def with_schemas_of_types(node: NodeT) -> NodeT:
    """The tree with every type of the system as schema and name; users' have theirs already."""
    if isinstance(node, TypeName):
        return cast(NodeT, _full(node))
    if isinstance(node, TypedLiteral):
        return node  # the word before a constant is as it is written
    return with_changed_parts(node, lambda part: with_schemas_of_types(part))


def _full(node: TypeName) -> TypeName:
    if not is_system_type(node.parts) or node.fields:
        return node  # an interval's fields stand behind the plain word only
    name = node.parts[-1]
    kind = NAMED.get(name)
    if kind is None:
        return node
    if name == "float" and node.modifiers:
        kind = Kind.FLOAT4 if node.modifiers[0] < 25 else Kind.FLOAT8
        node = replace(node, modifiers=())
    schema = "mz_catalog" if kind in _OWN else "pg_catalog"
    return replace(node, parts=(schema, kind.value))
