"""Hashes of rows, by columns, to spread a batch's rows over its parts.

Equal rows have equal hashes: equal as merge.py compares them, by representation. States say by
these numbers which rows a part holds, and a merge looks for a row only where its hash says. So the
same columns must have the same hashes for ever: other numbers would lose rows. Another column
changes them, which is why parts of another version of the schema count as not spread at all.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from evertide.persist.threads import give_way

Hashes: TypeAlias = npt.NDArray[np.uint64]
_Integers: TypeAlias = npt.NDArray[np.integer[Any]]

_WORD: Final = 8
# Longer values are hashed one by one, by a function that is faster on many bytes.
_SHORT_BYTES: Final = 16 * _WORD
# Rows between two pauses: what a millisecond or two suffices for.
_STEP_ROWS: Final = 16 * 1024
_STEP_LONG: Final = 1_000
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2: Final = np.uint64(0x94D049BB133111EB)
# By how many of a word's bytes belong to the value.
_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], dtype=np.uint64)


def row_hashes(columns: pa.Table) -> Hashes:
    """One hash for each row. Columns are integers, booleans, strings or bytes."""
    hashes = np.zeros(columns.num_rows, dtype=np.uint64)
    start = 0
    for step in columns.to_batches(max_chunksize=_STEP_ROWS):
        rows = hashes[start : start + step.num_rows]
        for column in step.columns:
            rows[:] = _mix(rows * _FACTOR_1 ^ _hash_values(column))
        start += step.num_rows
        give_way()
    return hashes


def _hash_values(array: pa.Array) -> Hashes:
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        hashes = _hash_bytes(array)
    else:
        values = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
        hashes = _mix(values.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))
    if array.null_count:
        hashes[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _hash_bytes(array: pa.Array) -> Hashes:
    """Short values a word at a time, all of them at once."""
    _, offset_buffer, value_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[array.offset :][: len(array) + 1]
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    first, end = int(offsets[0]), int(offsets[-1])
    # With a word behind the last value, so that its last word may be read whole.
    values = np.zeros(end - first + _WORD, dtype=np.uint8)
    if end > first:
        values[: end - first] = np.frombuffer(value_buffer, dtype=np.uint8)[first:end]
    starts -= first
    hashes = _mix(lengths.view(np.uint64))
    _add_words(hashes, values, starts, lengths)
    _add_long(hashes, values, starts, lengths)
    return hashes


def _add_words(
    hashes: Hashes, values: npt.NDArray[np.uint8], starts: _Integers, lengths: _Integers
) -> None:
    # A word begins at every byte.
    words: Hashes = np.ndarray((len(values) - _WORD + 1,), np.uint64, values, strides=(1,))
    for place in range(0, _SHORT_BYTES, _WORD):
        rows = np.flatnonzero((lengths > place) & (lengths <= _SHORT_BYTES))
        if not len(rows):
            return
        mask = _MASKS[np.minimum(lengths[rows] - place, _WORD)]
        hashes[rows] = _mix(hashes[rows] * _FACTOR_2 ^ words[starts[rows] + place] & mask)


def _add_long(
    hashes: Hashes, values: npt.NDArray[np.uint8], starts: _Integers, lengths: _Integers
) -> None:
    view = values.data
    for number, row in enumerate(np.flatnonzero(lengths > _SHORT_BYTES).tolist()):
        start = int(starts[row])
        hashes[row] = xxhash.xxh3_64_intdigest(view[start : start + int(lengths[row])])
        if number % _STEP_LONG == 0:
            give_way()


def _mix(hashes: Hashes) -> Hashes:
    """Let every bit depend on every other one."""
    mixed = hashes ^ hashes >> np.uint64(30)
    mixed *= _FACTOR_1
    mixed ^= mixed >> np.uint64(27)
    mixed *= _FACTOR_2
    mixed ^= mixed >> np.uint64(31)
    return mixed
