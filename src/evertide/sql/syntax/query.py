"""Queries: SELECT, VALUES, set operations, and what may stand in FROM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from evertide.sql.syntax.expression import (
    UNPLACED,
    DataType,
    Expression,
    FunctionCall,
    Name,
    Window,
)
from evertide.sql.syntax.literal_values import LiteralValues

if TYPE_CHECKING:
    from evertide.sql.syntax.command import ShowStatement


@dataclass(frozen=True, slots=True)
class OrderItem:
    """`nulls_first` None means the default: last when ascending, first when descending."""

    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One output of a SELECT or RETURNING; the expression may be a Star or RowStar."""

    expression: Expression
    alias: str | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class TableAlias:
    name: str
    columns: tuple[str, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class TableRef:
    """A named relation, or a CTE: only the planner can tell."""

    name: Name
    alias: TableAlias | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query in FROM."""

    query: Query
    alias: TableAlias | None = None
    lateral: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class FunctionTable:
    """Functions in FROM, side by side; more than one only with ROWS FROM."""

    calls: tuple[FunctionCall, ...]
    alias: TableAlias | None = None
    with_ordinality: bool = False
    lateral: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ShowTable:
    """A SHOW statement in FROM: `(SHOW CLUSTERS)`."""

    show: ShowStatement
    alias: TableAlias | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class JoinOn:
    condition: Expression
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class JoinUsing:
    columns: tuple[str, ...]
    alias: str | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class JoinNatural:
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


JoinConstraint: TypeAlias = JoinOn | JoinUsing | JoinNatural


@dataclass(frozen=True, slots=True)
class Join:
    """`constraint` is None for CROSS and CROSS alone. With an alias, it stood in parentheses."""

    kind: Literal["INNER", "LEFT", "RIGHT", "FULL", "CROSS"]
    left: TableExpression
    right: TableExpression
    constraint: JoinConstraint | None
    alias: TableAlias | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


TableExpression: TypeAlias = TableRef | Subquery | FunctionTable | ShowTable | Join


@dataclass(frozen=True, slots=True)
class NamedWindow:
    name: str
    window: Window
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT core. `TABLE t` arrives as `SELECT * FROM t`. Items may be empty."""

    items: tuple[SelectItem, ...]
    from_: tuple[TableExpression, ...] = ()
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    windows: tuple[NamedWindow, ...] = ()
    distinct: bool = False
    distinct_on: tuple[Expression, ...] = ()  # not empty implies distinct
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Values:
    """Rows of expressions; the parser checks that all have one width."""

    rows: tuple[tuple[Expression, ...], ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


LiteralKind: TypeAlias = Literal["n", "s", "t", "f", "0"]


@dataclass(frozen=True, slots=True)
class SetOperation:
    """Two or more inputs combined from the left; `all_` keeps duplicates.

    A chain of one operator is one node, because generated SQL has UNION ALLs of thousands.
    """

    operator: Literal["UNION", "INTERSECT", "EXCEPT"]
    all_: bool
    inputs: tuple[QueryBody, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CommonTable:
    """One name of a WITH list. In WITH MUTUALLY RECURSIVE every column has a type."""

    name: str
    columns: tuple[str, ...]
    query: Query
    types: tuple[DataType, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecursionLimit:
    """What becomes of a recursion that has gone round so often and still changes."""

    iterations: int
    action: Literal["ERROR", "RETURN"] = "ERROR"
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class With:
    """`mutually`: each query of the list sees all of them, itself too; only then is a limit."""

    tables: tuple[CommonTable, ...]
    recursive: bool = False
    mutually: bool = False
    limit: RecursionLimit | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Query:
    """A body with what applies to its result. FETCH FIRST arrives as `limit`."""

    body: QueryBody
    with_: With | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: Expression | None = None  # None: LIMIT ALL
    offset: Expression | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


# A Query as a body stood in parentheses and has clauses of its own that must apply first.
QueryBody: TypeAlias = Select | Values | LiteralValues | SetOperation | Query
