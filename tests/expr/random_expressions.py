"""Random typed expressions over a table of random values, the same for the same seed.

An expression is a tree whose nodes know their type, so that it can be written for two systems and
taken apart where they differ. Every function that is compared with PostgreSQL may stand anywhere,
beside the forms that are no functions: CASE, COALESCE, AND, IN and so on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Final

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import REGISTERED, SCALARS
from evertide.vocab.datum import Datum, Interval, Row
from evertide.vocab.sql_type import (
    BOOL,
    INT4,
    INT8,
    JSONB,
    TEXT,
    Kind,
    SqlType,
    array_of,
)
from tests.expr.compared import ABSENT_ROWS, COMPARED, ELEMENTS
from tests.expr.lowering_vectors import values_of
from tests.expr.postgres_oracle import asked_types, is_known, literal, type_name, written
from tests.expr.special_arguments import PATTERNS, SPECIAL

_ONCE: Final = (
    *(t for t in SCALARS if is_known(t) and t not in REGISTERED),
    *map(array_of, ELEMENTS),
)
# Two columns of each type, so that two values of a type may differ.
TYPES: Final = _ONCE + _ONCE
COLUMNS: Final = tuple((f"c{position}", sql_type) for position, sql_type in enumerate(TYPES))
# Values that functions can do something with; the samples of their types are mostly edges.
PLAIN: Final[dict[Kind, list[Datum]]] = {
    Kind.INT2: [1, 2, 3, -4, 12],
    Kind.INT4: [1, 2, 3, -4, 12, 100],
    Kind.INT8: [1, 2, 3, -4, 12, 1000],
    Kind.FLOAT4: [1.0, 2.5, -0.75, 12.0],
    Kind.FLOAT8: [1.0, 2.5, -0.75, 0.1, 12.0],
    Kind.NUMERIC: [Decimal(text) for text in ("1", "2.5", "-0.75", "12", "0.1", "3")],
    Kind.INTERVAL: [Interval(0, 1, 0), Interval(1, 0, 3_600_000_000), Interval(0, 0, 90_000_000)],
    Kind.OID: [16, 23],
}
COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")
JUNCTIONS: Final = ("({0} AND {1})", "({0} OR {1})", "({0} AND {1} AND {2})")


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """`form` has {0}, {1} for its parts; without parts it is the text itself."""

    type: SqlType
    form: str
    parts: tuple["Node", ...] = ()
    function: ScalarFunction | None = None
    is_constant: bool = False

    def text(self, constant: Callable[[str], str] = str) -> str:
        """The expression in SQL; `constant` writes its constants."""
        if not self.parts:
            return constant(self.form) if self.is_constant else self.form
        return fill(self.form, [part.text(constant) for part in self.parts])


def fill(form: str, texts: Sequence[str]) -> str:
    """Texts in the places of a form; they may have braces of their own."""
    pieces = form.split("{")
    filled = pieces[0]
    for piece in pieces[1:]:
        number, _, rest = piece.partition("}")
        filled += texts[int(number)] + rest
    return filled


def _by_result(*, lowered: bool) -> dict[SqlType, dict[str, list[ScalarFunction]]]:
    found: dict[SqlType, dict[str, list[ScalarFunction]]] = {}
    for row in COMPARED:
        fits = not lowered or (row.spark is not None and not row.variadic)
        if row.arguments and row.signature not in ABSENT_ROWS and fits:
            found.setdefault(row.result, {}).setdefault(row.name, []).append(row)
    return found


# All functions, and those that Spark computes by itself.
BY_RESULT: Final = _by_result(lowered=False)
LOWERED_BY_RESULT: Final = _by_result(lowered=True)


class Maker:
    """Makes a table's rows and expressions over it from one seed.

    An odd one takes only functions that Spark computes by itself: among all of them, hardly any
    deep expression would be Spark's own.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._functions = LOWERED_BY_RESULT if seed % 2 else BY_RESULT
        self._choices = 0.3 if seed % 2 else 0.12

    def row(self, number: int) -> Row:
        """A number to tell rows by, and a value for each column."""
        return (number, *(self._datum(sql_type) for sql_type in TYPES))

    def expression(self) -> Node:
        """Of any type that has functions."""
        sql_type = self._random.choice([t for t in self._functions if t in TYPES])
        return self._call(sql_type, self._random.choice((1, 2, 2, 3, 3, 4)))

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _datum(self, sql_type: SqlType) -> Datum:
        if self._chance(0.1):
            return None
        plain = PLAIN.get(sql_type.kind)
        if plain is not None and self._chance(0.6):
            return self._random.choice(plain)
        return self._random.choice(values_of(sql_type))

    def _leaf(self, sql_type: SqlType) -> Node:
        names = [name for name, one in COLUMNS if one == sql_type]
        if names and self._chance(0.75):
            return Node(sql_type, self._random.choice(names))
        return self._constant(sql_type, self._datum(sql_type))

    def _constant(self, sql_type: SqlType, datum: Datum) -> Node:
        return Node(sql_type, literal(sql_type, datum), is_constant=True)

    def _node(self, sql_type: SqlType, depth: int) -> Node:
        if depth <= 0 or self._chance(0.2):
            return self._leaf(sql_type)
        if self._chance(self._choices):
            return self._choice(sql_type, depth)
        if sql_type == BOOL and self._chance(0.4):
            return self._condition(depth)
        return self._call(sql_type, depth)

    def _nodes(self, sql_type: SqlType, count: int, depth: int) -> tuple[Node, ...]:
        return tuple(self._node(sql_type, depth - 1) for _ in range(count))

    def _call(self, sql_type: SqlType, depth: int) -> Node:
        """By name first: some functions have a row for every type."""
        names = self._functions.get(sql_type)
        if names is None:
            return self._leaf(sql_type)
        row = self._random.choice(names[self._random.choice(list(names))])
        types = row.arguments
        if row.variadic:
            types += types[-1:] * self._random.randint(0, 2)
        types = asked_types(row, types)
        if row.name == "jsonb_build_object":  # whose names are no jsonb
            types = (TEXT, JSONB) * self._random.randint(1, 2)
        parts = tuple(
            self._argument(row, position, one, depth - 1) for position, one in enumerate(types)
        )
        places = [f"{{{position}}}" for position in range(len(parts))]
        return Node(sql_type, written(row, places), parts, row)

    def _argument(self, row: ScalarFunction, position: int, sql_type: SqlType, depth: int) -> Node:
        """Texts that mean something to the function are given to it most of the time."""
        special = SPECIAL.get((row.name, position))
        if row.name == "substring" and row.arguments[1:] == (TEXT,) and position == 1:
            special = PATTERNS
        if row.name == "timezone" and sql_type != TEXT:
            special = None
        wanted = {TEXT: str, INT4: int, INT8: int}.get(sql_type)
        if wanted is None or self._chance(0.1):
            return self._node(sql_type, depth)
        fitting = [value for value in special or () if type(value) is wanted]
        if not fitting:
            return self._node(sql_type, depth)
        return self._constant(sql_type, self._random.choice(fitting))

    def _choice(self, sql_type: SqlType, depth: int) -> Node:
        match self._random.randrange(5):
            case 0:
                parts = (self._node(BOOL, depth - 1), *self._nodes(sql_type, 2, depth))
                return Node(sql_type, "CASE WHEN {0} THEN {1} ELSE {2} END", parts)
            case 1:
                return Node(sql_type, "coalesce({0}, {1})", self._nodes(sql_type, 2, depth))
            case 2 if sql_type.kind is not Kind.JSONB:
                return Node(sql_type, "nullif({0}, {1})", self._nodes(sql_type, 2, depth))
            case 3 if sql_type.kind is not Kind.JSONB:
                parts = (self._node(INT4, depth - 1), *self._nodes(sql_type, 3, depth))
                form = "CASE {0} WHEN 1 THEN {1} WHEN 2 THEN {2} ELSE {3} END"
                return Node(sql_type, form, parts)
            case _:
                form = "({0})::" + type_name(sql_type)
                return Node(sql_type, form, self._nodes(sql_type, 1, depth))

    def _condition(self, depth: int) -> Node:
        compared = self._random.choice(TYPES)
        match self._random.randrange(6):
            case 0:
                return Node(BOOL, self._random.choice(JUNCTIONS), self._nodes(BOOL, 3, depth))
            case 1:
                form = self._random.choice(("({0} IS NULL)", "({0} IS NOT NULL)"))
                return Node(BOOL, form, self._nodes(compared, 1, depth))
            case 2:
                return Node(BOOL, "({0} IN ({1}, {2}))", self._nodes(compared, 3, depth))
            case 3:
                return Node(BOOL, "({0} BETWEEN {1} AND {2})", self._nodes(compared, 3, depth))
            case 4:
                form = self._random.choice(("({0} IS TRUE)", "({0} IS NOT FALSE)", "(NOT {0})",
                                            "({0} IS UNKNOWN)"))  # fmt: skip
                return Node(BOOL, form, self._nodes(BOOL, 1, depth))
            case _:
                form = f"({{0}} {self._random.choice(COMPARISONS)} {{1}})"
                return Node(BOOL, form, self._nodes(compared, 2, depth))
