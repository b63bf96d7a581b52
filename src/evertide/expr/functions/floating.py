"""Arithmetic and mathematics of floats.

A finite result that overflows, or a product that vanishes, is an error as in PostgreSQL; NaN and
infinities that come in may come out.
"""

import math
import operator
from collections.abc import Callable
from typing import Final

from evertide.expr.data_errors import InvalidArgumentForLogarithm, InvalidArgumentForPower
from evertide.expr.float_text import to_float4
from evertide.expr.functions.build import Body, null_if_failed, partial, total
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import FLOATS
from evertide.vocab.errors import DivisionByZero, NumericOutOfRange
from evertide.vocab.sql_type import FLOAT4, FLOAT8, SqlType


def overflow() -> NumericOutOfRange:
    return NumericOutOfRange("value out of range: overflow")


def underflow() -> NumericOutOfRange:
    return NumericOutOfRange("value out of range: underflow")


def _sum_like(compute: Callable[[float, float], float]) -> Callable[[float, float], float]:
    def body(a: float, b: float) -> float:
        result = compute(a, b)
        if math.isinf(result) and not (math.isinf(a) or math.isinf(b)):
            raise overflow()
        return result

    return body


def multiply(a: float, b: float) -> float:
    """A product; vanishing is an error unless a factor is zero."""
    result = a * b
    if math.isinf(result) and not (math.isinf(a) or math.isinf(b)):
        raise overflow()
    if result == 0 and a != 0 and b != 0:
        raise underflow()
    return result


def divide(a: float, b: float) -> float:
    """A quotient; dividing by zero is an error unless the dividend is NaN."""
    if b == 0:
        if math.isnan(a):
            return a
        raise DivisionByZero("division by zero")
    result = a / b
    if math.isinf(result) and not math.isinf(a):
        raise overflow()
    if result == 0 and a != 0 and not math.isinf(b):
        raise underflow()
    return result


def _modulo(a: float, b: float) -> float:
    if b == 0:
        raise DivisionByZero("division by zero")
    return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)


def _single(compute: Callable[..., float]) -> Body:
    """Single precision: doubles are wide enough that rounding their result once more is exact."""
    return lambda *arguments: to_float4(compute(*arguments))


_INFINITE: Final = "abs({0}) = double('infinity')"


def _sum_row(arguments: tuple[SqlType, SqlType], symbol: str) -> ScalarFunction:
    compute = operator.add if symbol == "+" else operator.sub
    body = _sum_like(compute)
    sql_type = FLOAT4 if arguments == (FLOAT4, FLOAT4) else FLOAT8
    spark_type = "float" if sql_type == FLOAT4 else "double"
    result = f"cast({{0}} as {spark_type}) {symbol} cast({{1}} as {spark_type})"
    infinite_argument = f"{_INFINITE} OR {_INFINITE.replace('{0}', '{1}')}"
    spark = (
        f"CASE WHEN {_INFINITE.replace('{0}', result)} AND NOT ({infinite_argument}) THEN NULL "
        f"ELSE {result} END"
    )
    return null_if_failed(
        symbol,
        arguments,
        sql_type,
        _single(body) if sql_type == FLOAT4 else body,
        spark,
        overflow(),
    )


def _arithmetic_rows(sql_type: SqlType) -> list[ScalarFunction]:
    both = (sql_type, sql_type)
    rounded: Callable[[Callable[..., float]], Body] = (
        _single if sql_type == FLOAT4 else lambda compute: compute
    )
    return [
        _sum_row(both, "+"),
        _sum_row(both, "-"),
        partial("*", both, sql_type, rounded(multiply)),
        partial("/", both, sql_type, rounded(divide)),
        partial("%", both, sql_type, rounded(_modulo)),
        partial("mod", both, sql_type, rounded(_modulo)),
        total("-", (sql_type,), sql_type, operator.neg, "-{0}"),
        total("+", (sql_type,), sql_type, lambda value: value, "{0}"),
        total("abs", (sql_type,), sql_type, abs, "abs({0})"),
        total("@", (sql_type,), sql_type, abs, "abs({0})"),
    ]


def _mixed_rows() -> list[ScalarFunction]:
    """One single and one double: their result is a double.

    Without these rows an integer beside a single would become a single too.
    """
    computed: dict[str, Body] = {"*": multiply, "/": divide}
    rows: list[ScalarFunction] = []
    for both in ((FLOAT4, FLOAT8), (FLOAT8, FLOAT4)):
        rows += [_sum_row(both, symbol) for symbol in ("+", "-")]
        rows += [partial(name, both, FLOAT8, body) for name, body in computed.items()]
    return rows


def _sign(value: float) -> float:
    """Neither -0 nor NaN has a sign."""
    return float(value > 0) - float(value < 0)


def _integral(compute: Callable[[float], float]) -> Body:
    """Rounding that leaves NaN, infinities and the sign of zero alone."""

    def body(value: float) -> float:
        if not math.isfinite(value):
            return value
        return math.copysign(float(compute(value)), value)

    return body


