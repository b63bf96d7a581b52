"""Datums and rows: one value, and a tuple of them.

A datum is the *physical* value of its column's SqlType; it does not say its own type.

| SQL type                       | datum                                                   |
| ------------------------------ | ------------------------------------------------------- |
| bool                           | bool                                                    |
| int2/4/8, uint*, oid, reg*     | int                                                     |
| mz_timestamp                   | int, milliseconds                                       |
| float4, float8                 | float; -0.0 and every NaN stay as they are              |
| numeric                        | Decimal, reduced (no trailing zeros), or NaN/Infinity   |
| text, varchar, char, name      | str                                                     |
| bytea                          | bytes                                                   |
| date                           | int, days since 1970-01-01; DATE_INFINITY at both ends  |
| time                           | int, microseconds since midnight                        |
| timestamp, timestamptz         | int, microseconds since 1970-01-01 UTC; TS_INFINITY     |
| interval                       | Interval(months, days, micros)                          |
| uuid                           | bytes, 16 of them                                       |
| jsonb                          | str, canonical compact text: keys sorted, numbers reduced |
| array, list, record            | tuple of datums                                         |
| map                            | tuple of (key, value), in key order                     |
| ranges                         | (lower, upper, has_lower, has_upper); see EMPTY_RANGE   |
| SQL NULL                       | None                                                    |

Integers for dates and times carry PostgreSQL's whole range and its infinities, which neither
Python's datetime nor Spark's timestamps can.
"""

from decimal import Context, Decimal
from typing import NamedTuple, TypeAlias


class Interval(NamedTuple):
    """A span of time whose three parts do not convert into one another.

    Equality of this tuple is identity of representation; SQL equality (1 month = 30 days) compares
    `span_micros`.
    """

    months: int
    days: int
    micros: int

    def span_micros(self) -> int:
        """The length SQL compares by: a month counts 30 days, a day 24 hours."""
        return ((self.months * 30) + self.days) * MICROS_PER_DAY + self.micros


# No range has an end that is in it and lies at infinity, so this stands for the empty one.
EMPTY_RANGE = (None, None, True, True)
MICROS_PER_DAY = 86_400_000_000
DATE_INFINITY = 2**31 - 1
DATE_MINUS_INFINITY = -(2**31)
TS_INFINITY = 2**63 - 1
TS_MINUS_INFINITY = -(2**63)

# Wide enough that sums and products of 39-digit values are exact before they are rounded to 39.
NUMERIC_DIGITS = 39
NUMERIC_CONTEXT = Context(prec=NUMERIC_DIGITS)

Datum: TypeAlias = (
    "bool | int | float | Decimal | str | bytes | Interval | tuple[Datum, ...] | None"
)
Row: TypeAlias = tuple[Datum, ...]


def reduce_numeric(value: Decimal) -> Decimal:
    """The one representation of a numeric: no trailing zeros, no negative zero, 1E+2 kept as 1E+2.

    >>> reduce_numeric(Decimal("1.500")), reduce_numeric(Decimal("-0.0"))
    (Decimal('1.5'), Decimal('0'))
    """
    if not value.is_finite():
        return Decimal("NaN") if value.is_nan() else value
    return value.normalize(NUMERIC_CONTEXT) if value else Decimal(0)
