"""Sums that do not depend on the order of their terms, and that a retraction undoes exactly.

A double is an integer times 2**-1074, so sums of doubles are sums of Python integers; a sum of
decimals is exact in a context wide enough. Both are rounded once, when they are shown.
"""

from decimal import Context, Decimal, Inexact
from math import frexp
from typing import Final

from evertide.vocab.datum import reduce_numeric
from evertide.vocab.errors import NumericOutOfRange

# The least positive double is 2**-1074.
_SCALE_BITS: Final = 1074
_UNIT: Final = 1 << _SCALE_BITS
_MANTISSA_BITS: Final = 53
_MANTISSA: Final = float(1 << _MANTISSA_BITS)

# Stored exponents stay within +-8191 (persist/coding/numeric.py), so this never rounds; if it did,
# it would raise.
EXACT: Final = Context(prec=40_000, Emax=999_999, Emin=-999_999, traps=[Inexact])


def fixed_point(value: float) -> int:
    """A finite double as a count of 2**-1074.

    >>> fixed_point(5e-324), fixed_point(-1.0) == -(1 << 1074)
    (1, True)
    """
    mantissa, exponent = frexp(value)
    shift = exponent - _MANTISSA_BITS + _SCALE_BITS
    digits = int(mantissa * _MANTISSA)
    # Below the normal range the shift is negative and the digits it drops are zeros.
    return digits << shift if shift >= 0 else digits >> -shift


def rounded_float(total: int) -> float:
    """The double nearest to this count of 2**-1074, ties to even: integer division rounds so."""
    try:
        return total / _UNIT
    except OverflowError:
        raise NumericOutOfRange("value out of range: overflow") from None


def rounded_numeric(total: Decimal) -> Decimal:
    """An exact sum as a numeric datum: 39 digits, reduced."""
    return reduce_numeric(total)
