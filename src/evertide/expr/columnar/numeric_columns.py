"""Numerics as 64-bit integers with a scale, a column at a time.

The bytes of a numeric are read and written without a Python object per value: two bytes of header,
pairs of digits, one byte that ends them (persist/coding/numeric.py). A column is given up as soon
as one value has more than 18 digits at the scale in question, or is NaN or infinite.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evertide.expr.columnar.column import Ints, Mask, Others

MAX_DIGITS: Final = 18
LIMIT: Final = 10**MAX_DIGITS
_POWERS: Final[Ints] = np.array([10**power for power in range(MAX_DIGITS + 1)], np.int64)
_PAIRS: Final = MAX_DIGITS // 2
_ZERO, _NEGATIVE, _POSITIVE = 0x8000, 0x4000, 0xC000
_EXPONENT_LIMIT: Final = 0x1FFF
_FRAME: Final = 3  # bytes around the digits
_WORD: Final = 8  # bytes read at once
_SIX_BYTES: Final = np.uint64(2**48 - 1)
_ALL_BITS: Final = np.uint64(2**64 - 1)
_ONES: Final = np.uint64(0x0101010101010101)


def _digits_of_bytes() -> npt.NDArray[np.int64]:
    """What two bytes of digits stand for, of positive numbers and, behind them, of negative ones.

    Bytes that no digits have stand for zero, among them the zeros that shifting brings in.
    """
    one = np.zeros((2, 256), np.int64)
    for pair in range(100):
        nibbles = pair // 10 * 16 + pair % 10
        one[0, nibbles + 1] = one[1, 0xFE - nibbles] = pair
    return (one[:, :, None] * 100 + one[:, None, :]).reshape(-1)


def _bytes_of_digits() -> npt.NDArray[np.uint64]:
    """Four digits as two bytes of nibbles."""
    values = np.arange(10_000)
    nibbles = np.zeros(10_000, np.uint64)
    for place in range(4):
        nibbles |= (values // 10**place % 10 << 4 * place).astype(np.uint64)
    return nibbles


_FROM_BYTES: Final = _digits_of_bytes()
_TO_BYTES: Final = _bytes_of_digits()
# Which bytes of a row there are, by its length.
_TAKEN: Final[Mask] = np.arange(2 * _WORD) < np.arange(_FRAME + _PAIRS + 1)[:, None]
_TAKEN_SHORT: Final[Mask] = np.ascontiguousarray(_TAKEN[:, :_WORD])


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """Numerics of one scale: each is its integer divided by ten to the scale, 0 or more.

    Below NULLs the integers are 0. `encoding` is there if it was known before.
    """

    values: Ints
    scale: int
    nulls: Mask | None = None
    encoding: Others | None = None

    def __len__(self) -> int:
        return len(self.values)

    def encoded(self) -> Others | None:
        """Their physical encoding; None if some value has more than 18 digits."""
        if self.encoding is not None:
            return self.encoding
        array = from_scaled(self.values, self.scale, self.nulls)
        return None if array is None else Others(array)


def to_scaled(array: pa.Array) -> tuple[Ints, Ints, Mask | None] | None:
    """Integers, their scales, and where they are NULL (None: nowhere).

    A scale counts the digits after the point, and is negative where zeros before it are left out.
    None if some value has more than 18 digits or is NaN or infinite.
    """
    length = len(array)
    if not length:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), None
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + length + 1]
    pairs = np.diff(offsets).astype(np.int64) - _FRAME
    nulls = None
    if array.null_count:
        nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
        pairs[nulls] = 0
    most = int(pairs.max(initial=0))
    if most > _PAIRS:
        return None
    memory = _readable(array.buffers()[2], int(offsets[0]), int(offsets[-1]))
    starts = offsets[:-1].astype(np.int64) - int(offsets[0])
    words = _words(memory, starts)
    headers = (words >> np.uint64(48)).view(np.int64)
    negative = headers < _ZERO
    exponents = np.where(negative, _NEGATIVE - headers, headers - _POSITIVE)
    values = _digits(words & _SIX_BYTES, memory, starts, pairs, negative, most)
    scales = 2 * pairs - 1 - exponents
    short = pairs <= 0
    if short.any():  # zeros, NULLs, and what is no number
        odd_ones = headers[short] != _ZERO
        if nulls is not None:
            odd_ones &= ~nulls[short]
        if odd_ones.any():
            return None
        values[short] = scales[short] = 0
    # Of an odd number of digits the last pair is filled up.
    tenths = values // 10
    filled = tenths * 10 == values
    if short.any():
        filled &= ~short
    values = np.where(filled, tenths, values)
    scales -= filled
    return np.where(negative, -values, values), scales, nulls


def _readable(buffer: pa.Buffer | None, start: int, end: int) -> npt.NDArray[np.uint8]:
    """The bytes of all values, and so many more that words may be read beyond the last."""
    memory = np.zeros(end - start + 2 * _WORD, np.uint8)
    if buffer is not None:
        memory[: end - start] = np.frombuffer(buffer, np.uint8)[start:end]
    return memory


def _words(memory: npt.NDArray[np.uint8], starts: Ints) -> npt.NDArray[np.uint64]:
    """The eight bytes that begin at each place, the first of them the highest."""
    everywhere = np.ndarray((len(memory) - _WORD + 1,), ">u8", memory.data, strides=(1,))
    return everywhere[starts].astype(np.uint64)


def _digits(
    words: npt.NDArray[np.uint64],
    memory: npt.NDArray[np.uint8],
    starts: Ints,
    pairs: Ints,
    negative: Mask,
    most: int,
) -> Ints:
    """The digits of each value as one integer, from its first six bytes of them and the others."""
    sign = negative.astype(np.int64) << 16
    room = 6
    if most > room:
        words = _words(memory, starts + 2)
        room = _WORD
    words = words >> (8 * np.maximum(room - pairs, 0)).view(np.uint64)
    values = _FROM_BYTES.take(sign | (words & np.uint64(0xFFFF)).view(np.int64))
    for group in range(1, min((most + 1) // 2, 4)):
        four = (words >> np.uint64(16 * group)) & np.uint64(0xFFFF)
        values += _FROM_BYTES.take(sign | four.view(np.int64)) * 10 ** (4 * group)
    if most > room:
        last = _FROM_BYTES[sign | memory[starts + 2 + room]]
        values = np.where(pairs > room, values * 100 + last, values)
    return values


def common_scale(array: pa.Array) -> Scaled | None:
    """All values at the smallest scale that holds them all; None if some has no 18 digits there."""
    found = to_scaled(array)
    if found is None:
        return None
    values, scales, nulls = found
    scale = max(int(scales.max(initial=0)), 0)
    return _at_scale(values, scales, scale, nulls)


def _at_scale(values: Ints, scales: Ints, scale: int, nulls: Mask | None) -> Scaled | None:
    missing = np.where(values == 0, 0, scale - scales)
    if not len(values):
        return Scaled(values, 0, nulls)
    if missing.max() > MAX_DIGITS:
        return None
    factors = _POWERS.take(missing)
    # Their greatest product tells most columns; what it leaves open is looked at row by row.
    if (
        largest(values) * int(factors.max()) >= LIMIT
        and (np.abs(values) > (LIMIT - 1) // factors).any()
    ):
        return None
    return Scaled(values * factors, scale, nulls)


def rescaled(column: Scaled, scale: int) -> Scaled | None:
    """The same numbers at a greater scale; None if some does not fit there."""
    more = scale - column.scale
    if not more:
        return column
    if more > MAX_DIGITS or largest(column.values) > (LIMIT - 1) // 10**more:
        return None
    return Scaled(column.values * 10**more, scale, column.nulls)


def largest(values: Ints) -> int:
    """The size of the value farthest from zero."""
    if not len(values):
        return 0
    return max(int(values.max()), -int(values.min()))


def from_scaled(values: Ints, scale: int, nulls: Mask | None = None) -> pa.Array | None:
    """Inverse of common_scale: each integer divided by ten to the scale, which may be negative.

    None if some integer has more than 18 digits, or the exponent is not one of a numeric.
    """
    if largest(values) >= LIMIT or not -_EXPONENT_LIMIT // 2 < scale < _EXPONENT_LIMIT // 2:
        return None
    sizes = np.abs(values)
    digits = np.searchsorted(_POWERS, sizes, side="right")
    words, last = _nibbles(sizes, digits)
    negative, zero = values < 0, values == 0
    if nulls is not None:
        zero = zero | nulls
    exponents = digits - 1 - scale
    headers = np.where(negative, _NEGATIVE - exponents, _POSITIVE + exponents)
    used = _used_bytes(words)
    lengths = used + _FRAME
    if last is not None:
        lengths = np.where(last != 0, _FRAME + _PAIRS, lengths)
    if zero.any():
        headers[zero] = _ZERO
        lengths[zero] = 2
        if nulls is not None:
            lengths[nulls] = 0
    stored = _digit_bytes(words, used, negative)
    ends = np.where(negative, _ALL_BITS, np.uint64(0))
    if last is not None:
        stored, ends = _with_last(stored, ends, last, words, negative)
    wide = int(lengths.max(initial=0)) > _WORD
    rows = np.empty((len(values), 2 if wide else 1), ">u8")
    rows[:, 0] = (headers.view(np.uint64) << np.uint64(48)) | (stored >> np.uint64(16))
    if wide:
        rows[:, 1] = (stored << np.uint64(48)) | (ends >> np.uint64(16))
    return _binary(rows.view(np.uint8), lengths, nulls)


def _nibbles(
    sizes: Ints, digits: Ints
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64] | None]:
    """The first 16 digits, four bits each, filled up with zeros; and the two after them, if any."""
    most = int(digits.max(initial=1))
    groups = min((most + 3) // 4, 4)
    last = None
    aligned = sizes * _POWERS.take(np.maximum(4 * groups - digits, 0))
    if most > 16:
        aligned = sizes * _POWERS.take(MAX_DIGITS - digits)
        rest = aligned // 100
        last = _TO_BYTES.take(aligned - rest * 100)
        aligned = rest
    words = np.zeros(len(sizes), np.uint64)
    for group in range(groups):
        rest = aligned // 10_000
        words |= _TO_BYTES.take(aligned - rest * 10_000) << np.uint64(64 - 16 * (groups - group))
        aligned = rest
    return words, last


def _used_bytes(words: npt.NDArray[np.uint64]) -> Ints:
    """How many bytes there are up to the last that is not zero."""
    lowest_bit = words & (~words + np.uint64(1))
    zeros_below = np.bitwise_count(lowest_bit - np.uint64(1))
    return _WORD - (zeros_below >> 3).astype(np.int64)


def _digit_bytes(
    words: npt.NDArray[np.uint64], used: Ints, negative: Mask
) -> npt.NDArray[np.uint64]:
    """Digits as they are stored, with the byte that ends them behind."""
    beyond = _ALL_BITS >> (8 * used).view(np.uint64)
    digits = (words + _ONES) & ~beyond
    if not negative.any():
        return digits
    # Turned over, a digit's byte is what is missing to the turned-over one above it.
    return np.where(negative, ~digits, digits)


def _with_last(
    stored: npt.NDArray[np.uint64],
    ends: npt.NDArray[np.uint64],
    last: npt.NDArray[np.uint64],
    words: npt.NDArray[np.uint64],
    negative: Mask,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Digits 17 and 18, where they are not zero: zeros before them are digits then."""
    there = last != 0
    whole = np.where(negative, ~(words + _ONES), words + _ONES)
    byte = np.where(negative, np.uint64(0xFE) - last, last + np.uint64(1)) << np.uint64(56)
    ends_then = byte | (ends >> np.uint64(8))
    return np.where(there, whole, stored), np.where(there, ends_then, ends)


def _binary(rows: npt.NDArray[np.uint8], lengths: Ints, nulls: Mask | None) -> pa.Array:
    """An array of the first bytes of each row."""
    taken = (_TAKEN if rows.shape[1] > _WORD else _TAKEN_SHORT).take(lengths, axis=0)
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    validity = None
    if nulls is not None:
        validity = pa.array(~nulls).buffers()[1]
    data = rows.reshape(-1).compress(taken.reshape(-1))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)
