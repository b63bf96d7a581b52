"""What an expression sees around itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from evertide.expr.scalar import Scalar
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.scope import Scope
from evertide.sql.syntax.expression import Expression, Window


class Clause(StrEnum):
    """Where an expression stands, in the words of errors."""

    SELECT = "SELECT"
    WHERE = "WHERE"
    ON = "JOIN conditions"
    GROUP_BY = "GROUP BY"
    HAVING = "HAVING"
    DISTINCT_ON = "DISTINCT ON"
    ORDER_BY = "ORDER BY"
    SET_ORDER_BY = "ORDER BY of a set expression"
    LIMIT = "LIMIT"
    OFFSET = "OFFSET"
    VALUES = "VALUES"
    FROM = "functions in FROM"
    RETURNING = "RETURNING"
    UPDATE = "UPDATE"
    DEFAULT = "DEFAULT expressions"
    INDEX = "index expressions"
    EXECUTE = "EXECUTE parameters"
    AS_OF = "AS OF"
    WINDOW = "window definitions"
    RANGE = "RANGE"
    REFRESH_AT = "REFRESH AT"
    REFRESH_ALIGNED_TO = "REFRESH EVERY ... ALIGNED TO"

    @property
    def place(self) -> str:
        """The clause as errors name it that tell what may not stand there."""
        return _PLACES.get(self, self.value)


_PLACES = {
    Clause.WHERE: "WHERE clause",
    Clause.ON: "ON clause",
    Clause.GROUP_BY: "GROUP BY clause",
    Clause.HAVING: "HAVING clause",
    Clause.DISTINCT_ON: "DISTINCT ON clause",
    Clause.ORDER_BY: "ORDER BY clause",
    Clause.SET_ORDER_BY: "ORDER BY clause of a set expression",
    Clause.RETURNING: "RETURNING clause",
    Clause.DEFAULT: "DEFAULT expression",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionContext:
    """`bind_node` plans one node; handlers call it for their parts, one frame per call.

    Subqueries and columns go to `deferred`, those in aggregates' arguments to `inner`; None: there
    can be no aggregates here.
    """

    query: QueryContext
    scope: Scope
    clause: Clause
    deferred: Deferred
    bind_node: Callable[[Expression, "ExpressionContext"], Scalar]
    inner: Deferred | None = None
    inside_aggregate: bool = False
    # What WINDOW names; None: there can be no window functions here.
    windows: Mapping[str, Window] | None = None
    inside_window: bool = False
    # What is around that table functions may not stand in; None: they may, in a select list.
    no_rows_in: str | None = None

    def bind(self, node: Expression) -> Scalar:
        """Plan a part of this expression."""
        return self.bind_node(node, self)

    def without_rows(self, place: str) -> "ExpressionContext":
        """The context of a part in which table functions may not stand."""
        return replace(self, no_rows_in=place)

    def in_window(self) -> "ExpressionContext":
        """The context of a window function's argument."""
        return replace(self, inside_window=True)

    def in_window_definition(self) -> "ExpressionContext":
        """The context of what a window is partitioned and ordered by."""
        return replace(self, clause=Clause.WINDOW, windows=None)

    def without_columns(self, clause: Clause) -> "ExpressionContext":
        """The context of a constant within this expression."""
        return ExpressionContext(
            query=self.query, scope=Scope(), clause=clause, deferred=Deferred(),
            bind_node=self.bind_node,
        )  # fmt: skip

    def in_aggregate(self) -> "ExpressionContext":
        """The context of an aggregate's argument: one row of the group."""
        assert self.inner is not None, "aggregates are allowed here"
        return replace(self, deferred=self.inner, inner=None, inside_aggregate=True)
