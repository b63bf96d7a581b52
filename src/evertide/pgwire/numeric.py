"""numeric's binary format: digits of base 10,000 with a weight, a sign and a display scale."""

from decimal import Decimal
from struct import Struct

from evertide.vocab.errors import InvalidBinaryRepresentation

_HEADER = Struct("!HhHH")  # digits, weight of the first, sign, display scale
_DIGIT_WIDTH = 4
_POSITIVE, _NEGATIVE = 0x0000, 0x4000
_SPECIAL_TO_SIGN = {"NaN": 0xC000, "Infinity": 0xD000, "-Infinity": 0xF000}
_SIGN_TO_SPECIAL = {sign: Decimal(name) for name, sign in _SPECIAL_TO_SIGN.items()}


def encode_numeric(value: Decimal, scale: int) -> bytes:
    """`scale` is that of the type: as many digits behind the point are shown at least.

    >>> encode_numeric(Decimal("-12345.678"), 0).hex()
    '0003000140000003000109291a7c'
    """
    if not value.is_finite():
        name = str(value.copy_abs() if value.is_nan() else value)
        return _HEADER.pack(0, 0, _SPECIAL_TO_SIGN[name], 0x20 if name != "NaN" else 0)
    negative, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    # Align the point with a base-10,000 digit.
    text = "".join(map(str, digits)) + "0" * (exponent % _DIGIT_WIDTH)
    text = text.zfill(-(-len(text) // _DIGIT_WIDTH) * _DIGIT_WIDTH)
    groups = [int(text[at : at + _DIGIT_WIDTH]) for at in range(0, len(text), _DIGIT_WIDTH)]
    weight = len(groups) - 1 + exponent // _DIGIT_WIDTH
    while groups and not groups[-1]:
        groups.pop()
    sign = _NEGATIVE if negative else _POSITIVE
    header = _HEADER.pack(len(groups), weight if groups else 0, sign, max(scale, -exponent, 0))
    return header + Struct(f"!{len(groups)}H").pack(*groups)


def decode_numeric(raw: bytes) -> Decimal:
    """The number as it was sent, with whatever zeros it has at either end."""
    if len(raw) < _HEADER.size:
        raise InvalidBinaryRepresentation("incorrect binary value of type numeric")
    count, weight, sign, _scale = _HEADER.unpack_from(raw)
    if sign in _SIGN_TO_SPECIAL:
        return _SIGN_TO_SPECIAL[sign]
    if sign not in (_POSITIVE, _NEGATIVE) or len(raw) != _HEADER.size + 2 * count:
        raise InvalidBinaryRepresentation("incorrect binary value of type numeric")
    groups = Struct(f"!{count}H").unpack_from(raw, _HEADER.size)
    if any(group > 9_999 for group in groups):
        raise InvalidBinaryRepresentation("invalid digit in binary value of type numeric")
    digits = tuple(int(digit) for group in groups for digit in f"{group:04d}")
    exponent = (weight - count + 1) * _DIGIT_WIDTH
    return Decimal((int(sign == _NEGATIVE), digits or (0,), exponent if digits else 0))
