"""From a query's predicates to the keys of an index that it needs; pure.

What is found may be more than the predicates ask for, never less: they are applied afterwards.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evertide.catalog.objects import Item
from evertide.dataflow.lookup import (
    NOTHING,
    NULLS,
    VALUES,
    Span,
    comparison_spans,
    intersection,
    point,
    union,
)
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.scalar import And, Call, ColumnRef, IsNull, Literal, Or, Scalar
from evertide.persist.coding.keys import encode_key
from evertide.vocab.sql_type import Kind, SqlType

# Lists on several columns multiply: beyond so many keys those of later columns are left out.
MAX_SPANS: Final = 10_000

_TURNED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Casts under which a value keeps its key.
_KEPT_BY_CAST: Final = frozenset(
    {
        (Kind.INT2, Kind.INT4),
        (Kind.INT2, Kind.INT8),
        (Kind.INT4, Kind.INT8),
        (Kind.FLOAT4, Kind.FLOAT8),
        (Kind.VARCHAR, Kind.TEXT),
    }
)


@dataclass(frozen=True, slots=True)
class KeySpans:
    """Stretches of an index's keys. `depth` tells how much of the key chose them."""

    spans: tuple[Span, ...]
    # Each is one whole key.
    exact: bool
    # Twice the leading columns that are bound to values, and one more for a range behind them.
    depth: int

    @property
    def how(self) -> str:
        """In the words of EXPLAIN."""
        if self.exact:
            return "index lookup"
        return "index lookup (prefix)" if all(s.is_point for s in self.spans) else "index range"


def key_spans(predicates: Sequence[Scalar], key: Sequence[tuple[int, SqlType]]) -> KeySpans | None:
    """The keys of all rows for which the predicates can be true; None: any key.

    `key` is the position and type of each key column.
    """
    conjuncts = [part for predicate in predicates for part in _conjuncts(predicate)]
    found = _by_columns(conjuncts, key)
    for conjunct in conjuncts:
        if not isinstance(conjunct, Or) or all(isinstance(a, Call) for a in conjunct.arguments):
            continue  # comparisons alone have been looked at, column by column
        arms = [key_spans([arm], key) for arm in conjunct.arguments]
        bounded = [arm for arm in arms if arm is not None]
        if len(bounded) == len(arms):
            either = _either(bounded)
            found = either if found is None else _both(found, either)
    return found


def _either(arms: Sequence[KeySpans]) -> KeySpans:
    spans = union(span for arm in arms for span in arm.spans)
    exact = all(arm.exact for arm in arms)
    return KeySpans(spans, exact, min((arm.depth for arm in arms), default=0))


def _both(one: KeySpans, other: KeySpans) -> KeySpans:
    spans = intersection(one.spans, other.spans)
    return KeySpans(spans, one.exact or other.exact, max(one.depth, other.depth))


def _conjuncts(scalar: Scalar) -> Iterable[Scalar]:
    if isinstance(scalar, And):
        for argument in scalar.arguments:
            yield from _conjuncts(argument)
    else:
        yield scalar


def _by_columns(conjuncts: Sequence[Scalar], key: Sequence[tuple[int, SqlType]]) -> KeySpans | None:
    """Values of the first columns, then stretches of the next."""
    prefixes: list[bytes] = [b""]
    for depth, (column, sql_type) in enumerate(key):
        spans = _all_of(conjuncts, column, sql_type)
        if spans is None or spans == (VALUES,) or len(prefixes) * len(spans) > MAX_SPANS:
            break  # that a column is not NULL chooses too little to be worth it
        if not all(span.is_point for span in spans):
            behind = [Span(p + s.lower, p + s.upper) for p in prefixes for s in spans]
            return KeySpans(union(behind), exact=False, depth=2 * depth + 1)
        prefixes = [prefix + span.lower for prefix in prefixes for span in spans]
    else:
        return KeySpans(union(map(point, prefixes)), exact=True, depth=2 * len(key))
    if depth == 0:
        return None
    return KeySpans(union(map(point, prefixes)), exact=False, depth=2 * depth)


