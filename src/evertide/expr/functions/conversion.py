"""Casts between numbers, dates and times, strings and oids: bodies and rows.

A cast's row has the name of its target type and one argument. How freely SQL may insert it is
said in `cast.py`.
"""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from evertide.expr.datetime_text import MAX_TIMESTAMP
from evertide.expr.float_text import to_float4
from evertide.expr.functions.build import Body, guarded, null_if_failed, partial, total
from evertide.expr.functions.datetime_arithmetic import (
    is_infinite,
    timestamp_of_date,
)
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import (
    BPCHAR,
    CHAR,
    FLOATS,
    INTEGERS,
    RANGES,
    REGISTERED,
    SCALARS,
    UINT8,
    VARCHAR,
    out_of_range,
)
from evertide.expr.numeric_value import numeric_text, settle
from evertide.expr.type_modifier import fit_char, fit_name
from evertide.vocab.datum import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    MICROS_PER_DAY,
    Datum,
    Interval,
)
from evertide.vocab.errors import DatetimeFieldOverflow, FeatureNotSupported, NumericOutOfRange
from evertide.vocab.sql_type import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    MZ_TIMESTAMP,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)

# How Spark holds integers. uint8 is offset and has no plain conversion.
_SPARK_TYPES: Final[dict[SqlType, str]] = {
    INT2: "smallint", INT4: "int", INT8: "bigint", SqlType(Kind.UINT2): "int",
    SqlType(Kind.UINT4): "bigint", OID: "bigint", MZ_TIMESTAMP: "bigint",
}  # fmt: skip
_FLOAT_DIGITS: Final = {FLOAT4: 6, FLOAT8: 15}


def identity(value: Datum) -> Datum:
    """The body of casts that change the type and not the datum."""
    return value


def relabelled(source: SqlType, target: SqlType) -> ScalarFunction:
    """A cast that changes the type and not the datum."""
    return ScalarFunction(target.kind.value, (source,), target, identity, spark="{0}")


def _integer_to_integer(source: SqlType, target: SqlType) -> ScalarFunction:
    least, greatest = RANGES[target]
    source_least, source_greatest = RANGES[source]
    name, spark_type = target.kind.value, _SPARK_TYPES.get(target)
    native = spark_type if source in _SPARK_TYPES else None
    if least <= source_least and source_greatest <= greatest:
        spark = None if native is None else f"cast({{0}} as {native})"
        return total(name, (source,), target, identity, spark)
    error = out_of_range(target)

    def body(value: int) -> int:
        if least <= value <= greatest:
            return value
        raise NumericOutOfRange(error.message)

    if native is None:
        return partial(name, (source,), target, body)
    # Bounds that the source cannot reach need no test, and the least bigint has no literal.
    tests = [f"{{0}} >= {least}"] if source_least < least else []
    tests += [f"{{0}} <= {greatest}L"] if source_greatest > greatest else []
    spark = f"CASE WHEN {' AND '.join(tests)} THEN cast({{0}} as {native}) END"
    return null_if_failed(name, (source,), target, body, spark, error)


def _float_to_integer(source: SqlType, target: SqlType) -> ScalarFunction:
    """Rounds half to even, as floats round everywhere."""
    least, greatest = RANGES[target]

    def body(value: float) -> int:
        if math.isfinite(value):
            rounded = round(value)
            if least <= rounded <= greatest:
                return rounded
        raise out_of_range(target)

    spark_type = _SPARK_TYPES.get(target)
    if spark_type is None:
        return partial(target.kind.value, (source,), target, body)
    rounded = "rint(cast({0} as double))"
    spark = (
        f"CASE WHEN {rounded} >= {least}D AND {rounded} < {greatest + 1}D "
        f"THEN cast({rounded} as {spark_type}) END"
    )
    return null_if_failed(target.kind.value, (source,), target, body, spark, out_of_range(target))


def numeric_to_integer(target: SqlType) -> Callable[[Decimal], int]:
    """Rounds half away from zero, as numerics round everywhere."""
    least, greatest = RANGES[target]

    def body(value: Decimal) -> int:
        if not value.is_finite():
            word = "NaN" if value.is_nan() else "infinity"
            raise FeatureNotSupported(f"cannot convert {word} to {target}")
        rounded = int(value.to_integral_value(rounding=ROUND_HALF_UP))
        if least <= rounded <= greatest:
            return rounded
        raise NumericOutOfRange(f'"{numeric_text(value)}" {target} out of range')

    return body


def _integer_to_numeric(value: int) -> Decimal:
    return settle(Decimal(value))


def _float_to_numeric(digits: int) -> Body:
    """Only the digits that a float is sure of."""

    def body(value: float) -> Decimal:
        if math.isfinite(value):
            return _settled(Decimal(f"{value:.{digits}g}"))
        return Decimal("NaN") if math.isnan(value) else Decimal(f"{value:+}".upper()[:4])

    return body


