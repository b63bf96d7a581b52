"""Stored definitions whose relations have other names now."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, TypeVar, cast

from evertide.sql.rebuild import with_changed_parts
from evertide.sql.syntax.expression import Name, Star, TypeName
from evertide.sql.syntax.query import TableAlias, TableRef

NodeT = TypeVar("NodeT")
# A name to the one that is to stand in its place.
Renaming: TypeAlias = Callable[[tuple[str, ...]], tuple[str, ...]]


def unchanged(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The renaming that changes nothing."""
    return parts


def with_relations(node: NodeT, relation: Renaming, column: Renaming = unchanged) -> NodeT:
    """The tree with the relations of its FROM clauses renamed, its types, and its columns.

    Stored texts name relations in full; a name of one part is that of a WITH query. Columns are
    still found under the name that their relation had.
    """
    if isinstance(node, TableRef):
        return cast(NodeT, _table(node, relation))
    if isinstance(node, TypeName):
        return cast(NodeT, _type(node, relation))
    if isinstance(node, Name):
        parts = column(node.parts)
        return node if parts == node.parts else cast(NodeT, Name(parts, at=node.at))
    if isinstance(node, Star) and node.qualifier:
        *qualifier, _ = column((*node.qualifier, "*"))
        return cast(NodeT, replace(node, qualifier=tuple(qualifier)))
    return with_changed_parts(node, lambda part: with_relations(part, relation, column))


def _type(node: TypeName, relation: Renaming) -> TypeName:
    """Users' types are named in full; a name of fewer parts is that of a system's type."""
    after = relation(node.parts) if len(node.parts) == 3 else node.parts
    return node if after == node.parts else replace(node, parts=after)


def _table(node: TableRef, relation: Renaming) -> TableRef:
    before = node.name.parts
    after = before if len(before) == 1 else relation(before)
    if after == before:
        return node
    alias = node.alias
    if alias is None and after[-1] != before[-1]:
        alias = TableAlias(before[-1])
    return replace(node, name=Name(after), alias=alias)
