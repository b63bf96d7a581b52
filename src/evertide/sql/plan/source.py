"""What a FROM clause is while it is put together: a relation and the scope over its row."""

from dataclasses import dataclass, replace

from evertide.expr.relation import Relation
from evertide.expr.scalar import ColumnRef
from evertide.expr.scalar_walk import shift_columns
from evertide.sql.plan.builder import ONE_ROW, RelationBuilder
from evertide.sql.plan.scope import Scope, TableName, combine_scopes, map_scope
from evertide.sql.resolve import position_of
from evertide.sql.syntax.query import TableAlias
from evertide.vocab.errors import InvalidColumnReference


@dataclass(frozen=True, slots=True)
class Source:
    """A relation and the scope over its row."""

    relation: Relation
    scope: Scope

    @property
    def nullable(self) -> list[bool]:
        """Column by column; one that no name of the scope stands for may be anything."""
        flags = [True] * len(self.relation.types)
        for column in self.scope.columns:
            if isinstance(column.scalar, ColumnRef):
                flags[column.scalar.index] = column.nullable
        return flags

    def builder(self) -> RelationBuilder:
        """The relation as the start of a larger one."""
        return RelationBuilder(self.relation, self.nullable)


# A SELECT without FROM reads one row without columns.
NOTHING = Source(ONE_ROW, Scope())


def product(left: Source, right: Source, *, at: int, lateral: bool = False) -> Source:
    """Every row of one beside every row of the other; `lateral`: which may look at left's row."""
    builder = left.builder()
    if lateral:
        builder.apply(right.relation, right.nullable)
    else:
        builder.product(right.relation, right.nullable)
    return Source(builder.relation, joined_scope(left, right, at=at))


def joined_scope(
    left: Source, right: Source, *, at: int, blank_left: bool = False, blank_right: bool = False
) -> Scope:
    """The scope over left's columns and then right's; an outer join may blank a side."""
    width = len(left.relation.types)
    return combine_scopes(
        map_scope(left.scope, lambda scalar: scalar, nullable=blank_left),
        map_scope(right.scope, lambda scalar: shift_columns(scalar, width), nullable=blank_right),
        position=position_of(at),
    )


def with_alias(source: Source, alias: TableAlias | None) -> Source:
    """The source under another name, its first columns renamed."""
    if alias is None:
        return source
    shown = source.scope.starred
    if len(alias.columns) > len(shown):
        raise InvalidColumnReference(
            f'table "{alias.name}" has {len(shown)} columns available but {len(alias.columns)}'
            " columns specified",
            position=position_of(alias.at),
        )
    hidden = source.scope.tables[0].name if len(source.scope.tables) == 1 else None
    table = TableName(alias.name, aliased=hidden)
    names = (*alias.columns, *(column.name for column in shown[len(alias.columns) :]))
    columns = tuple(
        replace(column, name=name, table=table) for name, column in zip(names, shown, strict=True)
    )
    hidden_columns = tuple(replace(column, table=table) for column in source.scope.hidden)
    return Source(source.relation, Scope((*columns, *hidden_columns), (table,)))
