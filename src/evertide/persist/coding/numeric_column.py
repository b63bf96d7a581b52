"""Many numerics at once: their bytes (see numeric.py) to decimals, twice as fast as one by one.

The digits of a column are put together by position, in numpy, for numbers of up to 18 digits. Other
columns are left to whoever decodes one value after the other.
"""

from decimal import Decimal
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_Ints: TypeAlias = npt.NDArray[np.int64]

# Fewer are decoded one by one in less time than it takes to set all this up.
MANY_NUMERICS: Final = 400
_MOST_PAIRS: Final = 9
_HEADER_BYTES: Final = 2
_FRAME_BYTES: Final = 3
_NEGATIVE, _ZERO, _POSITIVE = 0x4000, 0x8000, 0xC000


def decode_numerics(array: pa.Array) -> list[Decimal | None] | None:
    """The decimals of a column of encoded numerics; None if some of them need another way."""
    present = array.drop_null() if array.null_count else array
    if not len(present):
        return [None] * len(array)
    _, offsets_buffer, values_buffer = present.buffers()
    first = present.offset
    offsets = np.frombuffer(offsets_buffer, np.int32)[first : first + len(present) + 1]
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    pairs = np.where(lengths == _HEADER_BYTES, 0, lengths - _FRAME_BYTES)
    if values_buffer is None or lengths.min() < _HEADER_BYTES or pairs.max() > _MOST_PAIRS:
        return None
    values = np.frombuffer(values_buffer, np.uint8)
    headers = values[starts].astype(np.int64) << 8 | values[starts + 1]
    if ((pairs == 0) & (headers != _ZERO)).any():
        return None  # NaN, an infinity, or nothing that was ever encoded
    texts = _texts(values, starts, pairs, headers)
    found = [Decimal(text) for text in texts.to_pylist()]
    if present is array:
        return list(found)
    rest = iter(found)
    return [next(rest) if valid else None for valid in array.is_valid().to_pylist()]


def _texts(values: npt.NDArray[np.uint8], starts: _Ints, pairs: _Ints, headers: _Ints) -> pa.Array:
    """Each number as its digits, E, and the exponent of the last of them."""
    negative = headers < _ZERO
    digits = np.zeros(len(starts), np.int64)
    for place in range(int(pairs.max())):
        there = place < pairs
        bytes_ = values[np.where(there, starts + _HEADER_BYTES + place, 0)].astype(np.int64)
        nibbles = np.where(negative, 0xFE - bytes_, bytes_ - 1) & 0xFF
        pair = (nibbles >> 4) * 10 + (nibbles & 0xF)
        digits = np.where(there, digits * 100 + pair, digits)
    # Of an odd number of digits the last pair was filled up; zero has none.
    filled = (digits % 10 == 0) & (pairs > 0)
    digits = np.where(filled, digits // 10, digits)
    exponents = np.where(negative, _NEGATIVE - headers, headers - _POSITIVE)
    last = np.where(pairs > 0, exponents + 1 - 2 * pairs + filled, 0)
    signed = np.where(negative, -digits, digits)
    return pc.binary_join_element_wise(
        pa.array(signed).cast(pa.string()), pa.array(last).cast(pa.string()), "E"
    )
