"""What a type's modifier does to a value: numeric(p,s), varchar(n), char(n), timestamp(p), name."""

from decimal import Decimal

from evertide.expr.numeric_value import round_half_away, settle
from evertide.vocab.datum import NUMERIC_DIGITS, TS_INFINITY, TS_MINUS_INFINITY, Interval
from evertide.vocab.errors import (
    DatetimeFieldOverflow,
    InvalidParameterValue,
    NumericOutOfRange,
    StringDataRightTruncation,
)

MICROSECOND_DIGITS = 6
# PostgreSQL rounds away from the start of 2000, where its clock begins.
_CLOCK = 946_684_800_000_000
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


def round_micros(micros: int, digits: int) -> int:
    """So many digits after the second; halves go away from zero.

    >>> round_micros(1_250_000, 1), round_micros(-1_250_000, 1)
    (1300000, -1300000)
    """
    if not 0 <= digits <= MICROSECOND_DIGITS:
        raise InvalidParameterValue(
            f"precision must be between 0 and {MICROSECOND_DIGITS}, not {digits}"
        )
    unit: int = 10 ** (MICROSECOND_DIGITS - digits)
    rounded = (abs(micros) + unit // 2) // unit * unit
    return rounded if micros >= 0 else -rounded


def fit_timestamp(micros: int, digits: int) -> int:
    """A timestamp with so many digits after the second."""
    if micros in (TS_INFINITY, TS_MINUS_INFINITY):
        return micros
    rounded = round_micros(micros - _CLOCK, digits) + _CLOCK
    if not TS_MINUS_INFINITY < rounded < TS_INFINITY:
        raise DatetimeFieldOverflow("timestamp out of range")
    return rounded


def fit_interval(interval: Interval, digits: int) -> Interval:
    """An interval with so many digits after the second."""
    micros = round_micros(interval.micros, digits)
    if not -(2**63) <= micros < 2**63:
        raise DatetimeFieldOverflow("interval out of range")
    return interval._replace(micros=micros)


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
