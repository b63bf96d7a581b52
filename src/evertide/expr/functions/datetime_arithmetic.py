"""Sums and differences of dates, times and intervals.

Infinite dates and timestamps stay what they are; their difference is an error. Timestamps with
time zone are in UTC, where a day has 24 hours, so they add like those without.
"""

import math
from typing import Final

from evertide.expr.civil import add_months, civil_from_days, days_from_civil
from evertide.expr.datetime_text import MAX_DATE_DAYS, MAX_TIMESTAMP, MIN_DAYS, MIN_TIMESTAMP
from evertide.expr.functions.build import guarded, partial, total
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.interval_text import checked_interval
from evertide.vocab.datum import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    MICROS_PER_DAY,
    TS_INFINITY,
    TS_MINUS_INFINITY,
    Interval,
)
from evertide.vocab.errors import DatetimeFieldOverflow, DivisionByZero
from evertide.vocab.sql_type import (
    DATE,
    FLOAT8,
    INT4,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
)

_SECONDS_PER_DAY: Final = 86_400


def is_infinite_date(days: int) -> bool:
    return days in (DATE_INFINITY, DATE_MINUS_INFINITY)


def is_infinite(micros: int) -> bool:
    return micros in (TS_INFINITY, TS_MINUS_INFINITY)


def checked_date(days: int) -> int:
    """A date within PostgreSQL's range, or an error."""
    if MIN_DAYS <= days <= MAX_DATE_DAYS:
        return days
    raise DatetimeFieldOverflow("date out of range")


def checked_timestamp(micros: int) -> int:
    """A timestamp within the stored range, or an error."""
    if MIN_TIMESTAMP <= micros <= MAX_TIMESTAMP:
        return micros
    raise DatetimeFieldOverflow("timestamp out of range")


def timestamp_of_date(days: int) -> int:
    """Midnight of a date."""
    if is_infinite_date(days):
        return TS_INFINITY if days > 0 else TS_MINUS_INFINITY
    micros = days * MICROS_PER_DAY
    if micros > MAX_TIMESTAMP:
        raise DatetimeFieldOverflow("date out of range for timestamp")
    return micros


def _add_days(days: int, count: int) -> int:
    return days if is_infinite_date(days) else checked_date(days + count)


def _subtract_days(days: int, count: int) -> int:
    return _add_days(days, -count)


def _days_between(left: int, right: int) -> int:
    if is_infinite_date(left) or is_infinite_date(right):
        raise DatetimeFieldOverflow("cannot subtract infinite dates")
    return left - right


def add_interval(micros: int, interval: Interval) -> int:
    """A timestamp later by months, then days, then microseconds."""
    if is_infinite(micros):
        return micros
    days, micros_of_day = divmod(micros, MICROS_PER_DAY)
    if interval.months:
        days = days_from_civil(*add_months(*civil_from_days(days), interval.months))
        checked_timestamp(days * MICROS_PER_DAY)
    days += interval.days
    return checked_timestamp(days * MICROS_PER_DAY + micros_of_day + interval.micros)


def negate(interval: Interval) -> Interval:
    """The interval in the other direction."""
    return checked_interval(-interval.months, -interval.days, -interval.micros)


def _subtract_interval(micros: int, interval: Interval) -> int:
    return add_interval(micros, Interval(-interval.months, -interval.days, -interval.micros))


def _interval_plus_timestamp(interval: Interval, micros: int) -> int:
    return add_interval(micros, interval)


def _date_plus_interval(days: int, interval: Interval) -> int:
    return add_interval(timestamp_of_date(days), interval)


def _interval_plus_date(interval: Interval, days: int) -> int:
    return _date_plus_interval(days, interval)


def _date_minus_interval(days: int, interval: Interval) -> int:
    return _subtract_interval(timestamp_of_date(days), interval)


def _date_plus_time(days: int, micros: int) -> int:
    if is_infinite_date(days):
        return timestamp_of_date(days)
    return checked_timestamp(timestamp_of_date(days) + micros)


def time_between(left: int, right: int) -> Interval:
    """The difference of timestamps in days and microseconds, both of one sign."""
    if is_infinite(left) or is_infinite(right):
        raise DatetimeFieldOverflow("cannot subtract infinite timestamps")
    difference = left - right
    if not -(2**63) <= difference < 2**63:
        raise DatetimeFieldOverflow("interval out of range")
    return justify_hours(Interval(0, 0, difference))


def justify_hours(interval: Interval) -> Interval:
    """Full days' worth of time becomes days; days and time get one sign."""
    whole = int_quotient(interval.micros, MICROS_PER_DAY)
    days, micros = interval.days + whole, interval.micros - whole * MICROS_PER_DAY
    if days > 0 > micros:
        days, micros = days - 1, micros + MICROS_PER_DAY
    elif days < 0 < micros:
        days, micros = days + 1, micros - MICROS_PER_DAY
    return checked_interval(interval.months, days, micros)


def justify_days(interval: Interval) -> Interval:
    """Every 30 days become a month; months and days get one sign."""
    whole = int_quotient(interval.days, 30)
    months, days = interval.months + whole, interval.days - whole * 30
    if months > 0 > days:
        months, days = months - 1, days + 30
    elif months < 0 < days:
        months, days = months + 1, days - 30
    return checked_interval(months, days, interval.micros)


def justify_interval(interval: Interval) -> Interval:
    """Both, and all parts get one sign."""
    months, days, micros = interval
    if (days > 0 and micros > 0) or (days < 0 and micros < 0):
        whole = int_quotient(days, 30)
        months, days = months + whole, days - whole * 30
    whole = int_quotient(micros, MICROS_PER_DAY)
    days, micros = days + whole, micros - whole * MICROS_PER_DAY
    whole = int_quotient(days, 30)
    months, days = months + whole, days - whole * 30
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - 30
    if days > 0 > micros:
        days, micros = days - 1, micros + MICROS_PER_DAY
    elif days < 0 < micros:
        days, micros = days + 1, micros - MICROS_PER_DAY
    return checked_interval(months, days, micros)


