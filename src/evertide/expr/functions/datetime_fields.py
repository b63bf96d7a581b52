"""extract and date_part: single fields of dates, times and intervals, as exact numerics."""

from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeAlias

from evertide.expr.civil import civil_from_days, days_from_civil
from evertide.expr.functions.build import Body, partial
from evertide.expr.functions.datetime_arithmetic import (
    int_quotient,
    is_infinite,
    is_infinite_date,
    timestamp_of_date,
)
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.numeric_value import INFINITY, MINUS_INFINITY, settle
from evertide.vocab.datum import MICROS_PER_DAY, Interval
from evertide.vocab.errors import FeatureNotSupported, InvalidParameterValue
from evertide.vocab.sql_type import (
    DATE,
    FLOAT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
)

Extract: TypeAlias = Callable[[str, int], Decimal | None]

_ALIASES: Final = {
    "us": "microseconds", "usec": "microseconds", "microsecond": "microseconds",
    "ms": "milliseconds", "msec": "milliseconds", "millisecond": "milliseconds",
    "s": "second", "sec": "second", "seconds": "second", "secs": "second",
    "m": "minute", "min": "minute", "mins": "minute", "minutes": "minute",
    "h": "hour", "hr": "hour", "hrs": "hour", "hours": "hour", "d": "day", "days": "day",
    "w": "week", "weeks": "week", "mon": "month", "mons": "month", "months": "month",
    "qtr": "quarter", "y": "year", "yr": "year", "yrs": "year", "years": "year",
    "dec": "decade", "decs": "decade", "decades": "decade",
    "c": "century", "cent": "century", "centuries": "century",
    "mil": "millennium", "mils": "millennium", "millennia": "millennium",
}  # fmt: skip
_MICROS_PER_SECOND: Final = 1_000_000
# Fields that grow with time: that of infinity is infinity. Of the others it is NULL.
_MONOTONIC: Final = frozenset(
    {"year", "decade", "century", "millennium", "julian", "isoyear", "epoch"}
)
_JULIAN_1970: Final = 2_440_588


def field_name(unit: str) -> str:
    """The field's proper name."""
    lowered = unit.strip().lower()
    return _ALIASES.get(lowered, lowered)


def iso_week(days: int) -> tuple[int, int]:
    """The ISO year and week of a day: week 1 is the one with the year's first Thursday."""
    thursday = days - (days + 3) % 7 + 3
    year, _, _ = civil_from_days(thursday)
    return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1


def _counted_year(year: int, size: int) -> int:
    """The century or millennium of a year, counted from 1 and, before Christ, from -1."""
    return (year + size - 1) // size if year > 0 else -((size - year) // size)


_DATE_FIELDS: Final[dict[str, Callable[[int, int, int, int], int]]] = {
    # (days, year, month, day), the year counted with a year 0
    "day": lambda _days, _year, _month, day: day,
    "month": lambda _days, _year, month, _day: month,
    "quarter": lambda _days, _year, month, _day: (month - 1) // 3 + 1,
    "year": lambda _days, year, _month, _day: year if year > 0 else year - 1,
    "decade": lambda _days, year, _month, _day: year // 10,
    "century": lambda _days, year, _month, _day: _counted_year(year, 100),
    "millennium": lambda _days, year, _month, _day: _counted_year(year, 1000),
    "dow": lambda days, _year, _month, _day: (days + 4) % 7,
    "isodow": lambda days, _year, _month, _day: (days + 3) % 7 + 1,
    "doy": lambda days, year, _month, _day: days - days_from_civil(year, 1, 1) + 1,
    "week": lambda days, _year, _month, _day: iso_week(days)[1],
    "isoyear": lambda days, _year, _month, _day: _iso_year(days),
}


def _iso_year(days: int) -> int:
    year = iso_week(days)[0]
    return year if year > 0 else year - 1


def _date_field(field: str, days: int) -> Decimal | None:
    compute = _DATE_FIELDS.get(field)
    return None if compute is None else settle(Decimal(compute(days, *civil_from_days(days))))


def _time_field(field: str, micros: int) -> Decimal | None:
    """A field of a time of day, or of the time part of an interval."""
    seconds_micros = micros - int_quotient(micros, 60 * _MICROS_PER_SECOND) * (
        60 * _MICROS_PER_SECOND
    )
    minutes = int_quotient(micros, 60 * _MICROS_PER_SECOND)
    hours = int_quotient(minutes, 60)
    match field:
        case "microseconds":
            return settle(Decimal(seconds_micros))
        case "milliseconds":
            return settle(Decimal(seconds_micros).scaleb(-3))
        case "second":
            return settle(Decimal(seconds_micros).scaleb(-6))
        case "minute":
            return settle(Decimal(minutes - hours * 60))
        case "hour":
            return settle(Decimal(hours))
        case _:
            return None


