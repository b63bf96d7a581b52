"""Ranges, and their text: `[1,5)`, `(,2024-01-01)`, `empty`.

A range is (lower, upper, has_lower, has_upper), where a bound of None is at infinity. Integers and
dates begin at a bound that is in the range and end before one that is not, so that equal ranges
are the same.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from evertide.expr.datetime_text import (
    format_date,
    format_timestamp,
    format_timestamptz,
    parse_date,
    parse_timestamp,
    parse_timestamptz,
)
from evertide.expr.numeric_value import numeric_text, parse_integer, parse_numeric
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.datum import DATE_INFINITY, DATE_MINUS_INFINITY, EMPTY_RANGE, Datum
from evertide.vocab.errors import (
    DataException,
    DatetimeFieldOverflow,
    InvalidTextRepresentation,
    NumericOutOfRange,
)
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

_WORD: Final = "empty"
_BOUND = r'(?:"(?:[^"\\]|\\.)*"|\\.|[^"\\,()\[\]])*'
_RANGE = re.compile(rf"\s*([\[(])({_BOUND}),({_BOUND})([\])])\s*", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|\\(.)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[()\[\],"\\\s]|^$')
_LIMITS: Final = {Kind.INT4: (-(2**31), 2**31 - 1), Kind.INT8: (-(2**63), 2**63 - 1)}
_DISCRETE: Final = (Kind.INT4, Kind.INT8, Kind.DATE)


class Span(NamedTuple):
    """A range that is not empty."""

    lower: Datum
    upper: Datum
    has_lower: bool
    has_upper: bool


def base_of(range_type: SqlType) -> SqlType:
    """The type of a range's bounds."""
    return RANGE_BASES[range_type.kind]


def make_range(base: SqlType, lower: Datum, upper: Datum, bounds: str) -> tuple[Datum, ...]:
    """The range between two bounds; `bounds` says which are in it: `[]`, `[)`, `(]` or `()`."""
    key = key_encoder(base)
    if lower is not None and upper is not None and key(lower) > key(upper):
        raise DataException("range lower bound must be less than or equal to range upper bound")
    has_lower, has_upper = bounds[0] == "[", bounds[1] == "]"
    return settled(base, Span(lower, upper, has_lower, has_upper))


def settled(base: SqlType, span: Span) -> tuple[Datum, ...]:
    """The one form of a range."""
    lower, upper, has_lower, has_upper = span
    has_lower, has_upper = has_lower and lower is not None, has_upper and upper is not None
    if base.kind in _DISCRETE:
        if lower is not None and not has_lower and not _is_endless(base, lower):
            lower, has_lower = _next(base, lower), True
        if upper is not None and has_upper and not _is_endless(base, upper):
            upper, has_upper = _next(base, upper), False
    if lower is not None and upper is not None:
        key = key_encoder(base)
        low, high = key(lower), key(upper)
        if low > high or (low == high and not (has_lower and has_upper)):
            return EMPTY_RANGE
    return (lower, upper, has_lower, has_upper)


def _is_endless(base: SqlType, bound: Datum) -> bool:
    """A date that has no next one."""
    return base.kind is Kind.DATE and bound in (DATE_INFINITY, DATE_MINUS_INFINITY)


def _next(base: SqlType, bound: Datum) -> Datum:
    assert isinstance(bound, int), "integers and dates are integers"
    if base.kind is Kind.DATE:
        if bound + 1 == DATE_INFINITY:
            raise DatetimeFieldOverflow("date out of range")
    elif bound == _LIMITS[base.kind][1]:
        raise NumericOutOfRange(f"{base} out of range")
    return bound + 1


def _integer(kind: Kind) -> Callable[[str], Datum]:
    name = str(SqlType(kind))
    return lambda text: parse_integer(text, name, *_LIMITS[kind])


_READERS: Final[dict[Kind, Callable[[str], Datum]]] = {
    Kind.INT4: _integer(Kind.INT4),
    Kind.INT8: _integer(Kind.INT8),
    Kind.NUMERIC: parse_numeric,
    Kind.DATE: parse_date,
    Kind.TIMESTAMP: parse_timestamp,
    Kind.TIMESTAMPTZ: parse_timestamptz,
}
_WRITERS: Final[dict[Kind, Callable[..., str]]] = {
    Kind.INT4: str,
    Kind.INT8: str,
    Kind.NUMERIC: numeric_text,
    Kind.DATE: format_date,
    Kind.TIMESTAMP: format_timestamp,
    Kind.TIMESTAMPTZ: format_timestamptz,
}


def parse_range(range_type: SqlType) -> Callable[[str], Datum]:
    """How ranges of a type are read."""
    base = base_of(range_type)
    read = _READERS[base.kind]

    def parse(text: str) -> Datum:
        if text.strip().lower() == _WORD:
            return EMPTY_RANGE
        found = _RANGE.fullmatch(text)
        if found is None:
            raise InvalidTextRepresentation(f'malformed range literal: "{text}"')
        opening, lower, upper, closing = found.groups()
        bounds = [read(_unquoted(part)) if part else None for part in (lower, upper)]
        return make_range(base, bounds[0], bounds[1], f"{opening}{closing}")

    return parse


def range_text(range_type: SqlType) -> Callable[[Datum], str]:
    """How ranges of a type are written."""
    write = _WRITERS[base_of(range_type).kind]

    def text(datum: Datum) -> str:
        if datum == EMPTY_RANGE:
            return _WORD
        assert isinstance(datum, tuple), "a range is a tuple"
        lower, upper, has_lower, has_upper = datum
        shown = ["" if bound is None else _quoted(write(bound)) for bound in (lower, upper)]
        return f"{'[' if has_lower else '('}{shown[0]},{shown[1]}{']' if has_upper else ')'}"

    return text


def _unquoted(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        quoted, escaped = found.groups()
        if quoted is None:
            return str(escaped)
        return _ESCAPED.sub(r"\1", str(quoted))

    return _QUOTED.sub(plain, text)


def _quoted(text: str) -> str:
    if not _NEEDS_QUOTES.search(text):
        return text
    return f'"{text}"'  # no bound's text has a quote or a backslash
