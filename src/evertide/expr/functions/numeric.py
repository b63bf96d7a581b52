"""Arithmetic and mathematics of numerics: exact where it can be, else rounded to 39 digits."""

from collections.abc import Callable
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    Context,
    Decimal,
)
from typing import Final

from evertide.expr.data_errors import InvalidArgumentForLogarithm, InvalidArgumentForPower
from evertide.expr.functions.build import Body, partial, total
from evertide.expr.numeric_value import (
    INFINITY,
    MAX_SCALE,
    MINUS_INFINITY,
    NAN,
    round_half_away,
    settle,
)
from evertide.vocab.datum import NUMERIC_DIGITS, reduce_numeric
from evertide.vocab.errors import DivisionByZero, NumericOutOfRange
from evertide.vocab.sql_type import INT4, NUMERIC

# Wide enough that sums, products and remainders of numerics are exact; makes NaN of inf - inf.
EXACT: Final = Context(prec=400, Emax=9999, Emin=-9999, traps=[])
# Some digits more than are kept, so that rounding twice does no harm.
_ROUNDED: Final = Context(prec=NUMERIC_DIGITS + 10, Emax=9999, Emin=-9999, traps=[])


def add(a: Decimal, b: Decimal) -> Decimal:
    """A sum."""
    return settle(EXACT.add(a, b))


def subtract(a: Decimal, b: Decimal) -> Decimal:
    """A difference."""
    return settle(EXACT.subtract(a, b))


def multiply(a: Decimal, b: Decimal) -> Decimal:
    """A product."""
    return settle(EXACT.multiply(a, b))


def divide(a: Decimal, b: Decimal) -> Decimal:
    """A quotient with 39 significant digits, reduced."""
    _check_divisor(a, b)
    return settle(_ROUNDED.divide(a, b))


def remainder(a: Decimal, b: Decimal) -> Decimal:
    """The remainder of the truncated quotient; it has the sign of the dividend."""
    _check_divisor(a, b)
    return settle(EXACT.remainder(a, b))


def quotient(a: Decimal, b: Decimal) -> Decimal:
    """The quotient without its fraction."""
    _check_divisor(a, b)
    if a.is_infinite() or b.is_infinite():
        return settle(EXACT.divide(a, b))
    return settle(EXACT.divide_int(a, b))


def _check_divisor(a: Decimal, b: Decimal) -> None:
    if b == 0 and not a.is_nan():
        raise DivisionByZero("division by zero")


def _to_integral(rounding: str) -> Body:
    def body(value: Decimal) -> Decimal:
        return settle(value.to_integral_value(rounding=rounding, context=EXACT))

    return body


def _round(value: Decimal, scale: int = 0) -> Decimal:
    return settle(round_half_away(value, _bounded(scale)))


def _truncate(value: Decimal, scale: int = 0) -> Decimal:
    if not value.is_finite():
        return value
    unit = Decimal(1).scaleb(-_bounded(scale))
    return settle(value.quantize(unit, rounding=ROUND_DOWN, context=EXACT))


def _bounded(scale: int) -> int:
    """No numeric has digits beyond these places, so rounding there is rounding nowhere."""
    return max(-NUMERIC_DIGITS - 1, min(scale, MAX_SCALE))


def _sign(value: Decimal) -> Decimal:
    if value.is_nan() or value == 0:
        return value
    return Decimal(1) if value > 0 else Decimal(-1)


def _square_root(value: Decimal) -> Decimal:
    if value < 0 if not value.is_nan() else False:
        raise InvalidArgumentForPower("cannot take square root of a negative number")
    return settle(_ROUNDED.sqrt(value))


def _exponential(value: Decimal) -> Decimal:
    if value == MINUS_INFINITY:
        return Decimal(0)
    if value.is_finite() and abs(value) > 6000:
        what = "underflow" if value < 0 else "overflow"
        raise NumericOutOfRange(f"value out of range: {what}")
    return settle(_ROUNDED.exp(value))


def _check_logarithm(name: str, value: Decimal) -> None:
    if not value.is_nan() and value <= 0:
        what = "zero" if value == 0 else "negative numbers"
        raise InvalidArgumentForLogarithm(f"function {name} is not defined for {what}")


def _logarithm(name: str, compute: Callable[[Decimal], Decimal]) -> Body:
    def body(value: Decimal) -> Decimal:
        _check_logarithm(name, value)
        return settle(compute(value))

    return body


