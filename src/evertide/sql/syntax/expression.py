"""Scalar expressions and type names, as written.

Special call forms (EXTRACT, POSITION, SUBSTRING, TRIM, OVERLAY, AT TIME ZONE, COALESCE, NULLIF,
GREATEST, LEAST, CURRENT_USER and its kin) arrive as plain FunctionCalls, so the planner has one
kind of call to resolve. AND and OR hold all terms of a chain, because generated SQL has chains of
thousands and a binary tree of that depth would defeat every recursive visitor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from evertide.sql.syntax.literal_values import LiteralValues
    from evertide.sql.syntax.query import OrderItem, Query

UNPLACED: Final = -1  # the offset of a node that stands in no text


@dataclass(frozen=True, slots=True)
class Name:
    """A column or object reference. Parts are folded to lower case unless they were quoted."""

    parts: tuple[str, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Star:
    """`*` or `t.*`; an empty qualifier means every column in scope."""

    qualifier: tuple[str, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RowStar:
    """`(expression).*`: the fields of a record as columns."""

    operand: Expression
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """Kept as text: its type (integer, bigint, numeric) depends on its digits."""

    text: str
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """A quoted constant of no type yet."""

    value: str
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class BooleanLiteral:
    value: bool
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class NullLiteral:
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$1` and so on; numbered from 1."""

    number: int
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class TypeName:
    """A named type. Several-word names arrive in their one-word form (`timestamptz`, `float8`)."""

    parts: tuple[str, ...]
    modifiers: tuple[int, ...] = ()  # numeric(10, 2), varchar(5), timestamp(3)
    fields: str = ""  # of an interval: "DAY TO SECOND"
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """`int[][]`: declared bounds are dropped, as they bind nothing in PostgreSQL either."""

    element: DataType
    dimensions: int
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ListType:
    """`int list`."""

    element: DataType
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class MapType:
    """`map[text => int]`."""

    key: DataType
    value: DataType
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


DataType: TypeAlias = TypeName | ArrayType | ListType | MapType


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(x AS t)` and `x::t`."""

    operand: Expression
    target: DataType
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class TypedLiteral:
    """`DATE '2024-01-01'`, `INTERVAL '1' DAY`: a constant, unlike a cast of an expression."""

    target: TypeName
    value: str
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Unary:
    """A prefix operator. `at` is the operator's offset."""

    operator: str
    operand: Expression
    schema: tuple[str, ...] = ()  # of OPERATOR(pg_catalog.-)
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Binary:
    """An infix operator other than AND and OR; `!=` arrives as `<>`. `at` is the operator's."""

    operator: str
    left: Expression
    right: Expression
    schema: tuple[str, ...] = ()  # of OPERATOR(pg_catalog.~)
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class And:
    """Two or more terms, in order."""

    terms: tuple[Expression, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more terms, in order."""

    terms: tuple[Expression, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class IsTest:
    """`x IS [NOT] NULL` and the three truth tests."""

    operand: Expression
    test: Literal["NULL", "TRUE", "FALSE", "UNKNOWN"]
    negated: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class IsDistinct:
    """`x IS DISTINCT FROM y`; negated is `IS NOT DISTINCT FROM`, equality that holds for nulls."""

    left: Expression
    right: Expression
    negated: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Between:
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False
    symmetric: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class InList:
    """Long lists of constants are LiteralValues, one to a row."""

    operand: Expression
    items: tuple[Expression, ...] | LiteralValues
    negated: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class InSubquery:
    operand: Expression
    query: Query
    negated: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """`x [NOT] LIKE p [ESCAPE e]` and its two kin."""

    operand: Expression
    pattern: Expression
    kind: Literal["LIKE", "ILIKE", "SIMILAR TO"]
    escape: Expression | None = None
    negated: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CaseBranch:
    condition: Expression
    result: Expression
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Case:
    """With an operand, each condition is compared with it; without, each is a boolean."""

    operand: Expression | None
    branches: tuple[CaseBranch, ...]
    otherwise: Expression | None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class FrameBound:
    """`offset` belongs to PRECEDING and FOLLOWING alone; without it they are unbounded."""

    kind: Literal["PRECEDING", "CURRENT ROW", "FOLLOWING"]
    offset: Expression | None = None  # digits alone where rows or groups are counted
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class WindowFrame:
    unit: Literal["ROWS", "RANGE", "GROUPS"]
    start: FrameBound
    end: FrameBound | None  # None: only the start was written
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Window:
    """What follows OVER. A bare name (`OVER w`) has only `base`, and no parentheses."""

    base: str | None = None
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: WindowFrame | None = None
    bare: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function, aggregate or window function; which one, only the planner knows."""

    name: Name
    args: tuple[Expression, ...] = ()
    star: bool = False  # count(*)
    distinct: bool = False
    order_by: tuple[OrderItem, ...] = ()
    filter_: Expression | None = None
    over: Window | None = None
    ignore_nulls: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ArrayConstructor:
    """`ARRAY[1, 2]`; inner brackets without the word are ArrayConstructors too."""

    items: tuple[Expression, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ArraySubquery:
    """`ARRAY(SELECT ...)`."""

    query: Query
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ListConstructor:
    """`LIST[1, 2]`."""

    items: tuple[Expression, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class MapConstructor:
    """`MAP['a' => 1]`."""

    entries: tuple[tuple[Expression, Expression], ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RowConstructor:
    """`ROW(a, b)`, or `(a, b)` with at least two fields."""

    fields: tuple[Expression, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Slice:
    """`lower : upper` inside a subscript; an absent end is open."""

    lower: Expression | None
    upper: Expression | None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Subscript:
    """`x[i]` or `x[i:j]`."""

    operand: Expression
    index: Expression | Slice
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """`(x).f`; a chain of plain identifiers is a Name instead."""

    operand: Expression
    field_name: str
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Exists:
    query: Query
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ScalarSubquery:
    query: Query
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AnyAll:
    """`x op ANY (source)`; SOME arrives as ANY. The source is a query or an array."""

    left: Expression
    operator: str
    quantifier: Literal["ANY", "ALL"]
    source: Query | Expression
    schema: tuple[str, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Collate:
    operand: Expression
    collation: Name
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class DefaultValue:
    """The word DEFAULT, which only a cell of INSERT ... VALUES or an UPDATE assignment may be."""

    at: int = field(default=UNPLACED, compare=False, kw_only=True)


Scalar: TypeAlias = NumberLiteral | StringLiteral | BooleanLiteral | NullLiteral

Expression: TypeAlias = (
    Name
    | Star
    | RowStar
    | NumberLiteral
    | StringLiteral
    | BooleanLiteral
    | NullLiteral
    | Parameter
    | Cast
    | TypedLiteral
    | Unary
    | Binary
    | Not
    | And
    | Or
    | IsTest
    | IsDistinct
    | Between
    | InList
    | InSubquery
    | PatternMatch
    | Case
    | FunctionCall
    | ArrayConstructor
    | ArraySubquery
    | ListConstructor
    | MapConstructor
    | RowConstructor
    | Subscript
    | FieldAccess
    | Exists
    | ScalarSubquery
    | AnyAll
    | Collate
    | DefaultValue
)
