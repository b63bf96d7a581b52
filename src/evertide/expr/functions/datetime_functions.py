"""date_trunc, date_bin, AT TIME ZONE, age, make_* and to_timestamp."""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from evertide.expr.civil import civil_from_days, days_from_civil, days_in_month
from evertide.expr.functions.build import partial, total
from evertide.expr.functions.datetime_arithmetic import (
    checked_date,
    checked_timestamp,
    int_quotient,
    is_infinite,
    is_infinite_date,
    time_between,
)
from evertide.expr.functions.datetime_fields import ZONE_FIELDS, field_name
from evertide.expr.interval_text import checked_interval
from evertide.expr.time_zone import MICROS_PER_SECOND, Zone, find_zone
from evertide.vocab.datum import MICROS_PER_DAY, TS_INFINITY, TS_MINUS_INFINITY, Interval
from evertide.vocab.errors import DatetimeFieldOverflow, FeatureNotSupported, InvalidParameterValue
from evertide.vocab.sql_type import (
    BOOL,
    DATE,
    FLOAT8,
    INT4,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
)

_CLOCK_UNITS: Final = {
    "microseconds": 1, "milliseconds": 1000, "second": MICROS_PER_SECOND,
    "minute": 60 * MICROS_PER_SECOND, "hour": 3600 * MICROS_PER_SECOND, "day": MICROS_PER_DAY,
}  # fmt: skip
_CLOCK_SECONDS: Final = 946_684_800
_YEAR_UNITS: Final = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_TRUNCATED: Final = {*_CLOCK_UNITS, *_YEAR_UNITS, "week", "month", "quarter"}
_INTERVAL_YEARS: Final = {"year": 12, "decade": 120, "century": 1200, "millennium": 12000}


def truncate_timestamp(unit: str, micros: int, sql_type: SqlType = TIMESTAMP) -> int:
    """The start of the unit of time that a timestamp lies in."""
    if is_infinite(micros):
        return micros
    field = field_name(unit)
    if field not in _TRUNCATED:
        raise _refusal(unit, sql_type)
    if field in _CLOCK_UNITS:
        return micros - micros % _CLOCK_UNITS[field]
    days = micros // MICROS_PER_DAY
    return checked_timestamp(_first_day(field, days) * MICROS_PER_DAY)


def _refusal(unit: str, sql_type: SqlType) -> InvalidParameterValue | FeatureNotSupported:
    """Units of time that a type has no use for are not supported; other words are not known."""
    if field_name(unit) in _TRUNCATED or field_name(unit) in ZONE_FIELDS:
        return FeatureNotSupported(f"unit '{unit}' not recognized for type {sql_type}")
    return InvalidParameterValue(f"unit '{unit}' not recognized")


