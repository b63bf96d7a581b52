"""Floats as text: the fewest digits that read back as the same value, laid out as PostgreSQL's."""

import math
import re
import struct
from decimal import Decimal

from evertide.vocab.errors import InvalidTextRepresentation, NumericOutOfRange

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_SPECIALS = {
    "nan": math.nan, "infinity": math.inf, "inf": math.inf, "+infinity": math.inf,
    "+inf": math.inf, "-infinity": -math.inf, "-inf": -math.inf,
}  # fmt: skip


def to_float4(value: float) -> float:
    """The nearest single-precision value; an error where that is infinite, or zero, by accident."""
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        raise NumericOutOfRange("value out of range: overflow") from None
    if rounded == 0 and value != 0:
        raise NumericOutOfRange("value out of range: underflow")
    return float(rounded)


def parse_float8(text: str) -> float:
    """A double-precision value."""
    return _parse(text, "double precision")


def parse_float4(text: str) -> float:
    """A single-precision value."""
    value = _parse(text, "real")
    try:
        return to_float4(value)
    except NumericOutOfRange:
        raise _out_of_range(text, "real") from None


def _parse(text: str, type_name: str) -> float:
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        special = _SPECIALS.get(stripped.lower())
        if special is None:
            raise InvalidTextRepresentation(f'invalid input syntax for type {type_name}: "{text}"')
        return special
    value = float(stripped)
    mantissa = stripped.lower().partition("e")[0]
    if math.isinf(value) or (value == 0 and any(digit in mantissa for digit in "123456789")):
        raise _out_of_range(stripped, type_name)
    return value


def _out_of_range(text: str, type_name: str) -> NumericOutOfRange:
    return NumericOutOfRange(f'"{text}" is out of range for type {type_name}')


def float8_text(value: float) -> str:
    """A double-precision value.

    >>> [float8_text(f) for f in (0.1, 1e20, 1e15, 123456789012345.0, -0.0, 1e-5)]
    ['0.1', '1e+20', '1e+15', '123456789012345', '-0', '1e-05']
    """
    shortest = repr(value)
    if _lies_between(value, shortest, bits=53):
        longer = (f"{value:.{digits}e}" for digits in (14, 15, 16))
        shortest = next(
            text
            for text in longer
            if float(text) == value and not _lies_between(value, text, bits=53)
        )
    return _layout(value, shortest, fixed_below=15)


def float4_text(value: float) -> str:
    """A single-precision value.

    >>> float4_text(to_float4(0.1)), float4_text(1e6), float4_text(16777216.0)
    ('0.1', '1e+06', '1.6777216e+07')
    """
    for digits in range(9):
        shortest = f"{value:.{digits}e}"
        if _same_float4(shortest, value) and not _lies_between(value, shortest, bits=24):
            break
    return _layout(value, shortest, fixed_below=6)


def _same_float4(text: str, value: float) -> bool:
    try:
        return to_float4(float(text)) == value
    except NumericOutOfRange:
        return False


def _lies_between(value: float, text: str, *, bits: int) -> bool:
    """Whether a text lies exactly between the value and its neighbour.

    It would be read as the value, by the rule for ties, but PostgreSQL does not count on that. Only
    large integers can be so close to a short decimal.
    """
    if not 2**bits <= abs(value) < 1e41:
        return False
    exact, shown = abs(int(value)), abs(int(Decimal(text)))
    unit = 1 << (exact.bit_length() - bits)
    lower_unit = unit // 2 if exact == 1 << (exact.bit_length() - 1) else unit
    return (shown - exact) * 2 == unit or (exact - shown) * 2 == lower_unit


def _layout(value: float, shortest: str, *, fixed_below: int) -> str:
    """Lays the shortest digits out: plain for exponents from -4 to below the bound, else 1e+20."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    digits, exponent = _digits_and_exponent(shortest.lstrip("-"))
    if not digits:
        return sign + "0"
    if -4 <= exponent < fixed_below:
        return sign + _fixed(digits, exponent)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{exponent:+03}"


def _digits_and_exponent(text: str) -> tuple[str, int]:
    """Significant digits without zeros around them, and the exponent of the first."""
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = int(power or 0) + len(whole) - 1 - leading
    return digits.rstrip("0"), exponent


def _fixed(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole
