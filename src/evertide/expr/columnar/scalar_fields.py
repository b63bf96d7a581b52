"""Kernels of extract, date_part and date_trunc with a constant unit."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np

from evertide.expr.columnar.column import Ints, Mask, Numbers
from evertide.expr.columnar.numeric_columns import LIMIT, Scaled, largest
from evertide.expr.columnar.scalar_calendar import civil_from_days, days_from_civil, first_of_year
from evertide.expr.columnar.scalar_datetime import (
    is_infinite,
    is_infinite_date,
    timestamps_of_dates,
)
from evertide.expr.columnar.scalar_kernel import (
    Apply,
    Build,
    ByRows,
    Parts,
    either_null,
    masked,
    number_values,
    refuse,
)
from evertide.expr.datetime_text import MIN_TIMESTAMP
from evertide.expr.functions.build import Types
from evertide.expr.functions.datetime_fields import field_name
from evertide.expr.scalar import Literal, Scalar
from evertide.vocab.datum import MICROS_PER_DAY
from evertide.vocab.sql_type import DATE, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ

_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_JULIAN_1970: Final = 2_440_588
_EXACT_INTEGER: Final = 2**53

# From days or microseconds to a field.
Field: TypeAlias = Callable[[Ints], Ints]


def _year(days: Ints) -> Ints:
    """There is no year 0: before 1 comes -1."""
    year = civil_from_days(days)[0]
    return year - (year <= 0)


def _week(days: Ints) -> Ints:
    thursday = days - (days + 3) % 7 + 3
    return (thursday - first_of_year(civil_from_days(thursday)[0])) // 7 + 1


_DATE_FIELDS: Final[dict[str, Field]] = {
    "day": lambda days: civil_from_days(days)[2],
    "month": lambda days: civil_from_days(days)[1],
    "quarter": lambda days: (civil_from_days(days)[1] - 1) // 3 + 1,
    "year": _year,
    "decade": lambda days: civil_from_days(days)[0] // 10,
    "dow": lambda days: (days + 4) % 7,
    "isodow": lambda days: (days + 3) % 7 + 1,
    "doy": lambda days: days - first_of_year(civil_from_days(days)[0]) + 1,
    "week": _week,
}
# With the digits after the point that the field has.
_TIME_FIELDS: Final[dict[str, tuple[Field, int]]] = {
    "microseconds": (lambda micros: micros % _MINUTE, 0),
    "milliseconds": (lambda micros: micros % _MINUTE, 3),
    "second": (lambda micros: micros % _MINUTE, 6),
    "minute": (lambda micros: micros // _MINUTE % 60, 0),
    "hour": (lambda micros: micros // _HOUR, 0),
}
_CLOCK_UNITS: Final = {
    "microseconds": 1, "milliseconds": 1000, "second": _SECOND, "minute": _MINUTE,
    "hour": _HOUR, "day": MICROS_PER_DAY,
}  # fmt: skip


def _of_date(field: str) -> tuple[Field, int] | None:
    if field == "epoch":
        return (lambda days: days * 86_400), 0
    if field == "julian":
        return (lambda days: days + _JULIAN_1970), 0
    compute = _DATE_FIELDS.get(field)
    return None if compute is None else (compute, 0)


def _of_time(field: str) -> tuple[Field, int] | None:
    return ((lambda micros: micros), 6) if field == "epoch" else _TIME_FIELDS.get(field)


def _of_timestamp(field: str) -> tuple[Field, int] | None:
    if field == "epoch":
        return (lambda micros: micros), 6
    if field in _TIME_FIELDS:
        of_day, scale = _TIME_FIELDS[field]
        return (lambda micros: of_day(micros % MICROS_PER_DAY)), scale
    compute = _DATE_FIELDS.get(field)
    return None if compute is None else ((lambda micros: compute(micros // MICROS_PER_DAY)), 0)


def _never(values: Ints) -> Mask:
    return np.zeros(values.shape, np.bool_)


def _literal_field(scalar: Scalar) -> str | None:
    if isinstance(scalar, Literal) and isinstance(scalar.value, str):
        return field_name(scalar.value)
    return None


def _field(
    find: Callable[[str], tuple[Field, int] | None],
    infinite: Callable[[Ints], Mask],
    finish: Callable[[Ints, int, Mask | None], Scaled | Numbers],
    *,
    of_midnight: bool = False,
) -> Build:
    """A field of finite values; those of infinity differ from field to field."""

    def build(arguments: Sequence[Scalar]) -> Apply | None:
        unit = _literal_field(arguments[0])
        found = None if unit is None else find(unit)
        if found is None:
            return None
        compute, scale = found

        def apply(parts: Parts) -> Scaled | Numbers:
            values, nulls = number_values(parts[1]), either_null(parts[1:])
            refuse(infinite(values), nulls)
            if of_midnight:
                values = timestamps_of_dates(values, nulls)
            kept = masked(compute(values), nulls)
            return finish(kept.values, scale, kept.nulls)

        return apply

    return build


def _as_numeric(values: Ints, scale: int, nulls: Mask | None) -> Scaled:
    if largest(values) >= LIMIT:
        raise ByRows
    return Scaled(values, scale, nulls)


def _as_float(values: Ints, scale: int, nulls: Mask | None) -> Numbers:
    if largest(values) > _EXACT_INTEGER:
        raise ByRows
    return Numbers(values / 10.0**scale, nulls)


def _first_day(field: str) -> Field | None:
    match field:
        case "week":
            return lambda days: days - (days + 3) % 7
        case "month":
            return lambda days: days - civil_from_days(days)[2] + 1
        case "quarter":
            return _first_of_quarter
        case "year":
            return lambda days: first_of_year(civil_from_days(days)[0])
        case _:
            return None


def _first_of_quarter(days: Ints) -> Ints:
    year, month, _ = civil_from_days(days)
    return days_from_civil(year, (month - 1) // 3 * 3 + 1, np.ones_like(year))


def _truncate(arguments: Sequence[Scalar]) -> Apply | None:
    field = _literal_field(arguments[0])
    if field is None:
        return None
    unit, first = _CLOCK_UNITS.get(field), _first_day(field)
    if unit is None and first is None:
        return None

    def apply(parts: Parts) -> Numbers:
        micros, nulls = number_values(parts[1]), either_null(parts[1:])
        infinite = is_infinite(micros)
        if first is None:
            result = micros - micros % unit
        else:
            result = first(micros // MICROS_PER_DAY) * MICROS_PER_DAY
            refuse((result < MIN_TIMESTAMP) & ~infinite, nulls)
        return masked(np.where(infinite, micros, result) if infinite.any() else result, nulls)

    return apply


KERNELS: Final[dict[tuple[str, Types], Build]] = {
    ("extract", (TEXT, DATE)): _field(_of_date, is_infinite_date, _as_numeric),
    ("date_part", (TEXT, DATE)): _field(
        _of_timestamp, is_infinite_date, _as_float, of_midnight=True
    ),
    ("extract", (TEXT, TIME)): _field(_of_time, _never, _as_numeric),
    ("date_part", (TEXT, TIME)): _field(_of_time, _never, _as_float),
    **{
        (name, (TEXT, sql_type)): _field(_of_timestamp, is_infinite, finish)
        for name, finish in (("extract", _as_numeric), ("date_part", _as_float))
        for sql_type in (TIMESTAMP, TIMESTAMPTZ)
    },
    ("date_trunc", (TEXT, TIMESTAMP)): _truncate,
    ("date_trunc", (TEXT, TIMESTAMPTZ)): _truncate,
}
