"""Kernels of sums, differences and casts of dates and times."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from evertide.expr.columnar.column import Ints, Mask, Numbers, Others
from evertide.expr.columnar.scalar_calendar import add_months
from evertide.expr.columnar.scalar_integer import add, subtract
from evertide.expr.columnar.scalar_kernel import (
    Apply,
    Build,
    Parts,
    either_null,
    masked,
    number_values,
    over_numbers,
    refuse,
    relabel,
)
from evertide.expr.datetime_text import MAX_DATE_DAYS, MAX_TIMESTAMP, MIN_DAYS, MIN_TIMESTAMP
from evertide.expr.functions.build import Types
from evertide.expr.scalar import Literal, Scalar
from evertide.persist.coding.encoding import arrow_type
from evertide.vocab.datum import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    MICROS_PER_DAY,
    TS_INFINITY,
    TS_MINUS_INFINITY,
    Interval,
)
from evertide.vocab.sql_type import (
    DATE,
    INT4,
    INTERVAL,
    MZ_TIMESTAMP,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
)

_LAST_DAY: Final = MAX_TIMESTAMP // MICROS_PER_DAY
# So many days, and any time of day, are within 64 bits of microseconds.
_SAFE_DAYS: Final = 106_000_000
_SAFE_MONTHS: Final = 10_000_000
_TIMESTAMPS: Final = (TIMESTAMP, TIMESTAMPTZ)


def is_infinite_date(days: Ints) -> Mask:
    """Where a date is one of the infinities."""
    return np.equal(days, DATE_INFINITY) | np.equal(days, DATE_MINUS_INFINITY)


def is_infinite(micros: Ints) -> Mask:
    """Where a timestamp is one of the infinities."""
    return np.equal(micros, TS_INFINITY) | np.equal(micros, TS_MINUS_INFINITY)


def _besides(nulls: Mask | None, infinite: Mask) -> Mask:
    return infinite if nulls is None else infinite | nulls


def timestamps_of_dates(days: Ints, nulls: Mask | None) -> Ints:
    """Midnights; infinity stays what it is."""
    infinite = is_infinite_date(days)
    refuse((days > _LAST_DAY) & ~infinite, nulls)
    micros = days * MICROS_PER_DAY
    if infinite.any():
        return np.where(infinite, np.where(days > 0, TS_INFINITY, TS_MINUS_INFINITY), micros)
    return micros


def _dates_of_timestamps(micros: Ints, _nulls: Mask | None) -> Ints:
    infinite = is_infinite(micros)
    days = micros // MICROS_PER_DAY
    if infinite.any():
        return np.where(infinite, np.where(micros > 0, DATE_INFINITY, DATE_MINUS_INFINITY), days)
    return days


def _times_of_timestamps(micros: Ints, nulls: Mask | None) -> Ints:
    refuse(is_infinite(micros), nulls)
    return micros % MICROS_PER_DAY


def _millis(micros: Ints, nulls: Mask | None) -> Ints:
    refuse((micros < 0) | (micros == TS_INFINITY), nulls)
    return micros // 1000


def _micros(millis: Ints, nulls: Mask | None) -> Ints:
    refuse(millis > MAX_TIMESTAMP // 1000, nulls)
    return millis * 1000


def _add_days(days: Ints, count: Ints, nulls: Mask | None) -> Ints:
    infinite = is_infinite_date(days)
    result = days + count
    outside = (result < MIN_DAYS) | (result > MAX_DATE_DAYS)
    refuse(outside & ~infinite, nulls)
    return np.where(infinite, days, result) if infinite.any() else result


def _subtract_days(days: Ints, count: Ints, nulls: Mask | None) -> Ints:
    return _add_days(days, -count, nulls)


def _days_between(left: Ints, right: Ints, nulls: Mask | None) -> Ints:
    refuse(is_infinite_date(left) | is_infinite_date(right), nulls)
    return left - right


def _add_interval(micros: Ints, interval: Interval, nulls: Mask | None) -> Ints:
    """Later by months, then days, then microseconds; infinity stays what it is."""
    infinite = is_infinite(micros)
    exempt = _besides(nulls, infinite)
    days = micros // MICROS_PER_DAY
    micros_of_day = micros - days * MICROS_PER_DAY
    if interval.months:
        days = add_months(days, interval.months)
        refuse((days < MIN_DAYS) | (days > _LAST_DAY), exempt)
    days = days + interval.days
    refuse(np.abs(days) > _SAFE_DAYS, exempt)
    in_day = add(micros_of_day, np.array([interval.micros], np.int64), exempt)
    result = add(days * MICROS_PER_DAY, in_day, exempt)
    refuse((result < MIN_TIMESTAMP) | (result > MAX_TIMESTAMP), exempt)
    return np.where(infinite, micros, result)


def _with_interval(place: int, *, negative: bool = False, of_date: bool = False) -> Build:
    """A date or timestamp with a constant interval, which stands at this place, added to it."""

    def build(arguments: Sequence[Scalar]) -> Apply | None:
        literal = arguments[place]
        value = literal.value if isinstance(literal, Literal) else None
        if not isinstance(value, Interval):
            return None
        months, days, micros = (-part if negative else part for part in value)
        if abs(months) > _SAFE_MONTHS or abs(days) > _SAFE_DAYS or abs(micros) >= 2**63:
            return None
        interval = Interval(months, days, micros)

        def apply(parts: Parts) -> Numbers:
            moment = parts[1 - place]
            values, nulls = number_values(moment), either_null((moment,))
            if of_date:
                values = timestamps_of_dates(values, nulls)
            return masked(_add_interval(values, interval, nulls), nulls)

        return apply

    return build


def _intervals(days: Ints, micros: Ints, nulls: Mask | None) -> Others:
    physical = arrow_type(INTERVAL)
    months = np.zeros(len(micros), np.int32)
    parts = [pa.array(months), pa.array(days.astype(np.int32)), pa.array(micros)]
    mask = None if nulls is None else pa.array(np.broadcast_to(nulls, micros.shape))
    return Others(pa.StructArray.from_arrays(parts, fields=list(physical), mask=mask))


def _time_between(parts: Parts) -> Others:
    """The difference in days and microseconds, both of one sign."""
    left, right = map(number_values, parts)
    nulls = either_null(parts)
    refuse(is_infinite(left) | is_infinite(right), nulls)
    difference = masked(subtract(left, right, nulls), nulls).values
    micros = np.fmod(difference, MICROS_PER_DAY)
    return _intervals((difference - micros) // MICROS_PER_DAY, micros, nulls)


def _between_times(parts: Parts) -> Others:
    left, right = map(number_values, parts)
    difference = masked(left - right, nulls := either_null(parts)).values
    return _intervals(np.zeros(len(difference), np.int64), difference, nulls)


def _sums() -> dict[tuple[str, Types], Build]:
    found: dict[tuple[str, Types], Build] = {
        ("+", (DATE, INT4)): over_numbers(_add_days),
        ("+", (INT4, DATE)): over_numbers(lambda count, days, nulls: _add_days(days, count, nulls)),
        ("-", (DATE, INT4)): over_numbers(_subtract_days),
        ("-", (DATE, DATE)): over_numbers(_days_between),
        ("+", (DATE, INTERVAL)): _with_interval(1, of_date=True),
        ("+", (INTERVAL, DATE)): _with_interval(0, of_date=True),
        ("-", (DATE, INTERVAL)): _with_interval(1, negative=True, of_date=True),
        ("-", (TIME, TIME)): lambda _arguments: _between_times,
    }
    for sql_type in _TIMESTAMPS:
        found["+", (sql_type, INTERVAL)] = _with_interval(1)
        found["+", (INTERVAL, sql_type)] = _with_interval(0)
        found["-", (sql_type, INTERVAL)] = _with_interval(1, negative=True)
        found["-", (sql_type, sql_type)] = lambda _arguments: _time_between
    return found


def _casts() -> dict[tuple[str, Types], Build]:
    found: dict[tuple[str, Types], Build] = {
        ("timestamptz", (TIMESTAMP,)): relabel,
        ("timestamp", (TIMESTAMPTZ,)): relabel,
    }
    for sql_type in _TIMESTAMPS:
        name = sql_type.kind.value
        found[name, (DATE,)] = over_numbers(timestamps_of_dates)
        found["date", (sql_type,)] = over_numbers(_dates_of_timestamps)
        found["time", (sql_type,)] = over_numbers(_times_of_timestamps)
        found["mz_timestamp", (sql_type,)] = over_numbers(_millis)
        found[name, (MZ_TIMESTAMP,)] = over_numbers(_micros)
    return found


KERNELS: Final = _sums() | _casts()
