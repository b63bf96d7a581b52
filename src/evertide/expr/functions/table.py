"""The function table: all rows of all families, found by name, signature or type."""

from typing import Final, TypeAlias

from evertide.expr.functions import (
    aggregate,
    array,
    array_change,
    binary,
    boolean,
    cast,
    catalog,
    comparison,
    datediff,
    datetime_arithmetic,
    datetime_fields,
    datetime_functions,
    encoding,
    floating,
    hashes,
    identifiers,
    integer,
    internal,
    jsonb,
    jsonb_change,
    jsonb_conversion,
    lists,
    numeric,
    pattern,
    ranges,
    regex,
    text,
    text_conversion,
    text_format,
    to_char,
    type_modifiers,
    width_bucket,
)
from evertide.expr.functions.cast import Cast, CastContext, find_cast, made_cast_of
from evertide.expr.functions.each_element import asked_of_each, each_element
from evertide.expr.functions.in_order import ordered_aggregate, ordered_row
from evertide.expr.functions.made import made_row
from evertide.expr.functions.made_aggregate import made_aggregate
from evertide.expr.functions.row import AggregateFunction, ScalarFunction
from evertide.vocab.errors import UndefinedFunction

__all__ = [
    "AGGREGATE_FUNCTIONS", "SCALAR_FUNCTIONS", "Cast", "CastContext", "by_signature",
    "find_aggregate", "find_cast", "find_scalar",
]  # fmt: skip

Function: TypeAlias = ScalarFunction | AggregateFunction

SCALAR_FUNCTIONS: Final[tuple[ScalarFunction, ...]] = (
    *comparison.ROWS, *integer.ROWS, *floating.ROWS, *numeric.ROWS, *boolean.ROWS, *text.ROWS,
    *pattern.ROWS, *regex.ROWS, *datetime_arithmetic.ROWS, *datetime_fields.ROWS,
    *datetime_functions.ROWS, *jsonb.ROWS, *jsonb_conversion.ROWS, *binary.ROWS, *array.ROWS,
    *catalog.ROWS, *cast.ROWS, *text_conversion.ROWS, *type_modifiers.ROWS, *aggregate.ROWS,
    *internal.ROWS, *to_char.ROWS, *encoding.ROWS, *text_format.ROWS, *array_change.ROWS,
    *jsonb_change.ROWS, *width_bucket.ROWS, *lists.ROWS, *ranges.ROWS,
    *hashes.ROWS, *identifiers.ROWS, *datediff.ROWS,
)  # fmt: skip
AGGREGATE_FUNCTIONS: Final[tuple[AggregateFunction, ...]] = aggregate.AGGREGATES


def _grouped(rows: tuple[ScalarFunction, ...]) -> dict[str, tuple[ScalarFunction, ...]]:
    groups: dict[str, list[ScalarFunction]] = {}
    for row in rows:
        groups.setdefault(row.name, []).append(row)
    return {name: tuple(group) for name, group in groups.items()}


_BY_NAME: Final = _grouped(SCALAR_FUNCTIONS)
_AGGREGATES_BY_NAME: Final[dict[str, tuple[AggregateFunction, ...]]] = {
    name: tuple(row for row in AGGREGATE_FUNCTIONS if row.name == name)
    for name in dict.fromkeys(row.name for row in AGGREGATE_FUNCTIONS)
}
_BY_SIGNATURE: Final[dict[str, Function]] = {
    **{row.signature: row for row in SCALAR_FUNCTIONS},
    **{row.signature: row for row in AGGREGATE_FUNCTIONS},
}
assert len(_BY_SIGNATURE) == len(SCALAR_FUNCTIONS) + len(AGGREGATE_FUNCTIONS), (
    "two rows have one signature"
)


def find_scalar(name: str) -> tuple[ScalarFunction, ...]:
    """All functions, operators and casts called so; casts have the names of their target types."""
    return _BY_NAME.get(name, ())


def find_aggregate(name: str) -> tuple[AggregateFunction, ...]:
    """All aggregates called so."""
    return _AGGREGATES_BY_NAME.get(name, ())


def _made(signature: str) -> Function | None:
    """A row for types that are made of others, or made of other rows."""
    asked = asked_of_each(signature)
    if asked is not None:
        test = by_signature(asked[0])
        return each_element(test, asked[1]) if isinstance(test, ScalarFunction) else None
    made = made_row(signature) or made_aggregate(signature) or made_cast_of(signature)
    return made or ordered_row(signature) or ordered_aggregate(signature, by_signature)


def by_signature(signature: str) -> Function:
    """The row with this signature: the same object as long as the process lives.

    >>> by_signature("+(integer,integer)").result.kind.value
    'int4'
    """
    found = _BY_SIGNATURE.get(signature) or _made(signature)
    if found is None:
        raise UndefinedFunction(f"function {signature} does not exist")
    return found
