"""A text in which one relation or type has another name now.

Columns that are qualified by the relation's name get the new one, as somebody would write it. Where
that could be taken for something else, because a name in the text is the same, the relation keeps
its old name as an alias instead.
"""

from dataclasses import dataclass, replace
from typing import TypeVar, cast

from evertide.sql.rebuild import parts_of, with_changed_parts
from evertide.sql.syntax.expression import Name, Star, TypeName
from evertide.sql.syntax.query import CommonTable, FunctionTable, JoinUsing, TableAlias, TableRef

NodeT = TypeVar("NodeT")
Parts = tuple[str, ...]


class AmbiguousName(Exception):
    """The text names two relations that only their schemas tell apart."""


def with_renamed_item(node: NodeT, old: Parts, name: str) -> NodeT:
    """The tree with what has the full name `old` under this name, in the same schema.

    Raises AmbiguousName.
    """
    seen = _Seen(old, name)
    for part in parts_of(node):
        seen.look(part)
    if seen.reads and seen.another:
        raise AmbiguousName
    return _Rewriting(old, name, named=seen.reads, aliased=seen.taken).of(node)


@dataclass(slots=True)
class _Seen:
    """What a text calls by the old name or by the new one."""

    old: Parts
    name: str
    reads: bool = False  # it reads the relation, without giving it an alias
    another: bool = False  # it reads another relation of the same name
    taken: bool = False  # one of the names is also something else

    def look(self, part: object) -> None:
        last = self.old[-1]
        match part:
            case TableRef(name=Name(parts=parts), alias=None) if len(parts) > 1:
                if parts == self.old:
                    self.reads = True
                else:
                    self.another = self.another or parts[-1] == last
                    self.taken = self.taken or parts[-1] == self.name
            case TableAlias(name=known) | CommonTable(name=known) | JoinUsing(alias=str(known)):
                self.taken = self.taken or known in (last, self.name)
            case FunctionTable(calls=calls, alias=None):
                named = {call.name.parts[-1] for call in calls}
                self.taken = self.taken or not named.isdisjoint((last, self.name))
            case Name(parts=(known,)):
                # Perhaps a column, perhaps the relation's whole row.
                self.taken = self.taken or known == last
            case Name(parts=(*_, qualifier, _)) | Star(qualifier=(*_, qualifier)):
                self.taken = self.taken or qualifier == self.name
            case _:
                pass


@dataclass(frozen=True, slots=True)
class _Rewriting:
    old: Parts
    name: str
    named: bool  # columns can be named by it
    aliased: bool

    def of(self, node: NodeT) -> NodeT:
        match node:
            case TableRef(name=Name(parts=parts)) if parts == self.old:
                return cast(NodeT, self._table(node))
            case TableRef():
                return node
            case TypeName(parts=parts) if parts == self.old:
                return cast(NodeT, replace(node, parts=(*self.old[:-1], self.name)))
            case Name(parts=(*qualifier, column)) if self._means(tuple(qualifier)):
                renamed = (*self._qualifier(tuple(qualifier)), column)
                return cast(NodeT, Name(renamed, at=node.at))
            case Star(qualifier=qualifier) if self._means(tuple(qualifier)):
                return cast(NodeT, replace(node, qualifier=self._qualifier(tuple(qualifier))))
            case _:
                return with_changed_parts(node, self.of)

    def _table(self, node: TableRef) -> TableRef:
        alias = node.alias
        if alias is None and self.aliased:
            alias = TableAlias(self.old[-1])
        return replace(node, name=Name((*self.old[:-1], self.name)), alias=alias)

    def _means(self, qualifier: Parts) -> bool:
        return self.named and bool(qualifier) and qualifier == self.old[-len(qualifier) :]

    def _qualifier(self, qualifier: Parts) -> Parts:
        return qualifier[-1:] if self.aliased else (*qualifier[:-1], self.name)