def _settled(value: Decimal) -> Decimal:
    try:
        return settle(value)
    except NumericOutOfRange:
        raise NumericOutOfRange("numeric field overflow") from None


def _numeric_to_float4(value: Decimal) -> float:
    try:
        return to_float4(float(value))
    except NumericOutOfRange:
        raise out_of_range(FLOAT4) from None


def _number_rows() -> list[ScalarFunction]:
    rows = [
        _integer_to_integer(source, target)
        for source in INTEGERS
        for target in INTEGERS
        if source != target
    ]
    rows += [_float_to_integer(source, target) for source in FLOATS for target in INTEGERS]
    for integer in INTEGERS:
        double = None if integer == UINT8 else "cast({0} as double)"
        single = None if integer == UINT8 else "cast({0} as float)"
        rows += [
            total("numeric", (integer,), NUMERIC, _integer_to_numeric),
            partial(integer.kind.value, (NUMERIC,), integer, numeric_to_integer(integer)),
            total("float8", (integer,), FLOAT8, float, double),
            total("float4", (integer,), FLOAT4, _integer_to_float4, single),
        ]
    rows += [
        partial("numeric", (t,), NUMERIC, _float_to_numeric(digits))
        for t, digits in _FLOAT_DIGITS.items()
    ]
    return [
        *rows,
        total("float8", (FLOAT4,), FLOAT8, identity, "cast({0} as double)"),
        partial("float4", (FLOAT8,), FLOAT4, to_float4),
        total("float8", (NUMERIC,), FLOAT8, float),
        partial("float4", (NUMERIC,), FLOAT4, _numeric_to_float4),
    ]


def _integer_to_float4(value: int) -> float:
    """Rounds once, from the exact integer: by way of a double it could round twice."""
    if -(2**53) <= value <= 2**53:
        return to_float4(float(value))
    # A sticky bit keeps what the double would lose.
    sign, size = (-1, -value) if value < 0 else (1, value)
    low = size.bit_length() - 53
    kept = size >> low
    if size & ((1 << low) - 1):
        kept |= 1
    return sign * to_float4(float(kept << low))


def _bool_rows() -> list[ScalarFunction]:
    return [
        total("bool", (INT4,), BOOL, lambda value: value != 0, "{0} <> 0"),
        total("bool", (INT8,), BOOL, lambda value: value != 0, "{0} <> 0"),
        total("int4", (BOOL,), INT4, int, "cast({0} as int)"),
        total("int8", (BOOL,), INT8, int, "cast({0} as bigint)"),
    ]


def _strip_padding(text: str) -> str:
    return text.rstrip(" ")


def _string_rows() -> list[ScalarFunction]:
    unpadded = "rtrim({0})"
    return [
        relabelled(VARCHAR, TEXT),
        relabelled(TEXT, VARCHAR),
        relabelled(TEXT, BPCHAR),
        relabelled(VARCHAR, BPCHAR),
        total("text", (BPCHAR,), TEXT, _strip_padding, unpadded),
        total("varchar", (BPCHAR,), VARCHAR, _strip_padding, unpadded),
        total("name", (BPCHAR,), NAME, lambda text: fit_name(_strip_padding(text))),
        total("name", (TEXT,), NAME, fit_name),
        total("name", (VARCHAR,), NAME, fit_name),
        relabelled(NAME, TEXT),
        relabelled(NAME, VARCHAR),
        relabelled(NAME, BPCHAR),
        *(total("char", (t,), CHAR, fit_char) for t in (TEXT, VARCHAR, BPCHAR)),
        relabelled(CHAR, TEXT),
        relabelled(CHAR, VARCHAR),
        relabelled(CHAR, BPCHAR),
        total("int4", (CHAR,), INT4, lambda text: ord(text) if text else 0),
    ]


def _date_of_timestamp(micros: int) -> int:
    if is_infinite(micros):
        return DATE_INFINITY if micros > 0 else DATE_MINUS_INFINITY
    return micros // MICROS_PER_DAY


def _time_of_timestamp(micros: int) -> int | None:
    return None if is_infinite(micros) else micros % MICROS_PER_DAY


def _time_of_interval(interval: Interval) -> int:
    return interval.micros % MICROS_PER_DAY


_LAST_DAY: Final = MAX_TIMESTAMP // MICROS_PER_DAY


