"""The encoded keys of many rows in one piece of memory: persist/coding/keys.py by columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evertide.expr.columnar.column import Column, Ints, Mask, Numbers, Others
from evertide.expr.relation import Types
from evertide.vocab.sql_type import Kind, SqlType

Bytes: TypeAlias = npt.NDArray[np.uint8]
# Writes a column's keys where each row's begins.
Write: TypeAlias = Callable[[Bytes, Ints], None]

_NULL: Final = 2
_SIGN: Final = np.uint64(1 << 63)
_NAN_BITS: Final = 0x7FF8 << 48
# Kinds whose key is 01, their bytes, and so many 00; those with none end by themselves.
_ENDS: Final = {
    Kind.TEXT: 1, Kind.VARCHAR: 1, Kind.NAME: 1, Kind.CHAR: 1, Kind.BYTEA: 2,
    Kind.NUMERIC: 0, Kind.UUID: 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class KeyBytes:
    """Keys end to end, where each starts, and how long it is."""

    memory: Bytes
    starts: Ints
    lengths: Ints


def key_bytes(types: Types, columns: Sequence[Column], length: int) -> KeyBytes | None:
    """The keys of all rows; None where some type or value has no way by columns."""
    parts = [_part(sql_type, column) for sql_type, column in zip(types, columns, strict=True)]
    lengths = np.zeros(length, np.int64)
    for part in parts:
        if part is None:
            return None
        lengths += part[0]
    starts = lengths.cumsum() - lengths
    memory = np.empty(int(lengths.sum()), np.uint8)
    places = starts.copy()
    for part in parts:
        assert part is not None, "looked at above"
        part[1](memory, places)
        places += part[0]
    return KeyBytes(memory, starts, lengths)


def _part(sql_type: SqlType, column: Column) -> tuple[Ints, Write] | None:
    """How long each value's key is, and what writes them."""
    nulls = column.null_mask if isinstance(column, Others) or column.nulls is not None else None
    if isinstance(column, Numbers):
        return _numbers(column, nulls)
    if sql_type.kind in _ENDS:
        return _strings(column.array, nulls, _ENDS[sql_type.kind])
    return None


def _numbers(column: Numbers, nulls: Mask | None) -> tuple[Ints, Write]:
    matrix = key_matrix(column)
    width = matrix.shape[1]
    if nulls is None or not nulls.any():

        def write_all(memory: Bytes, places: Ints) -> None:
            memory[places[:, None] + np.arange(width)] = matrix

        return np.full(len(column), width, np.int64), write_all
    there = ~nulls

    def write(memory: Bytes, places: Ints) -> None:
        memory[places[nulls]] = _NULL
        memory[places[there][:, None] + np.arange(width)] = matrix[there]

    return np.where(nulls, 1, width), write


def key_matrix(column: Numbers) -> Bytes:
    """The encoded keys of numbers that are not NULL: a row of bytes for each."""
    values = column.values
    if values.dtype == np.bool_:
        matrix = np.ones((len(values), 2), np.uint8)
        matrix[:, 1] = values
        return matrix
    words: npt.NDArray[Any]
    if values.dtype == np.float64:
        bits = np.where(np.isnan(values), _NAN_BITS, (values + 0.0).view(np.int64))
        words = np.where(bits < 0, ~bits, bits ^ np.int64(-(2**63))).view(np.uint64)
    else:
        words = values.astype(np.int64, copy=False).view(np.uint64) ^ _SIGN
    matrix = np.ones((len(values), 9), np.uint8)
    matrix[:, 1:] = words.astype(">u8").view(np.uint8).reshape(-1, 8)
    return matrix


def _strings(array: pa.Array, nulls: Mask | None, ended: int) -> tuple[Ints, Write] | None:
    """Text and bytes. A zero byte within would have to be written as two: left to others."""
    count = len(array)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + count + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    buffer = array.buffers()[2]
    data = np.frombuffer(buffer, np.uint8)[first:last] if buffer else np.zeros(0, np.uint8)
    if ended and not data.all():
        return None
    sizes = np.diff(offsets).astype(np.int64)
    if nulls is not None and nulls.any():
        if sizes[nulls].any():
            return None  # bytes below a NULL
        lengths = np.where(nulls, 1, sizes + 1 + ended)
    else:
        nulls = None
        lengths = sizes + 1 + ended

    def write(memory: Bytes, places: Ints) -> None:
        memory[places] = 1
        if nulls is not None:
            memory[places[nulls]] = _NULL
        within = np.arange(len(data)) - (offsets[:-1].astype(np.int64) - first).repeat(sizes)
        memory[(places + 1).repeat(sizes) + within] = data
        ends = places + 1 + sizes if nulls is None else (places + 1 + sizes)[~nulls]
        for place in range(ended):
            memory[ends + place] = 0

    return lengths, write
