"""Values an expression needs that the row it stands on does not have yet.

An aggregate, a window function or a subquery inside an expression is planned when it is met, but it
can be attached to the relation only later: an aggregate after all of them are known, a subquery of
a grouped SELECT after the grouping, a window function after HAVING. Until then a column position
beyond every real one stands for its value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from evertide.expr.functions.row import TableFunction
from evertide.expr.relation import AggregateCall, ArgumentOrder, Relation, WindowCall
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.sql.plan.rewrite import replace_parts
from evertide.vocab.sql_type import BOOL, SqlType, record_of

# Positions from here on are places of deferred values. No relation is that wide.
FIRST_PLACE: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class ScalarUse:
    """The value of a query of one column and at most one row; NULL if it has none."""

    relation: Relation

    @property
    def type(self) -> SqlType:
        return self.relation.types[0]


@dataclass(frozen=True, slots=True)
class ExistsUse:
    """Whether a query has rows."""

    relation: Relation

    @property
    def type(self) -> SqlType:
        return BOOL


@dataclass(frozen=True, slots=True)
class QuantifiedUse:
    """`operand op ANY (query)` for a comparison; operand and the query's column agree in type."""

    operator: str  # = <> < <= > >=
    operand: Scalar
    relation: Relation
    nullable: bool  # the query's column may be NULL

    @property
    def type(self) -> SqlType:
        return BOOL


@dataclass(frozen=True, slots=True)
class RowQuantifiedUse:
    """`(operands) op ANY (query)`: a row against rows; each pair of fields agrees in type."""

    operator: str
    operands: tuple[Scalar, ...]
    relation: Relation
    nullable: bool  # a column of the query may be NULL

    @property
    def type(self) -> SqlType:
        return BOOL


@dataclass(frozen=True, slots=True)
class ArrayUse:
    """The values of a query of one column, in its order, as one array."""

    aggregate: AggregateCall
    relation: Relation

    @property
    def type(self) -> SqlType:
        return self.aggregate.type


@dataclass(frozen=True, slots=True)
class WindowUse:
    """The value of a window function, over the rows that grouping and HAVING leave."""

    call: WindowCall
    partition: tuple[Scalar, ...]
    order: tuple[ArgumentOrder, ...]

    @property
    def type(self) -> SqlType:
        return self.call.type


@dataclass(frozen=True, slots=True)
class RowsUse:
    """A value for each row that a table function gives, beside the row that it is called on."""

    function: TableFunction
    arguments: tuple[Scalar, ...]

    @property
    def type(self) -> SqlType:
        columns = self.function.columns
        return columns[0][1] if len(columns) == 1 else record_of(*columns)


# Relations here are as they are written in the subquery: the row that its value is for is one
# around them.
SubqueryUse: TypeAlias = ScalarUse | ExistsUse | QuantifiedUse | RowQuantifiedUse | ArrayUse
DeferredValue: TypeAlias = AggregateCall | SubqueryUse | WindowUse | RowsUse


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that an expression names, and where: for an error found after grouping.

    `from_subquery`: it is named from further in, where the row is one around.
    """

    column: ColumnRef
    name: str
    at: int
    from_subquery: bool = False


class Deferred:
    """The deferred values of some expressions over one row, in order of first sight.

    What a value is computed from stands before it: an operand is planned first.
    """

    def __init__(self) -> None:
        self.values: list[DeferredValue] = []
        self.references: list[Reference] = []

    def reserve(self, value: DeferredValue) -> ColumnRef:
        """The place of a value; equal ones that are no subqueries are computed once."""
        if isinstance(value, AggregateCall | WindowUse | RowsUse) and value in self.values:
            return ColumnRef(FIRST_PLACE + self.values.index(value), value.type)
        self.values.append(value)
        return ColumnRef(FIRST_PLACE + len(self.values) - 1, value.type)

    def refer(self, column: ColumnRef, name: str, at: int) -> ColumnRef:
        """Remember where a column was named. References are told apart by identity."""
        fresh = ColumnRef(column.index, column.type)
        self.references.append(Reference(fresh, name, at))
        return fresh

    def refer_from_subquery(self, column: ColumnRef, name: str, at: int) -> None:
        """Remember where a subquery names a column. These are told apart by position only."""
        self.references.append(Reference(column, name, at, from_subquery=True))

    def reference_from_subquery(self, index: int) -> Reference | None:
        """Where a subquery names the column at this position."""
        found = (r for r in self.references if r.from_subquery and r.column.index == index)
        return next(found, None)

    def reference_of(self, column: ColumnRef) -> Reference | None:
        """Where this very reference was made."""
        found = (r for r in self.references if r.column is column and not r.from_subquery)
        return next(found, None)


def fill_places(settled: Sequence[Scalar] | Mapping[int, Scalar]) -> Callable[[Scalar], Scalar]:
    """A function that puts settled values in their places."""

    def filled(part: Scalar) -> Scalar | None:
        if isinstance(part, ColumnRef) and part.index >= FIRST_PLACE:
            return settled[part.index - FIRST_PLACE]
        return None

    return lambda scalar: replace_parts(scalar, filled)
