"""Relational expressions: multisets of rows, built from collections that appear by GlobalId.

Every node gives a multiset in which a row's multiplicity may be negative in between (Negate) but
not in what a whole query returns. Beside its rows a node gives errors, also with multiplicities:
an operator passes on its inputs' errors unchanged and adds those of its own expressions, so that a
retracted row takes its error with it.

What executors need not know is lowered first (transform/): OuterJoin becomes Join, Distinct, Negate
and Union; Apply becomes joins; WHERE over a product becomes a Join with equivalences.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from evertide.expr.functions.row import AggregateFunction, TableFunction
from evertide.expr.functions.window import WindowFunction
from evertide.expr.scalar import Literal, Scalar
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8, SqlType

Types: TypeAlias = tuple[SqlType, ...]


@dataclass(frozen=True)
class Constant:
    """Rows known when the query is planned, with multiplicities; present at every time."""

    rows: tuple[tuple[Row, int], ...]
    types: Types


@dataclass(frozen=True)
class Get:
    """A collection: a table, a materialized view, a source, or a system relation."""

    global_id: GlobalId
    types: Types


@dataclass(frozen=True)
class Project:
    """Columns by position, in this order; one may appear twice."""

    input: "Relation"
    columns: tuple[int, ...]

    @cached_property
    def types(self) -> Types:
        return tuple(self.input.types[i] for i in self.columns)


@dataclass(frozen=True)
class Map:
    """The input's columns followed by these scalars; each sees the input's columns only."""

    input: "Relation"
    scalars: tuple[Scalar, ...]

    @cached_property
    def types(self) -> Types:
        return self.input.types + tuple(s.type for s in self.scalars)


@dataclass(frozen=True)
class Filter:
    """Rows for which every predicate is true. Evaluated as one And, so errors follow its rule."""

    input: "Relation"
    predicates: tuple[Scalar, ...]

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True)
class Join:
    """The inner join of n inputs; columns are those of the inputs one after another.

    Each equivalence is a set of two or more columns (positions in the joined row, ascending) that
    must be equal by SQL's equality, so NULLs drop out. No equivalences: the product.
    """

    inputs: tuple["Relation", ...]
    equivalences: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def types(self) -> Types:
        return tuple(t for relation in self.inputs for t in relation.types)


@dataclass(frozen=True)
class OuterJoin:
    """LEFT, RIGHT or FULL join. `on` are predicates over left's then right's columns."""

    kind: str  # "left" | "right" | "full"
    left: "Relation"
    right: "Relation"
    on: tuple[Scalar, ...]

    @cached_property
    def types(self) -> Types:
        return self.left.types + self.right.types


@dataclass(frozen=True)
class Apply:
    """A row of left beside each row that right gives for it: a subquery that sees the row around.

    Right's scalars name left's columns as OuterColumns of depth 0. Transform decorrelate makes
    joins of it, so no executor but the interpreter, which is their oracle, meets one.
    """

    left: "Relation"
    right: "Relation"

    @cached_property
    def types(self) -> Types:
        return self.left.types + self.right.types


@dataclass(frozen=True)
class FlatMap:
    """A row of the input beside each row that the function gives for it.

    `ordinality` adds the number of the function's row, from 1, as the last column.
    """

    input: "Relation"
    function: TableFunction
    arguments: tuple[Scalar, ...]
    ordinality: bool = False

    @cached_property
    def types(self) -> Types:
        added = tuple(sql_type for _, sql_type in self.function.columns)
        return self.input.types + added + ((INT8,) if self.ordinality else ())


@dataclass(frozen=True)
class ArgumentOrder:
    """One key of ORDER BY inside an aggregate; NULLs are placed as in OrderKey."""

    key: Scalar
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a Reduce. FILTER has become a CASE inside the argument already.

    `order`: the order in which the arguments are looked at, ties by value; none: by value.
    """

    function: AggregateFunction
    argument: Scalar | None  # None: count(*)
    distinct: bool = False
    order: tuple[ArgumentOrder, ...] = ()

    @property
    def type(self) -> SqlType:
        return self.function.result


@dataclass(frozen=True)
class Reduce:
    """GROUP BY: one row per group that has rows: the keys, then the aggregates.

    Keys are grouped by SQL's equality, NULLs together; of equal but different keys the least
    encoding is shown. No rows, no group: what a query without GROUP BY returns over nothing is
    added by the planner (a Union with a default row).
    """

    input: "Relation"
    keys: tuple[Scalar, ...]
    aggregates: tuple[AggregateCall, ...]

    @cached_property
    def types(self) -> Types:
        return tuple(k.type for k in self.keys) + tuple(a.type for a in self.aggregates)


