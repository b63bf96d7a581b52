"""Identifiers, constants and type names as text."""

import re
from typing import Final, assert_never

from evertide.sql.parser.keywords import NOT_NAMES
from evertide.sql.syntax.definition import ObjectKind
from evertide.sql.syntax.expression import ArrayType, DataType, ListType, MapType, Name, TypeName

_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_$]*")
# Not reserved, but something else than a name before a bracket, before a parenthesis or after AS.
_AMBIGUOUS: Final = frozenset({"EXISTS", "LIST", "MAP", "OF", "OPERATOR", "ROW", "VALUES"})
CLUSTER_WORDS: Final = frozenset({"PROFILE", "REPLICA"})  # after CLUSTER these are not names
_TYPE_WORDS: Final = frozenset({"CHAR", "CHARACTER", "NATIONAL", "NCHAR"})


def quote_ident(name: str, avoid: frozenset[str] = frozenset()) -> str:
    """A name, in quotes only if it would be read differently without them.

    `avoid` holds further keywords that the place where the name stands gives a meaning to.

    >>> quote_ident("size"), quote_ident("select"), quote_ident('a"B')
    ('size', '"select"', '"a""B"')
    """
    key = name.upper()
    plain = _PLAIN.fullmatch(name) and key not in NOT_NAMES
    if plain and key not in _AMBIGUOUS and key not in avoid:
        return name
    return '"' + name.replace('"', '""') + '"'


def quote_literal(value: str) -> str:
    """A string constant. Backslashes need no escape: they mean themselves."""
    return "'" + value.replace("'", "''") + "'"


def dotted(parts: tuple[str, ...], avoid: frozenset[str] = frozenset()) -> str:
    return ".".join([quote_ident(part, avoid) for part in parts])


def name(node: Name) -> str:
    return dotted(node.parts)


def columns(names: tuple[str, ...]) -> str:
    """`(a, b)` with a blank before it, or nothing."""
    return " (" + ", ".join([quote_ident(column) for column in names]) + ")" if names else ""


def data_type(node: DataType) -> str:
    match node:
        case TypeName():
            return type_name(node) + (f" {node.fields}" if node.fields else "")
        case ArrayType():
            return data_type(node.element) + "[]" * node.dimensions
        case ListType():
            return data_type(node.element) + " list"
        case MapType():
            return f"map[{data_type(node.key)} => {data_type(node.value)}]"
        case _:
            assert_never(node)


def type_name(node: TypeName) -> str:
    """Without an interval's fields: in a constant they come after the string."""
    text = dotted(node.parts, _TYPE_WORDS)
    if node.modifiers:
        text += "(" + ", ".join([str(modifier) for modifier in node.modifiers]) + ")"
    return text


def in_cluster(cluster: str | None) -> str:
    """The clause with a blank before it, or nothing."""
    return "" if cluster is None else f" IN CLUSTER {quote_ident(cluster)}"


def object_name(kind: ObjectKind, node: Name) -> str:
    return dotted(node.parts, CLUSTER_WORDS if kind is ObjectKind.CLUSTER else frozenset())