def _first_day(field: str, days: int) -> int:
    if field == "week":
        return days - (days + 3) % 7
    year, month, _ = civil_from_days(days)
    if field == "month":
        return days_from_civil(year, month, 1)
    if field == "quarter":
        return days_from_civil(year, (month - 1) // 3 * 3 + 1, 1)
    return days_from_civil(_first_year(year, _YEAR_UNITS[field]), 1, 1)


def _first_year(year: int, size: int) -> int:
    """Decades begin with years that end in 0, centuries and millennia with those that end in 1."""
    if size <= 10:
        return year - year % size
    if year > 0:
        return (year - 1) // size * size + 1
    return -((size - 1 - (year - 1)) // size) * size + 1


def _truncate_zoned(unit: str, micros: int) -> int:
    return truncate_timestamp(unit, micros, TIMESTAMPTZ)


def _truncate_in_zone(unit: str, micros: int, zone_name: str) -> int:
    if is_infinite(micros):
        return micros
    zone = _zone(zone_name)
    local = micros + zone.offset_at_utc(micros) * MICROS_PER_SECOND
    return _to_utc(_truncate_zoned(unit, local), zone)


def _truncate_interval(unit: str, interval: Interval) -> Interval:
    field = field_name(unit)
    if field in _INTERVAL_YEARS:
        return Interval(_cut(interval.months, _INTERVAL_YEARS[field]), 0, 0)
    match field:
        case "quarter":
            return Interval(_cut(interval.months, 3), 0, 0)
        case "month":
            return Interval(interval.months, 0, 0)
        case "day":
            return Interval(interval.months, interval.days, 0)
    if field not in _CLOCK_UNITS:
        raise _refusal(unit, INTERVAL)
    return interval._replace(micros=_cut(interval.micros, _CLOCK_UNITS[field]))


def _cut(value: int, size: int) -> int:
    return int_quotient(value, size) * size


def date_bin(stride: Interval, micros: int, origin: int = 0) -> int:
    """The start of the bin that a timestamp lies in, bins being laid out from an origin."""
    if is_infinite(micros):
        return micros
    if is_infinite(origin):
        raise DatetimeFieldOverflow("origin out of range")
    if stride.months:
        raise FeatureNotSupported(
            "timestamps cannot be binned into intervals containing months or years"
        )
    width = stride.days * MICROS_PER_DAY + stride.micros
    if width <= 0:
        raise DatetimeFieldOverflow("stride must be greater than zero")
    return checked_timestamp(origin + (micros - origin) // width * width)


def _zone(name: str) -> Zone:
    zone = find_zone(name, posix=True)
    if zone is None:
        raise InvalidParameterValue(f'time zone "{name}" not recognized')
    return zone


def _to_utc(micros: int, zone: Zone) -> int:
    return checked_timestamp(micros - zone.offset_at_local(micros) * MICROS_PER_SECOND)


def _local_to_instant(zone_name: str, micros: int) -> int:
    return micros if is_infinite(micros) else _to_utc(micros, _zone(zone_name))


def _instant_to_local(zone_name: str, micros: int) -> int:
    if is_infinite(micros):
        return micros
    zone = _zone(zone_name)
    return checked_timestamp(micros + zone.offset_at_utc(micros) * MICROS_PER_SECOND)


def _offset(interval: Interval) -> int:
    if interval.months or interval.days:
        raise InvalidParameterValue("interval time zone must not include months or days")
    return _cut(interval.micros, MICROS_PER_SECOND)


def _local_to_instant_by_offset(zone: Interval, micros: int) -> int:
    return micros if is_infinite(micros) else checked_timestamp(micros - _offset(zone))


def _instant_to_local_by_offset(zone: Interval, micros: int) -> int:
    return micros if is_infinite(micros) else checked_timestamp(micros + _offset(zone))


def age(left: int, right: int) -> Interval:
    """The difference in years, months and days as one would say it, not in days alone."""
    if is_infinite(left) or is_infinite(right):
        return time_between(left, right)
    if left < right:
        months, days, micros = age(right, left)
        return Interval(-months, -days, -micros)
    (year, month, day), micros = _parts(left)
    (earlier_year, earlier_month, earlier_day), earlier_micros = _parts(right)
    micros -= earlier_micros
    days = day - earlier_day
    months = (year - earlier_year) * 12 + month - earlier_month
    if micros < 0:
        micros, days = micros + MICROS_PER_DAY, days - 1
    if days < 0:  # borrowed from the month that the earlier date lies in
        days, months = days + days_in_month(earlier_year, earlier_month), months - 1
    return checked_interval(months, days, micros)


def _parts(micros: int) -> tuple[tuple[int, int, int], int]:
    days, micros_of_day = divmod(micros, MICROS_PER_DAY)
    return civil_from_days(days), micros_of_day


def _make_date(year: int, month: int, day: int) -> int:
    """Negative years are years before Christ."""
    shown = f"{year}-{month:02}-{day:02}"
    civil_year = year + 1 if year < 0 else year
    if year == 0 or not 1 <= month <= 12 or not 1 <= day <= days_in_month(civil_year, month):
        raise DatetimeFieldOverflow(f"date field value out of range: {shown}")
    return checked_date(days_from_civil(civil_year, month, day))


def _make_time(hour: int, minute: int, seconds: float) -> int:
    # Rounded before it is looked at, so that a trace of a negative second is none.
    rounded = round(seconds * MICROS_PER_SECOND) if -1 < seconds < 61 else -1
    valid = 0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= rounded <= 60 * MICROS_PER_SECOND
    micros = (hour * 3600 + minute * 60) * MICROS_PER_SECOND + rounded
    if not valid or micros > MICROS_PER_DAY:
        raise DatetimeFieldOverflow(
            f"time field value out of range: {hour}:{minute:02}:{seconds:02}"
        )
    return micros


def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, seconds: float) -> int:
    if not -4714 <= year <= 294_276:
        raise DatetimeFieldOverflow("timestamp out of range")
    days = _make_date(year, month, day)
    return checked_timestamp(days * MICROS_PER_DAY + _make_time(hour, minute, seconds))


def to_timestamp(seconds: float) -> int:
    """The instant so many seconds after 1970."""
    if math.isnan(seconds):
        raise DatetimeFieldOverflow("timestamp cannot be NaN")
    if math.isinf(seconds):
        return TS_INFINITY if seconds > 0 else TS_MINUS_INFINITY
    # PostgreSQL counts from 2000, which costs a float some digits.
    micros = Decimal((seconds - _CLOCK_SECONDS) * MICROS_PER_SECOND)
    if abs(micros) >= 2**63:
        raise DatetimeFieldOverflow(f'timestamp out of range: "{seconds:g}"')
    rounded = int(micros.to_integral_value(rounding=ROUND_HALF_EVEN))
    return checked_timestamp(rounded + _CLOCK_SECONDS * MICROS_PER_SECOND)


def _is_finite_timestamp(micros: int) -> bool:
    return not is_infinite(micros)


_TRUNCATIONS: Final[dict[SqlType, Callable[..., int | Interval]]] = {
    TIMESTAMP: truncate_timestamp,
    TIMESTAMPTZ: _truncate_zoned,
    INTERVAL: _truncate_interval,
}
_TIMESTAMPS: Final = (TIMESTAMP, TIMESTAMPTZ)

ROWS: Final = (
    *(partial("date_trunc", (TEXT, t), t, body) for t, body in _TRUNCATIONS.items()),
    partial("date_trunc", (TEXT, TIMESTAMPTZ, TEXT), TIMESTAMPTZ, _truncate_in_zone),
    *(partial("date_bin", (INTERVAL, t, t), t, date_bin) for t in _TIMESTAMPS),
    *(partial("date_bin", (INTERVAL, t), t, date_bin) for t in _TIMESTAMPS),
    partial("timezone", (TEXT, TIMESTAMP), TIMESTAMPTZ, _local_to_instant),
    partial("timezone", (TEXT, TIMESTAMPTZ), TIMESTAMP, _instant_to_local),
    partial("timezone", (INTERVAL, TIMESTAMP), TIMESTAMPTZ, _local_to_instant_by_offset),
    partial("timezone", (INTERVAL, TIMESTAMPTZ), TIMESTAMP, _instant_to_local_by_offset),
    *(partial("age", (t, t), INTERVAL, age) for t in _TIMESTAMPS),
    partial("make_date", (INT4, INT4, INT4), DATE, _make_date),
    partial("make_time", (INT4, INT4, FLOAT8), TIME, _make_time),
    partial("make_timestamp", (INT4, INT4, INT4, INT4, INT4, FLOAT8), TIMESTAMP, _make_timestamp),
    partial("to_timestamp", (FLOAT8,), TIMESTAMPTZ, to_timestamp),
    *(total("isfinite", (t,), BOOL, _is_finite_timestamp) for t in _TIMESTAMPS),
    total("isfinite", (DATE,), BOOL, lambda days: not is_infinite_date(days)),
    total("isfinite", (INTERVAL,), BOOL, lambda _interval: True),
)