def extract_date(unit: str, days: int) -> Decimal | None:
    """A field of a date; those of a time are not there."""
    field = field_name(unit)
    if is_infinite_date(days):
        return _of_infinity(unit, field, DATE, positive=days > 0)
    match field:
        case "epoch":
            return settle(Decimal(days * 86_400))
        case "julian":
            return settle(Decimal(days + _JULIAN_1970))
    result = _date_field(field, days)
    if result is None:
        raise _refusal(unit, DATE)
    return result


def _of_infinity(unit: str, field: str, sql_type: SqlType, *, positive: bool) -> Decimal | None:
    if field in _MONOTONIC:
        return INFINITY if positive else MINUS_INFINITY
    in_timestamp = field in _TIME_FIELDS or field in ZONE_FIELDS
    if field not in _DATE_FIELDS and (sql_type == DATE or not in_timestamp):
        raise _refusal(unit, sql_type)
    return None


_TIME_FIELDS: Final = frozenset({"hour", "minute", "second", "milliseconds", "microseconds"})
ZONE_FIELDS: Final = frozenset({"timezone", "timezone_hour", "timezone_minute"})
_KNOWN: Final = _TIME_FIELDS | ZONE_FIELDS | _MONOTONIC | frozenset(_DATE_FIELDS)


def _refusal(unit: str, sql_type: SqlType) -> InvalidParameterValue | FeatureNotSupported:
    """A field of other types is not supported; what is no field at all is not recognized."""
    if field_name(unit) in _KNOWN:
        return FeatureNotSupported(f"unit '{unit}' not supported for type {sql_type}")
    return InvalidParameterValue(f"unit '{unit}' not recognized")


def _extract_timestamp(sql_type: SqlType) -> Extract:
    def extract(unit: str, micros: int) -> Decimal | None:
        field = field_name(unit)
        if is_infinite(micros):
            return _of_infinity(unit, field, sql_type, positive=micros > 0)
        days, micros_of_day = divmod(micros, MICROS_PER_DAY)
        if field == "epoch":
            return settle(Decimal(micros).scaleb(-6))
        if field == "julian":
            fraction = Decimal(micros_of_day) / Decimal(MICROS_PER_DAY)
            return settle(days + _JULIAN_1970 + fraction)
        if field in ZONE_FIELDS and sql_type == TIMESTAMPTZ:
            return Decimal(0)
        result = _time_field(field, micros_of_day)
        if result is None:
            result = _date_field(field, days)
        if result is None:
            raise _refusal(unit, sql_type)
        return result

    return extract


def _extract_time(unit: str, micros: int) -> Decimal:
    field = field_name(unit)
    if field == "epoch":
        return settle(Decimal(micros).scaleb(-6))
    result = _time_field(field, micros)
    if result is None:
        raise _refusal(unit, TIME)
    return result


def extract_interval(unit: str, interval: Interval) -> Decimal:
    """A field of an interval; fields of years come from its months."""
    field = field_name(unit)
    years = int_quotient(interval.months, 12)
    months = interval.months - years * 12
    match field:
        case "epoch":
            return _interval_epoch(years, months, interval)
        case "day":
            return settle(Decimal(interval.days))
        case "month":
            return settle(Decimal(months))
        case "quarter":
            return settle(Decimal(int_quotient(months, 3) + 1))
        case "year" | "decade" | "century" | "millennium":
            size = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}[field]
            return settle(Decimal(int_quotient(years, size)))
    result = _time_field(field, interval.micros)
    if result is None:
        raise _refusal(unit, INTERVAL)
    return result


def _interval_epoch(years: int, months: int, interval: Interval) -> Decimal:
    """A year counts 365.25 days here, and a month 30."""
    quarter_days = years * 1461 + (months * 30 + interval.days) * 4
    micros = quarter_days * (MICROS_PER_DAY // 4) + interval.micros
    return settle(Decimal(micros).scaleb(-6))


def _as_float(extract: Body) -> Body:
    def date_part(*arguments: object) -> float | None:
        result = extract(*arguments)
        assert result is None or isinstance(result, Decimal)
        return None if result is None else float(result)

    return date_part


_EXTRACTS: Final[dict[SqlType, Body]] = {
    DATE: extract_date,
    TIME: _extract_time,
    TIMESTAMP: _extract_timestamp(TIMESTAMP),
    TIMESTAMPTZ: _extract_timestamp(TIMESTAMPTZ),
    INTERVAL: extract_interval,
}


def _rows_for(sql_type: SqlType, body: Body) -> list[ScalarFunction]:
    # PostgreSQL takes date_part of a date as that of its midnight, which has all fields.
    part = _part_of_midnight if sql_type == DATE else body
    return [
        partial("extract", (TEXT, sql_type), NUMERIC, body),
        partial("date_part", (TEXT, sql_type), FLOAT8, _as_float(part)),
    ]


def _part_of_midnight(unit: str, days: int) -> Decimal | None:
    return _extract_timestamp(TIMESTAMP)(unit, timestamp_of_date(days))


ROWS: Final = tuple(row for t, body in _EXTRACTS.items() for row in _rows_for(t, body))
