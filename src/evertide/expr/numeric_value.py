"""Numerics: 39 significant digits, 39 of them after the point, exact until they are rounded.

Every result is brought into one form by `settle`, so that equal values have equal bytes.
"""

import re
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

from evertide.vocab.datum import NUMERIC_CONTEXT, NUMERIC_DIGITS, reduce_numeric
from evertide.vocab.errors import InvalidTextRepresentation, NumericOutOfRange

NAN = Decimal("NaN")
INFINITY = Decimal("Infinity")
MINUS_INFINITY = Decimal("-Infinity")
MAX_SCALE = 39
# The least integer that has too many digits.
_BEYOND = 10**NUMERIC_DIGITS
_SMALLEST = Decimal(1).scaleb(-MAX_SCALE)
# Without traps and with their flags ignored, contexts may be shared by threads.
_WIDE = Context(prec=400, rounding=ROUND_HALF_EVEN, traps=[])
_ROUNDED = Context(prec=NUMERIC_DIGITS, rounding=ROUND_HALF_EVEN, traps=[])

_PLAIN = re.compile(
    r"\s*[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+)?\s*", re.ASCII
)
_RADIX = re.compile(r"\s*([+-]?)0([xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)\s*", re.ASCII)
_SPECIALS = {
    "nan": NAN, "infinity": INFINITY, "inf": INFINITY, "+infinity": INFINITY, "+inf": INFINITY,
    "-infinity": MINUS_INFINITY, "-inf": MINUS_INFINITY,
}  # fmt: skip


def settle(value: Decimal) -> Decimal:
    """A value rounded to what a numeric holds, in its one representation; or an error.

    >>> settle(Decimal("1.500")), settle(Decimal("1E+2"))
    (Decimal('1.5'), Decimal('1E+2'))
    """
    if not value.is_finite():
        return NAN if value.is_nan() else value
    rounded = _ROUNDED.plus(value)
    if rounded.is_infinite():  # an exponent beyond Python's own
        raise NumericOutOfRange("value out of range: overflow")
    if not rounded:
        return Decimal(0)
    first_digit = rounded.adjusted()
    if first_digit >= NUMERIC_DIGITS:
        raise NumericOutOfRange("value out of range: overflow")
    if first_digit < -MAX_SCALE:
        raise NumericOutOfRange("value out of range: underflow")
    if first_digit < 0:  # only such a value can have more places than digits
        rounded = _within_scale(rounded)
    return reduce_numeric(rounded)


def settle_integer(value: int) -> Decimal:
    """The same of an integer: if it has no more digits than a numeric, none of it is rounded.

    >>> settle_integer(1500), settle_integer(0)
    (Decimal('1.5E+3'), Decimal('0'))
    """
    if not -_BEYOND < value < _BEYOND:
        return settle(Decimal(value))
    return Decimal(value).normalize(NUMERIC_CONTEXT) if value else Decimal(0)


def _within_scale(value: Decimal) -> Decimal:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -MAX_SCALE:
        return value.quantize(_SMALLEST, context=_WIDE)
    return value


def parse_numeric(text: str) -> Decimal:
    """A numeric from text; digits beyond the 39th are rounded, greater values refused."""
    value = _parse_exact(text)
    try:
        return settle(value)
    except NumericOutOfRange:
        raise NumericOutOfRange(
            f'"{text.strip()}" is out of range for type numeric: '
            f"exceeds maximum precision {NUMERIC_DIGITS}"
        ) from None


def _parse_exact(text: str) -> Decimal:
    if _PLAIN.fullmatch(text):
        return _decimal(text)
    special = _SPECIALS.get(text.strip().lower())
    if special is not None:
        return special
    matched = _RADIX.fullmatch(text)
    if matched is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type numeric: "{text}"')
    return Decimal(_parse_radix(matched, text, "numeric"))


def _decimal(text: str) -> Decimal:
    """The exact value; an exponent beyond Python's own limits is out of ours long before."""
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        return Decimal("1E+9999")


def parse_integer(text: str, type_name: str, least: int, greatest: int) -> int:
    """An integer from text in PostgreSQL's notations: decimal, 0x, 0o, 0b, underscores."""
    value = _integer(text, type_name)
    if least <= value <= greatest:
        return value
    raise NumericOutOfRange(f'value "{text}" is out of range for type {type_name}')


_INTEGER = re.compile(r"\s*[+-]?\d+(?:_\d+)*\s*", re.ASCII)


def _integer(text: str, type_name: str) -> int:
    if _INTEGER.fullmatch(text):
        # Python refuses to convert thousands of digits; so many are out of every range.
        return int(text) if len(text) < 4000 else 2**128
    matched = _RADIX.fullmatch(text)
    if matched is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type {type_name}: "{text}"')
    return _parse_radix(matched, text, type_name)


def _parse_radix(matched: re.Match[str], text: str, type_name: str) -> int:
    sign, digits = matched.groups()
    if digits.endswith("_") or "__" in digits:
        raise InvalidTextRepresentation(f'invalid input syntax for type {type_name}: "{text}"')
    value = int("0" + digits, 0)
    return -value if sign == "-" else value


def numeric_text(value: Decimal) -> str:
    """A numeric without an exponent.

    >>> numeric_text(Decimal("1E+2")), numeric_text(Decimal("-0.05"))
    ('100', '-0.05')
    """
    if value.is_nan():
        return "NaN"
    if value.is_infinite():
        return "Infinity" if value > 0 else "-Infinity"
    return format(value, "f")


def round_half_away(value: Decimal, scale: int) -> Decimal:
    """A value rounded to so many digits after the point, ties away from zero."""
    if not value.is_finite():
        return value
    return value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_WIDE)
