"""Hashes of keys by columns: Spark's xxhash64, seed 42, of the key's encoding.

The encoding is that of persist/coding/keys.py, end to end. Keys of one length are hashed all at
once by numpy; where there is no way to encode by columns, each different key is encoded once.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import xxhash

from evertide.expr.columnar.batch import different_rows
from evertide.expr.columnar.codes import identity_codes
from evertide.expr.columnar.column import Column, Ints, Numbers, to_datums
from evertide.expr.columnar.key_bytes import Bytes, KeyBytes, key_bytes, key_matrix
from evertide.expr.columnar.key_words import key_parts
from evertide.expr.relation import Types
from evertide.persist.coding.keys import row_key_encoder

Words: TypeAlias = npt.NDArray[np.uint64]

SPARK_HASH_SEED: Final = 42
# So few keys are quicker hashed one by one.
_FEW: Final = 24
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)  # fmt: skip


def hash_bytes(keys: Sequence[bytes]) -> Ints:
    """Spark's xxhash64 of each key.

    >>> int(hash_bytes([b"Spark"])[0])
    -4294468057691064905
    """
    digest = xxhash.xxh64_digest
    # Bytes end to end become an array sooner than a list of integers does.
    hashes = b"".join([digest(key, SPARK_HASH_SEED) for key in keys])
    return np.frombuffer(hashes, ">i8").astype(np.int64)


def hash_keys(types: Types, columns: Sequence[Column], length: int) -> Ints:
    """The hash of each row of these columns."""
    if not columns:
        return np.full(length, hash_bytes([b""])[0])
    if length <= _FEW:
        return hash_bytes(_encoded(types, columns, np.arange(length)))
    numbers = [column for column in columns if isinstance(column, Numbers)]
    if len(numbers) == len(columns) and all(column.nulls is None for column in numbers):
        return hash_matrix(np.concatenate([key_matrix(column) for column in numbers], axis=1))
    parts = key_parts(types, columns)
    each = None if parts is None else parts.by_length()
    if each is not None:
        hashes = np.empty(length, np.int64)
        for rows, matrix in each:
            hashes[rows] = hash_matrix(matrix)
        return hashes
    keys = key_bytes(types, columns, length)
    if keys is not None:
        return _hash_by_length(keys)
    which, firsts = different_rows([c for column in columns for c in identity_codes(column)])
    return hash_bytes(_encoded(types, columns, firsts))[which]


def _hash_by_length(keys: KeyBytes) -> Ints:
    """Keys of one length at once; the few that are alone with theirs one by one."""
    hashes = np.empty(len(keys.lengths), np.int64)
    order = np.argsort(keys.lengths, kind="stable")
    lengths, starts = np.unique(keys.lengths[order], return_index=True)
    for length, places in zip(lengths.tolist(), np.split(order, starts[1:]), strict=True):
        begins = keys.starts[places]
        if len(places) <= _FEW:
            ends = (begins + length).tolist()
            memory = keys.memory
            pairs = zip(begins.tolist(), ends, strict=True)
            hashes[places] = hash_bytes([memory[begin:end].tobytes() for begin, end in pairs])
        else:
            hashes[places] = hash_matrix(keys.memory[begins[:, None] + np.arange(length)])
    return hashes


def _encoded(types: Types, columns: Sequence[Column], places: Ints) -> list[bytes]:
    datums = [
        to_datums(sql_type, column.take(places))
        for sql_type, column in zip(types, columns, strict=True)
    ]
    encode = row_key_encoder(tuple(types))
    return [encode(row) for row in zip(*datums, strict=True)]


def hash_matrix(keys: Bytes) -> Ints:
    """xxhash64 of the rows of a matrix of bytes."""
    count, length = keys.shape
    with np.errstate(over="ignore"):
        if length >= 32:
            state, position = _stripes(keys)
        else:
            state, position = np.full(count, np.uint64(SPARK_HASH_SEED) + _P5), 0
        state = state + np.uint64(length)
        while position + 8 <= length:
            state ^= _rotate(_word(keys, position) * _P2, 31) * _P1
            state = _rotate(state, 27) * _P1 + _P4
            position += 8
        if position + 4 <= length:
            half = np.ascontiguousarray(keys[:, position : position + 4]).view("<u4")[:, 0]
            state ^= half.astype(np.uint64) * _P1
            state = _rotate(state, 23) * _P2 + _P3
            position += 4
        for place in range(position, length):
            state ^= keys[:, place].astype(np.uint64) * _P5
            state = _rotate(state, 11) * _P1
        return _avalanche(state).view(np.int64)


def _stripes(keys: Bytes) -> tuple[Words, int]:
    """Keys of 32 bytes and more: four lanes side by side."""
    seed, count = np.uint64(SPARK_HASH_SEED), len(keys)
    starts = (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)
    lanes: list[Words] = [np.full(count, start) for start in starts]
    position = 0
    while position + 32 <= keys.shape[1]:
        for lane in range(4):
            word = _word(keys, position + 8 * lane)
            lanes[lane] = _rotate(lanes[lane] + word * _P2, 31) * _P1
        position += 32
    first, second, third, fourth = lanes
    state = _rotate(first, 1) + _rotate(second, 7) + _rotate(third, 12) + _rotate(fourth, 18)
    for words in lanes:
        state = (state ^ (_rotate(words * _P2, 31) * _P1)) * _P1 + _P4
    return state, position


def _word(keys: Bytes, position: int) -> Words:
    """Eight bytes of each key as one little-endian word."""
    words: Words = np.ascontiguousarray(keys[:, position : position + 8]).view("<u8")[:, 0]
    return words


def _rotate(words: Words, bits: int) -> Words:
    rotated: Words = (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
    return rotated


def _avalanche(state: Words) -> Words:
    state = state ^ (state >> np.uint64(33))
    state = state * _P2
    state = state ^ (state >> np.uint64(29))
    state = state * _P3
    return state ^ (state >> np.uint64(32))