def _date_to_timestamp(target: SqlType) -> ScalarFunction:
    spark = (
        f"CASE WHEN {{0}} = {DATE_INFINITY} THEN 9223372036854775807L "
        f"WHEN {{0}} = {DATE_MINUS_INFINITY} THEN -9223372036854775807L - 1L "
        f"WHEN {{0}} <= {_LAST_DAY} THEN {{0}} * {MICROS_PER_DAY}L END"
    )
    return guarded(
        target.kind.value,
        (DATE,),
        target,
        timestamp_of_date,
        spark=spark,
        fails=f"{{0}} > {_LAST_DAY} AND {{0}} < {DATE_INFINITY}",
        error=DatetimeFieldOverflow("date out of range for timestamp"),
    )


# Integer arithmetic throughout: a quotient of doubles would be off by a day far from 1970.
_SPARK_DATE: Final = (
    f"cast(CASE WHEN {{0}} = 9223372036854775807L THEN {DATE_INFINITY} "
    f"WHEN {{0}} < -9223372036854775807L THEN {DATE_MINUS_INFINITY} "
    f"ELSE try_subtract({{0}}, pmod({{0}}, {MICROS_PER_DAY}L)) div {MICROS_PER_DAY}L END as int)"
)


def _datetime_rows() -> list[ScalarFunction]:
    timestamps = (TIMESTAMP, TIMESTAMPTZ)
    return [
        *(_date_to_timestamp(target) for target in timestamps),
        *(total("date", (source,), DATE, _date_of_timestamp, _SPARK_DATE) for source in timestamps),
        *(total("time", (source,), TIME, _time_of_timestamp) for source in timestamps),
        relabelled(TIMESTAMP, TIMESTAMPTZ),
        relabelled(TIMESTAMPTZ, TIMESTAMP),
        total("interval", (TIME,), INTERVAL, lambda micros: Interval(0, 0, micros)),
        total("time", (INTERVAL,), TIME, _time_of_interval),
    ]


def _signed_to_oid(bits: int) -> Body:
    """PostgreSQL reads the bits of a negative int4 as an oid."""

    def body(value: int) -> int:
        if bits == 32:
            return value % 2**32
        if 0 <= value < 2**32:
            return value
        raise NumericOutOfRange("OID out of range")

    return body


def _oid_to_int4(value: int) -> int:
    return value - 2**32 if value >= 2**31 else value


def _oid_rows() -> list[ScalarFunction]:
    rows: list[ScalarFunction] = []
    for target in (OID, *REGISTERED):
        name = target.kind.value
        rows += [
            total(name, (INT2,), target, _signed_to_oid(32)),
            total(name, (INT4,), target, _signed_to_oid(32)),
            partial(name, (INT8,), target, _signed_to_oid(64)),
            total("int4", (target,), INT4, _oid_to_int4),
            total("int8", (target,), INT8, identity, "{0}"),
        ]
    for registered in REGISTERED:
        rows += [relabelled(OID, registered), relabelled(registered, OID)]
    return rows


def _millis(micros: int) -> int:
    millis = micros // 1000
    if is_infinite(micros) or millis < 0:
        raise out_of_range(MZ_TIMESTAMP)
    return millis


def _millis_of_date(days: int) -> int:
    return _millis(timestamp_of_date(days))


def _micros(millis: int) -> int:
    if millis * 1000 > MAX_TIMESTAMP:
        raise DatetimeFieldOverflow("timestamp out of range")
    return millis * 1000


def _numeric_to_millis(value: Decimal) -> int:
    """Only whole numbers of milliseconds are timestamps.

    Clients know timestamps of 64 bits without sign; what lies beyond ours is the end of time.
    """
    if not value.is_finite() or not 0 <= value < 2**64 or value != value.to_integral_value():
        raise out_of_range(MZ_TIMESTAMP)
    return min(int(value), 2**63 - 1)


def _mz_timestamp_rows() -> list[ScalarFunction]:
    name = MZ_TIMESTAMP.kind.value
    return [
        *(_integer_to_integer(source, MZ_TIMESTAMP) for source in INTEGERS),
        partial(name, (NUMERIC,), MZ_TIMESTAMP, _numeric_to_millis),
        partial(name, (TIMESTAMP,), MZ_TIMESTAMP, _millis),
        partial(name, (TIMESTAMPTZ,), MZ_TIMESTAMP, _millis),
        partial(name, (DATE,), MZ_TIMESTAMP, _millis_of_date),
        partial("timestamp", (MZ_TIMESTAMP,), TIMESTAMP, _micros),
        partial("timestamptz", (MZ_TIMESTAMP,), TIMESTAMPTZ, _micros),
    ]


ROWS: Final = (
    # A type's name may be called on its own values.
    *(relabelled(sql_type, sql_type) for sql_type in SCALARS),
    *_number_rows(),
    *_bool_rows(),
    *_string_rows(),
    *_datetime_rows(),
    *_oid_rows(),
    *_mz_timestamp_rows(),
)