def square_root(value: float) -> float:
    """The square root; that of a negative number is an error."""
    if value < 0:
        raise InvalidArgumentForPower("cannot take square root of a negative number")
    return math.sqrt(value)


def _cube_root(value: float) -> float:
    return math.cbrt(value)


def exponential(value: float) -> float:
    """e to a power."""
    try:
        result = math.exp(value)
    except OverflowError:
        raise overflow() from None
    if result == 0 and not math.isinf(value):
        raise underflow()
    return result


def _logarithm(name: str, compute: Callable[[float], float]) -> Body:
    def body(value: float) -> float:
        if value <= 0:
            what = "zero" if value == 0 else "negative numbers"
            raise InvalidArgumentForLogarithm(f"function {name} is not defined for {what}")
        return compute(value)

    return body


def power(base: float, exponent: float) -> float:
    """A power, with PostgreSQL's errors where there is no real or finite one."""
    if base == 0 and exponent < 0:
        raise InvalidArgumentForPower("zero raised to a negative power is undefined")
    if base < 0 and math.isfinite(exponent) and exponent != math.floor(exponent):
        raise InvalidArgumentForPower("function pow cannot return complex numbers")
    try:
        result = math.pow(base, exponent)
    except OverflowError:
        raise overflow() from None
    finite = math.isfinite(base) and math.isfinite(exponent)
    if finite and math.isinf(result):
        raise overflow()
    if finite and result == 0 and base != 0:
        raise underflow()
    return result


_DOMAINS: Final = {
    **dict.fromkeys(("sin", "cos", "tan", "cot"), "only defined for finite arguments"),
    **dict.fromkeys(("asin", "acos", "atanh"), "defined for numbers between -1 and 1 inclusive"),
    "acosh": "defined for numbers greater than or equal to 1",
}


def _trigonometric(name: str, compute: Callable[[float], float]) -> Body:
    """Angles must be finite, and arguments of inverse functions within their domain."""

    def body(value: float) -> float:
        if math.isnan(value):
            return value
        try:
            return compute(value)
        except ValueError:
            raise NumericOutOfRange(f"function {name} is {_DOMAINS[name]}") from None
        except OverflowError:
            raise overflow() from None

    return body


def _hyperbolic_sine(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _hyperbolic_cosine(value: float) -> float:
    try:
        return math.cosh(value)
    except OverflowError:
        return math.inf


def _cotangent(value: float) -> float:
    tangent = math.tan(value)
    return math.copysign(math.inf, tangent) if tangent == 0 else 1 / tangent


def _degrees(value: float) -> float:
    return divide(value, math.pi / 180)


def _radians(value: float) -> float:
    return multiply(value, math.pi / 180)


_FAILING: Final[dict[str, Body]] = {
    "sqrt": square_root, "|/": square_root, "exp": exponential,
    "ln": _logarithm("ln", math.log), "log": _logarithm("log", math.log10),
    "log10": _logarithm("log10", math.log10),
    "degrees": _degrees, "radians": _radians,
    **{
        name: _trigonometric(name, compute)
        for name, compute in {
            "sin": math.sin, "cos": math.cos, "tan": math.tan, "cot": _cotangent,
            "asin": math.asin, "acos": math.acos, "acosh": math.acosh,
        }.items()
    },
}  # fmt: skip


def _hyperbolic_area_tangent(value: float) -> float:
    if abs(value) == 1:
        return math.copysign(math.inf, value)
    return math.atanh(value)


_SIMPLE: Final[dict[str, tuple[Body, str | None]]] = {
    "round": (_integral(round), "rint({0})"),
    "trunc": (_integral(math.trunc), None),
    "ceil": (_integral(math.ceil), None),
    "ceiling": (_integral(math.ceil), None),
    "floor": (_integral(math.floor), None),
    "sign": (_sign, None),
    "cbrt": (_cube_root, None),
    "||/": (_cube_root, None),
    "atan": (math.atan, None),
    "sinh": (_hyperbolic_sine, None),
    "cosh": (_hyperbolic_cosine, None),
    "tanh": (math.tanh, None),
    "asinh": (math.asinh, None),
}


ROWS: Final = (
    *(row for t in FLOATS for row in _arithmetic_rows(t)),
    *_mixed_rows(),
    *(total(name, (FLOAT8,), FLOAT8, body, spark) for name, (body, spark) in _SIMPLE.items()),
    *(partial(name, (FLOAT8,), FLOAT8, body) for name, body in _FAILING.items()),
    *(partial(name, (FLOAT8, FLOAT8), FLOAT8, power) for name in ("power", "pow", "^")),
    partial("atanh", (FLOAT8,), FLOAT8, _trigonometric("atanh", _hyperbolic_area_tangent)),
    total("atan2", (FLOAT8, FLOAT8), FLOAT8, math.atan2),
    total("pi", (), FLOAT8, lambda: math.pi, "pi()"),
)