def _all_of(scalars: Sequence[Scalar], column: int, sql_type: SqlType) -> tuple[Span, ...] | None:
    """Keys that a column can have where all of these are true; None: any."""
    found: tuple[Span, ...] | None = None
    for scalar in scalars:
        spans = _column_spans(scalar, column, sql_type)
        if spans is not None:
            found = spans if found is None else intersection(found, spans)
    return found


def _column_spans(scalar: Scalar, column: int, sql_type: SqlType) -> tuple[Span, ...] | None:
    """Keys that a column can have where this is true; None: any."""
    match scalar:
        case And(arguments=arguments):
            return _all_of(arguments, column, sql_type)
        case Or(arguments=arguments):
            arms = [_column_spans(arm, column, sql_type) for arm in arguments]
            found = [spans for spans in arms if spans is not None]
            return union(s for spans in found for s in spans) if len(found) == len(arms) else None
        case Literal(value=None) | Literal(value=False):
            return NOTHING
        case IsNull(argument=ColumnRef(index=index)) if index == column:
            return (NULLS,)
        case ColumnRef(index=index) if index == column:
            return (point(encode_key(sql_type, True)),)
        case Call(function=function, arguments=(ColumnRef(index=index),)) if (
            function.name == "not" and index == column
        ):
            return (point(encode_key(sql_type, False)),)
        case Call(function=function, arguments=(argument,)) if function.name == "not":
            is_null = isinstance(argument, IsNull) and _is_column(argument.argument, column)
            return (VALUES,) if is_null else None
        case Call(function=function, arguments=(left, right)):
            return _comparison(function, left, right, column, sql_type)
        case _:
            return None


def _comparison(
    function: ScalarFunction, left: Scalar, right: Scalar, column: int, sql_type: SqlType
) -> tuple[Span, ...] | None:
    operator = function.name
    if operator in _TURNED and isinstance(left, Literal):
        left, right, operator = right, left, _TURNED[operator]
    if not isinstance(right, Literal) or not _is_column(left, column):
        return None
    if operator == "array_contains":
        return _elements(right, sql_type)
    if operator not in _TURNED or not _one_key(sql_type, right.type):
        return None
    if right.value is None:
        return NOTHING
    return comparison_spans(operator, encode_key(right.type, right.value))


def _elements(array: Literal, sql_type: SqlType) -> tuple[Span, ...] | None:
    """`x = ANY (array)` of an array of one dimension."""
    element = array.type.element
    if element is None or not _one_key(sql_type, element) or not isinstance(array.value, tuple):
        return None
    if any(isinstance(value, tuple) for value in array.value):
        return None
    values = [value for value in array.value if value is not None]
    return union(point(encode_key(element, value)) for value in values)


def _one_key(column: SqlType, literal: SqlType) -> bool:
    return column.kind is literal.kind or (column.kind, literal.kind) in _KEPT_BY_CAST


def _is_column(scalar: Scalar, column: int) -> bool:
    """Whether it is the column, or a cast of it that keeps its key."""
    match scalar:
        case ColumnRef(index=index):
            return index == column
        case Call(arguments=(ColumnRef(index=index, type=before),), type=after, function=function):
            kinds = (before.kind, after.kind)
            return index == column and kinds in _KEPT_BY_CAST and function.name == after.kind.value
        case _:
            return False


def best(found: Sequence[tuple[Item, KeySpans]]) -> tuple[Item, KeySpans] | None:
    """Which of several indexes to ask: one whose whole key is known, or the most of it."""
    return max(found, key=lambda pair: telling(pair[1]), default=None)


def telling(spans: KeySpans) -> tuple[bool, int]:
    """How much of its key an index is told; more is better."""
    return spans.exact, spans.depth