@dataclass(frozen=True)
class Distinct:
    """Each row once if its multiplicity is positive. Equality as in Reduce."""

    input: "Relation"

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True)
class OrderKey:
    """One ORDER BY column. Ties in the end are broken by the whole encoded row."""

    column: int
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class TopK:
    """Per group of `group` columns, rows `offset` to `offset + limit` in the order given."""

    input: "Relation"
    group: tuple[int, ...]
    order: tuple[OrderKey, ...]
    limit: int | None
    offset: int = 0

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True)
class Distance:
    """How far a key may be from a row's own, behind it or before it in the direction of the order.

    The order has one key, and `by` is of the type that keys of its type are moved by.
    """

    by: Literal
    following: bool


@dataclass(frozen=True)
class Frame:
    """The rows around one that a window function looks at, from `start` to `end`, both in.

    Rows, or groups of rows that the order finds equal, are counted from the row itself: -1 is one
    before it. None: as far as the partition goes. "range" knows distances, None and 0, which is all
    equal rows; the others know no distances.
    """

    unit: str  # "rows" | "range" | "groups"
    start: int | Distance | None
    end: int | Distance | None

    @property
    def has_distance(self) -> bool:
        return isinstance(self.start, Distance) or isinstance(self.end, Distance)


# From the first row of the partition to the last one equal in order.
USUAL_FRAME: Final = Frame("range", None, 0)


@dataclass(frozen=True)
class WindowCall:
    """One window function. Its arguments are columns and literals: a Map computes others first.

    FILTER has become a CASE inside an aggregate's argument already; count(*) has none.
    """

    function: WindowFunction | AggregateFunction
    arguments: tuple[Scalar, ...]
    type: SqlType
    frame: Frame
    ignore_nulls: bool = False


@dataclass(frozen=True)
class Window:
    """Every row with the values of window functions behind it; one for each time it is there.

    `group` are the columns of PARTITION BY. Rows that `order` finds equal are put in the order of
    the whole encoded row. A row for which a function fails is an error.
    """

    input: "Relation"
    group: tuple[int, ...]
    order: tuple[OrderKey, ...]
    calls: tuple[WindowCall, ...]

    @cached_property
    def types(self) -> Types:
        return self.input.types + tuple(call.type for call in self.calls)


@dataclass(frozen=True)
class Negate:
    """Multiplicities of rows times -1.

    Those of errors stay: were they turned too, a failing row on either side of a difference could
    hide one on the other, and the result would look right.
    """

    input: "Relation"

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True)
class Threshold:
    """Rows with positive multiplicity, with that multiplicity: what EXCEPT ALL leaves."""

    input: "Relation"

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True)
class Union:
    """The inputs' rows together, multiplicities added up: UNION ALL."""

    inputs: tuple["Relation", ...]

    @property
    def types(self) -> Types:
        return self.inputs[0].types


@dataclass(frozen=True)
class LocalGet:
    """What a binding of the LetRec around holds just then. Its name is unique in the whole tree."""

    name: str
    types: Types


@dataclass(frozen=True)
class RecursionLimit:
    """After so many iterations it ends; `fails`: with an error, if the last one changed a thing."""

    iterations: int
    fails: bool


@dataclass(frozen=True)
class LetRec:
    """`body` once the bindings hold what their own definitions give.

    They start without rows. An iteration computes one binding after another, each from what all of
    them hold at that moment; the last one is that in which nothing changes. recursion.py says what
    becomes of errors.
    """

    names: tuple[str, ...]
    values: tuple["Relation", ...]
    body: "Relation"
    limit: RecursionLimit | None = None

    @property
    def types(self) -> Types:
        return self.body.types


Relation: TypeAlias = (
    Constant | Get | LocalGet | LetRec | Project | Map | Filter | FlatMap | Join | OuterJoin
    | Apply | Reduce | Distinct | TopK | Window | Negate | Threshold | Union
)  # fmt: skip


@dataclass(frozen=True)
class Finishing:
    """What is done to a query's rows last, outside any dataflow: order, cut, pick columns."""

    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    # None: all columns as they are.
    project: tuple[int, ...] | None = None
