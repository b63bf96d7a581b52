"""What a type's modifier does to a value: numeric(p,s), varchar(n), char(n), name."""

from decimal import Decimal

from evertide.expr.numeric_value import round_half_away, settle
from evertide.vocab.datum import NUMERIC_DIGITS
from evertide.vocab.errors import (
    InvalidParameterValue,
    NumericOutOfRange,
    StringDataRightTruncation,
)

NAME_BYTES = 63
MAX_LENGTH = 10_485_760


def fit_numeric(value: Decimal, precision: int, scale: int) -> Decimal:
    """A numeric rounded to a scale; an error if it has too many digits before the point then."""
    if not (1 <= precision <= NUMERIC_DIGITS and 0 <= scale <= precision):
        raise InvalidParameterValue(
            f"numeric precision {precision} and scale {scale} are out of range"
        )
    if value.is_nan():
        return value
    rounded = round_half_away(value, scale)
    if rounded.is_infinite() or (rounded and rounded.adjusted() >= precision - scale):
        raise NumericOutOfRange("numeric field overflow")
    return settle(rounded)


def fit_varchar(text: str, length: int, explicit: bool) -> str:
    """Text of at most so many characters.

    An explicit cast cuts; otherwise only blanks may be lost, because the user did not ask for it.
    """
    _check_length(length)
    if len(text) > length and not explicit and text[length:].strip(" "):
        raise StringDataRightTruncation(f"value too long for type character varying({length})")
    return text[:length]


def fit_bpchar(text: str, length: int, explicit: bool) -> str:
    """Text of exactly so many characters, filled up with blanks."""
    _check_length(length)
    if len(text) > length and not explicit and text[length:].strip(" "):
        raise StringDataRightTruncation(f"value too long for type character({length})")
    return text[:length].ljust(length)


def _check_length(length: int) -> None:
    if not 1 <= length <= MAX_LENGTH:
        raise InvalidParameterValue(f"length must be between 1 and {MAX_LENGTH}")


def fit_name(text: str) -> str:
    """An identifier, cut to the bytes that PostgreSQL keeps, never inside a character."""
    encoded = text.encode()
    return text if len(encoded) <= NAME_BYTES else encoded[:NAME_BYTES].decode(errors="ignore")


def fit_char(text: str) -> str:
    """The type "char": one byte; the first of the text."""
    return text[:1]