def int_quotient(value: int, divisor: int) -> int:
    """The quotient rounded towards zero."""
    return value // divisor if value >= 0 else -(-value // divisor)


def _add_time(micros: int, interval: Interval) -> int:
    return (micros + interval.micros) % MICROS_PER_DAY


def _interval_plus_time(interval: Interval, micros: int) -> int:
    return _add_time(micros, interval)


def _subtract_from_time(micros: int, interval: Interval) -> int:
    return (micros - interval.micros) % MICROS_PER_DAY


def _time_between_times(left: int, right: int) -> Interval:
    return Interval(0, 0, left - right)


def _add_intervals(left: Interval, right: Interval) -> Interval:
    return checked_interval(
        left.months + right.months, left.days + right.days, left.micros + right.micros
    )


def _subtract_intervals(left: Interval, right: Interval) -> Interval:
    return checked_interval(
        left.months - right.months, left.days - right.days, left.micros - right.micros
    )


def multiply_interval(interval: Interval, factor: float) -> Interval:
    """Each part times the factor; fractions spill from months to days to microseconds."""
    return _scaled(interval.months * factor, interval.days * factor,
                   interval.micros * factor)  # fmt: skip


def _multiply_reversed(factor: float, interval: Interval) -> Interval:
    return multiply_interval(interval, factor)


def divide_interval(interval: Interval, divisor: float) -> Interval:
    """Each part divided, spilling as a product does."""
    if divisor == 0:
        raise DivisionByZero("division by zero")
    return _scaled(interval.months / divisor, interval.days / divisor,
                   interval.micros / divisor)  # fmt: skip


def _scaled(months: float, days: float, micros: float) -> Interval:
    """PostgreSQL's own steps in its own order: its roundings show in the result."""
    if not all(map(math.isfinite, (months, days, micros))):
        raise DatetimeFieldOverflow("interval out of range")
    whole_months, whole_days = int(months), int(days)
    days_of_months = _rounded((months - whole_months) * 30)
    fraction_of_days = days - whole_days + days_of_months - int(days_of_months)
    seconds = _rounded(fraction_of_days * _SECONDS_PER_DAY)
    if abs(seconds) >= _SECONDS_PER_DAY:
        carried = int(seconds / _SECONDS_PER_DAY)
        whole_days += carried
        seconds -= carried * _SECONDS_PER_DAY
    whole_days += int(days_of_months)
    return checked_interval(whole_months, whole_days, round(micros + seconds * 1_000_000))


def _rounded(value: float) -> float:
    """To the microsecond."""
    return round(value * 1_000_000) / 1_000_000


def _timestamp_rows(sql_type: SqlType) -> list[ScalarFunction]:
    return [
        partial("+", (sql_type, INTERVAL), sql_type, add_interval),
        partial("+", (INTERVAL, sql_type), sql_type, _interval_plus_timestamp),
        partial("-", (sql_type, INTERVAL), sql_type, _subtract_interval),
        partial("-", (sql_type, sql_type), INTERVAL, time_between),
    ]


_FINITE: Final = "abs(cast({0} as bigint)) < 2147483647 AND abs(cast({1} as bigint)) < 2147483647"

ROWS: Final = (
    *_timestamp_rows(TIMESTAMP),
    *_timestamp_rows(TIMESTAMPTZ),
    partial("+", (DATE, INT4), DATE, _add_days),
    partial("+", (INT4, DATE), DATE, lambda count, days: _add_days(days, count)),
    partial("-", (DATE, INT4), DATE, _subtract_days),
    guarded(
        "-",
        (DATE, DATE),
        INT4,
        _days_between,
        spark=f"CASE WHEN {_FINITE} THEN try_subtract({{0}}, {{1}}) END",
        fails=f"NOT ({_FINITE}) AND {{0}} IS NOT NULL AND {{1}} IS NOT NULL",
        error=DatetimeFieldOverflow("cannot subtract infinite dates"),
    ),
    partial("+", (DATE, INTERVAL), TIMESTAMP, _date_plus_interval),
    partial("+", (INTERVAL, DATE), TIMESTAMP, _interval_plus_date),
    partial("-", (DATE, INTERVAL), TIMESTAMP, _date_minus_interval),
    partial("+", (DATE, TIME), TIMESTAMP, _date_plus_time),
    partial("+", (TIME, DATE), TIMESTAMP, lambda micros, days: _date_plus_time(days, micros)),
    total("+", (TIME, INTERVAL), TIME, _add_time),
    total("+", (INTERVAL, TIME), TIME, _interval_plus_time),
    total("-", (TIME, INTERVAL), TIME, _subtract_from_time),
    total("-", (TIME, TIME), INTERVAL, _time_between_times),
    partial("+", (INTERVAL, INTERVAL), INTERVAL, _add_intervals),
    partial("-", (INTERVAL, INTERVAL), INTERVAL, _subtract_intervals),
    partial("-", (INTERVAL,), INTERVAL, negate),
    partial("*", (INTERVAL, FLOAT8), INTERVAL, multiply_interval),
    partial("*", (FLOAT8, INTERVAL), INTERVAL, _multiply_reversed),
    partial("/", (INTERVAL, FLOAT8), INTERVAL, divide_interval),
    partial("justify_hours", (INTERVAL,), INTERVAL, justify_hours),
    partial("justify_days", (INTERVAL,), INTERVAL, justify_days),
    partial("justify_interval", (INTERVAL,), INTERVAL, justify_interval),
)
