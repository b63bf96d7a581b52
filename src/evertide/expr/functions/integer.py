"""Arithmetic and bit operations of integers, signed and unsigned."""

import math
import operator
from collections.abc import Callable
from typing import Final

from evertide.expr.functions.build import Body, null_if_failed, partial, total
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import (
    INTEGERS,
    RANGES,
    SIGNED,
    UNSIGNED,
)
from evertide.vocab.errors import DivisionByZero, NumericOutOfRange
from evertide.vocab.sql_type import INT4, INT8, TEXT, Kind, SqlType

_SPARK_TYPES: Final = {Kind.INT2: "smallint", Kind.INT4: "int", Kind.INT8: "bigint"}
_BITS: Final = {Kind.INT2: 16, Kind.INT4: 32, Kind.INT8: 64}


def truncated_quotient(left: int, right: int) -> int:
    """SQL rounds quotients towards zero, Python downwards."""
    if right == 0:
        raise DivisionByZero("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: int, right: int) -> int:
    """The remainder has the sign of the dividend."""
    return left - right * truncated_quotient(left, right)


def _overflow(sql_type: SqlType) -> NumericOutOfRange:
    """In PostgreSQL's words and in the peer's: their users look for either."""
    return NumericOutOfRange(f"{sql_type} out of range: numeric field overflow")


def _no_opposite(sql_type: SqlType) -> NumericOutOfRange:
    """Only the least value has none."""
    return NumericOutOfRange(f'"{RANGES[sql_type][0]}" {sql_type} out of range')


def _no_quotient(sql_type: SqlType) -> NumericOutOfRange:
    """Only the least value has none, when it is divided by -1."""
    return NumericOutOfRange(f'"{RANGES[sql_type][0]} / -1" {sql_type} out of range')


def checked(
    sql_type: SqlType, compute: Callable[..., int], error: NumericOutOfRange | None = None
) -> Body:
    """The computation, refusing results that the type cannot hold."""
    least, greatest = RANGES[sql_type]
    message = (error or _overflow(sql_type)).message

    def body(*arguments: int) -> int:
        result = compute(*arguments)
        if least <= result <= greatest:
            return result
        raise NumericOutOfRange(message)

    return body


def _wide(sql_type: SqlType, symbol: str) -> str:
    """The operation one size up, then back: NULL where it does not fit.

    Spark's own try_ functions promote small integers in ways of their own.
    """
    if sql_type == INT8:
        name = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}[symbol]
        return f"{name}({{0}}, {{1}})"
    wide = f"cast({{0}} as bigint) {symbol} cast({{1}} as bigint)"
    return f"try_cast({wide} as {_SPARK_TYPES[sql_type.kind]})"


def _signed_rows(sql_type: SqlType) -> list[ScalarFunction]:
    both, error = (sql_type, sql_type), _overflow(sql_type)
    spark_type = _SPARK_TYPES[sql_type.kind]
    least = RANGES[sql_type][0]
    rows = [
        null_if_failed(
            symbol, both, sql_type, checked(sql_type, compute), _wide(sql_type, symbol), error
        )
        for symbol, compute in (("+", operator.add), ("-", operator.sub), ("*", operator.mul))
    ]
    negated = f"CASE WHEN {{0}} <> {least} THEN cast(-{{0}} as {spark_type}) END"
    absolute = f"CASE WHEN {{0}} <> {least} THEN cast(abs({{0}}) as {spark_type}) END"
    if sql_type == INT8:
        # The least bigint has no literal in Spark; it is the only value whose negation is NULL.
        negated, absolute = (
            "try_subtract(0L, {0})",
            "CASE WHEN {0} < 0 THEN try_subtract(0L, {0}) ELSE {0} END",
        )
    unfit = _no_opposite(sql_type)
    negate, make_positive = (checked(sql_type, f, unfit) for f in (operator.neg, abs))
    return [
        *rows,
        null_if_failed("-", (sql_type,), sql_type, negate, negated, unfit),
        *(
            null_if_failed(name, (sql_type,), sql_type, make_positive, absolute, unfit)
            for name in ("abs", "@")
        ),
    ]


def _modulo_rows(sql_type: SqlType) -> list[ScalarFunction]:
    """The quotient can fail in two ways and has no lowering; the remainder only in one."""
    both = (sql_type, sql_type)
    spark_type = _SPARK_TYPES[sql_type.kind]
    # x % -1 is 0; Java agrees, and spark says so without asking it.
    spark = f"CASE WHEN {{1}} = -1 THEN cast({{0}} - {{0}} as {spark_type}) WHEN {{1}} <> 0 " \
            f"THEN cast({{0}} % {{1}} as {spark_type}) END"  # fmt: skip
    error = DivisionByZero("division by zero")
    return [
        partial("/", both, sql_type, checked(sql_type, truncated_quotient, _no_quotient(sql_type))),
        null_if_failed("%", both, sql_type, remainder, spark, error),
        null_if_failed("mod", both, sql_type, remainder, spark, error),
    ]


def _unsigned_rows(sql_type: SqlType) -> list[ScalarFunction]:
    both = (sql_type, sql_type)
    binary = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "/": truncated_quotient,
        "%": remainder, "mod": remainder,
    }  # fmt: skip
    return [
        partial(name, both, sql_type, checked(sql_type, compute))
        for name, compute in binary.items()
    ]


def _shift(sql_type: SqlType, *, left: bool) -> Body:
    """Only the lowest bits of the distance count, and a left shift drops what falls out."""
    bits = _BITS[sql_type.kind]
    mask = 31 if bits <= 32 else 63

    def shift(value: int, distance: int) -> int:
        if not left:
            return value >> (distance & mask)
        return wrapped(value << (distance & mask), bits)

    return shift


def wrapped(value: int, bits: int) -> int:
    """The value that the lowest bits stand for in two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _bit_rows(sql_type: SqlType) -> list[ScalarFunction]:
    both = (sql_type, sql_type)
    return [
        total("&", both, sql_type, operator.and_, "{0} & {1}"),
        total("|", both, sql_type, operator.or_, "{0} | {1}"),
        total("#", both, sql_type, operator.xor, "{0} ^ {1}"),
        total("~", (sql_type,), sql_type, operator.invert, "~{0}"),
        total("<<", (sql_type, INT4), sql_type, _shift(sql_type, left=True)),
        total(">>", (sql_type, INT4), sql_type, _shift(sql_type, left=False)),
    ]


def _least_multiple(left: int, right: int) -> int:
    return math.lcm(left, right)


def _divisor_rows(sql_type: SqlType) -> list[ScalarFunction]:
    both, bits = (sql_type, sql_type), _BITS[sql_type.kind]
    return [
        partial("gcd", both, sql_type, checked(sql_type, math.gcd)),
        partial("lcm", both, sql_type, checked(sql_type, _least_multiple)),
        total("to_hex", (sql_type,), TEXT, lambda value: f"{value & ((1 << bits) - 1):x}"),
    ]


def _identity(value: int) -> int:
    return value


ROWS: Final = (
    *(row for t in SIGNED for row in (*_signed_rows(t), *_modulo_rows(t), *_bit_rows(t))),
    *(row for t in UNSIGNED for row in _unsigned_rows(t)),
    *(row for t in (INT4, INT8) for row in _divisor_rows(t)),
    *(total("+", (t,), t, _identity, "{0}") for t in INTEGERS),
    *(total("abs", (t,), t, _identity, "{0}") for t in UNSIGNED),
)
