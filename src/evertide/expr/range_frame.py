"""RANGE frames with offsets: rows whose keys are no farther than a distance from a row's own.

Keys and distances are put on one line: numbers as they are, dates and timestamps in microseconds,
intervals by the length that they compare by. Nothing overflows there. A day of a shorter month may
come before that of a longer one when both are moved by months; borders move forward all the same.
"""

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import inf, isinf, isnan
from typing import Final, TypeAlias, cast

from evertide.expr.civil import add_months, civil_from_days, days_from_civil
from evertide.expr.exact_sum import EXACT
from evertide.expr.functions.datetime_arithmetic import is_infinite, is_infinite_date
from evertide.expr.relation import Distance
from evertide.vocab.datum import MICROS_PER_DAY, Datum, Interval
from evertide.vocab.sql_type import FLOAT8, INT8, INTERVAL, NUMERIC, Kind, SqlType

# Places compare with one another: whole numbers, or NaN behind everything else.
_Place: TypeAlias = float | tuple[bool, float | Decimal]

# What keys are moved by.
DISTANCES: Final = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8), INT8),
    Kind.NUMERIC: NUMERIC,
    **dict.fromkeys((Kind.FLOAT4, Kind.FLOAT8), FLOAT8),
    **dict.fromkeys(
        (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL), INTERVAL
    ),
}


def is_distance(kind: Kind, value: Datum) -> bool:
    """Whether keys of this kind may be so far apart: it is not negative."""
    if isinstance(value, Interval):
        return (value.micros if kind is Kind.TIME else value.span_micros()) >= 0
    number = cast("float | Decimal", value)
    return not isnan(number) and number >= 0


def borders(
    keys: Sequence[Datum], sql_type: SqlType, descending: bool, distance: Distance, *, end: bool
) -> list[int]:
    """Where each row's frame begins, or with `end` what comes right after it.

    The keys are in order. NULLs, at one end of it, are near one another and nothing else.
    """
    first = next((i for i, key in enumerate(keys) if key is not None), len(keys))
    known = [key for key in keys if key is not None]
    behind = first + len(known)
    found = _among(known, sql_type.kind, descending, distance, end=end)
    return [
        *[first if end else 0] * first,
        *(first + at for at in found),
        *[len(keys) if end else behind] * (len(keys) - behind),
    ]


def _among(
    keys: Sequence[Datum], kind: Kind, descending: bool, distance: Distance, *, end: bool
) -> list[int]:
    """The same where no key is NULL."""
    place_of = _PLACES.get(kind, _number)
    places = [place_of(key) for key in keys]
    forward = distance.following is not descending
    passes = _PASSES[descending, end]
    found: list[int] = []
    at = 0
    for key in keys:
        limit = _moved(kind, key, distance.by.value, forward=forward)
        if limit is None:
            limit = (False, -inf if end is descending else inf)
        while at < len(places) and passes(places[at], limit):
            at += 1
        found.append(at)
    return found


# Whether a place comes before a border, by whether keys descend and the border is an end.
_PASSES: Final[dict[tuple[bool, bool], Callable[[_Place, _Place], bool]]] = {
    (False, False): operator.lt,
    (False, True): operator.le,
    (True, False): operator.gt,
    (True, True): operator.ge,
}


def _moved(kind: Kind, key: Datum, by: Datum, *, forward: bool) -> _Place | None:
    """The place so far from a key; None: infinitely far back from an infinity, which no number is
    beyond."""
    sign = 1 if forward else -1
    if kind is Kind.INTERVAL:
        return _span(key) + sign * _span(by)
    if kind is Kind.TIME:
        return cast(int, key) + sign * cast(Interval, by).micros
    if isinstance(by, Interval):
        return _later(_PLACES[kind](key), by, sign)
    if isinstance(key, int):
        return key + sign * cast(int, by)
    return _farther(cast("float | Decimal", key), cast("float | Decimal", by), sign)


def _later(micros: _Place, by: Interval, sign: int) -> _Place:
    """A point in time moved by months, then days, then microseconds."""
    if not isinstance(micros, int):
        return micros
    days, rest = divmod(micros, MICROS_PER_DAY)
    if by.months:
        days = days_from_civil(*add_months(*civil_from_days(days), sign * by.months))
    return (days + sign * by.days) * MICROS_PER_DAY + rest + sign * by.micros


def _farther(key: float | Decimal, by: float | Decimal, sign: int) -> _Place | None:
    if isnan(key):
        return _number(key)
    if isinf(key) and isinf(by) and (key > 0) is (sign < 0):
        return None
    if isinstance(key, Decimal):
        move = EXACT.add if sign > 0 else EXACT.subtract
        return _number(move(key, cast(Decimal, by)))
    return _number(key + sign * cast(float, by))


def _number(value: Datum) -> _Place:
    if isinstance(value, int):
        return value
    number = cast("float | Decimal", value)
    return (True, 0.0) if isnan(number) else (False, number)


def _date(value: Datum) -> _Place:
    days = cast(int, value)
    return _endless(days) if is_infinite_date(days) else days * MICROS_PER_DAY


def _timestamp(value: Datum) -> _Place:
    micros = cast(int, value)
    return _endless(micros) if is_infinite(micros) else micros


def _endless(value: int) -> float:
    return inf if value > 0 else -inf


def _span(value: Datum) -> int:
    return cast(Interval, value).span_micros()


_PLACES: Final[dict[Kind, Callable[[Datum], _Place]]] = {
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamp,
    Kind.INTERVAL: _span,
}