def _logarithm_to_base(base: Decimal, value: Decimal) -> Decimal:
    if base.is_nan() or value.is_nan():
        return NAN
    _check_logarithm("log", base)
    _check_logarithm("log", value)
    divisor = _ROUNDED.ln(base)
    if divisor == 0:
        raise DivisionByZero("division by zero")
    if value.is_infinite() and not base.is_infinite():
        return value
    return settle(_ROUNDED.divide(_ROUNDED.ln(value), divisor))


def power(base: Decimal, exponent: Decimal) -> Decimal:
    """A power, with PostgreSQL's errors where there is no real or finite one."""
    if base.is_nan() or exponent.is_nan():
        return Decimal(1) if base == 1 or exponent == 0 else NAN
    if exponent == 0 or base == 1:
        return Decimal(1)
    if base == 0 and exponent < 0:
        raise InvalidArgumentForPower("zero raised to a negative power is undefined")
    if base < 0 and exponent.is_finite() and exponent != exponent.to_integral_value():
        raise InvalidArgumentForPower("function pow cannot return complex numbers")
    if not (base.is_finite() and exponent.is_finite()):
        return _infinite_power(base, exponent)
    return _finite_power(base, exponent)


def _finite_power(base: Decimal, exponent: Decimal) -> Decimal:
    if base == 0:
        return Decimal(0)
    # Its logarithm tells the size before any work is done. Neither abs() nor - is used: they round
    # to the digits of Python's own context.
    size = _ROUNDED.multiply(exponent, _ROUNDED.log10(base.copy_abs()))
    if size > NUMERIC_DIGITS + 1:
        raise NumericOutOfRange("value out of range: overflow")
    if size < -MAX_SCALE - 1:
        raise NumericOutOfRange("value out of range: underflow")
    result = _ROUNDED.power(base.copy_abs(), exponent)
    odd = base < 0 and EXACT.remainder(exponent, Decimal(2)) != 0
    return settle(result.copy_negate() if odd else result)


def _infinite_power(base: Decimal, exponent: Decimal) -> Decimal:
    """PostgreSQL's rules, which are those of floats."""
    if exponent.is_infinite():
        if abs(base) == 1:
            return Decimal(1)
        grows = (abs(base) > 1) == (exponent > 0)
        return INFINITY if grows else Decimal(0)
    if exponent < 0:
        return Decimal(0)
    odd = exponent == exponent.to_integral_value() and EXACT.remainder(exponent, Decimal(2)) != 0
    return MINUS_INFINITY if base < 0 and odd else INFINITY


def _scale(value: Decimal) -> int | None:
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else None


_BINARY: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": add, "-": subtract, "*": multiply, "/": divide, "%": remainder, "mod": remainder,
    "div": quotient, "power": power, "pow": power, "^": power, "log": _logarithm_to_base,
}  # fmt: skip
_FAILING: Final[dict[str, Body]] = {
    "round": _round, "ceil": _to_integral(ROUND_CEILING), "ceiling": _to_integral(ROUND_CEILING),
    "floor": _to_integral(ROUND_FLOOR), "sqrt": _square_root, "exp": _exponential,
    "ln": _logarithm("ln", _ROUNDED.ln), "log": _logarithm("log10", _ROUNDED.log10),
    "log10": _logarithm("log10", _ROUNDED.log10),
}  # fmt: skip

ROWS: Final = (
    *(partial(name, (NUMERIC, NUMERIC), NUMERIC, body) for name, body in _BINARY.items()),
    *(partial(name, (NUMERIC,), NUMERIC, body) for name, body in _FAILING.items()),
    partial("round", (NUMERIC, INT4), NUMERIC, _round),
    total("trunc", (NUMERIC,), NUMERIC, _truncate),
    total("trunc", (NUMERIC, INT4), NUMERIC, _truncate),
    total("-", (NUMERIC,), NUMERIC, lambda value: reduce_numeric(EXACT.minus(value))),
    total("+", (NUMERIC,), NUMERIC, lambda value: value, "{0}"),
    *(total(name, (NUMERIC,), NUMERIC, lambda value: EXACT.abs(value)) for name in ("abs", "@")),
    total("sign", (NUMERIC,), NUMERIC, _sign),
    total("scale", (NUMERIC,), INT4, _scale),
    total("trim_scale", (NUMERIC,), NUMERIC, lambda value: value, "{0}"),
)
