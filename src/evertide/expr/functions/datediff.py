"""datediff: how many borders of a unit of time lie between two moments."""

from collections.abc import Callable
from typing import Final

from evertide.expr.civil import civil_from_days
from evertide.expr.functions.build import partial
from evertide.expr.functions.datetime_arithmetic import is_infinite, is_infinite_date
from evertide.expr.functions.datetime_fields import field_name
from evertide.vocab.datum import MICROS_PER_DAY
from evertide.vocab.errors import DatetimeFieldOverflow, InvalidParameterValue
from evertide.vocab.sql_type import DATE, INT8, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ

_SECOND: Final = 1_000_000
# Each unit as a number that grows by one at its borders, from microseconds.
_OF_CLOCK: Final = {
    "microseconds": 1,
    "milliseconds": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": MICROS_PER_DAY,
}
_THURSDAY: Final = 3  # the epoch's day, counted from Monday


def _months(days: int) -> int:
    year, month, _ = civil_from_days(days)
    return 12 * year + month - 1


# The same from days. Centuries and millennia begin with years that end in 1.
_OF_CALENDAR: Final[dict[str, Callable[[int], int]]] = {
    "week": lambda days: (days + _THURSDAY) // 7,
    "month": _months,
    "quarter": lambda days: _months(days) // 3,
    "year": lambda days: _months(days) // 12,
    "decade": lambda days: _months(days) // 120,
    "century": lambda days: (_months(days) // 12 - 1) // 100,
    "millennium": lambda days: (_months(days) // 12 - 1) // 1_000,
}


def _between(unit: str, start: int, end: int) -> int:
    if is_infinite(start) or is_infinite(end):
        raise DatetimeFieldOverflow("timestamp out of range")
    field = field_name(unit)
    size = _OF_CLOCK.get(field)
    if size is not None:
        return end // size - start // size
    count = _OF_CALENDAR.get(field)
    if count is None:
        raise InvalidParameterValue(f"unit '{unit}' not recognized")
    return count(end // MICROS_PER_DAY) - count(start // MICROS_PER_DAY)


def _between_dates(unit: str, start: int, end: int) -> int:
    if is_infinite_date(start) or is_infinite_date(end):
        raise DatetimeFieldOverflow("date out of range")
    return _between(unit, start * MICROS_PER_DAY, end * MICROS_PER_DAY)


ROWS: Final = (
    *(partial("datediff", (TEXT, t, t), INT8, _between) for t in (TIMESTAMP, TIMESTAMPTZ, TIME)),
    partial("datediff", (TEXT, DATE, DATE), INT8, _between_dates),
)
