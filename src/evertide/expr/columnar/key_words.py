"""Keys in which a few words come again and again: each different word is encoded once.

Groups and joins by a text mostly are of this kind, and writing the same bytes a million times takes
longer than everything else that is done with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from evertide.expr.columnar.column import Column, Ints, Numbers, Others, to_datums
from evertide.expr.columnar.key_bytes import Bytes, key_matrix
from evertide.expr.relation import Types
from evertide.persist.coding.keys import row_key_encoder
from evertide.vocab.sql_type import SqlType

# A word must come so often on average, and must not be longer than this.
_LEAST_REPEATED: Final = 8
_MOST_BYTES: Final = 64
# So many values tell whether they may repeat: then half of them do.
_SAMPLE: Final = 1_024
# Rows of different lengths are handled one length after the other.
_MOST_LENGTHS: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Which word each row has, how long each word's key is, and the keys, filled up to the longest
    of them."""

    codes: Ints
    lengths: Ints
    keys: Bytes

    def at(self, rows: Ints) -> Bytes:
        """The keys of these rows, which are equally long."""
        codes = self.codes[rows]
        return np.ascontiguousarray(self.keys[:, : int(self.lengths[codes[0]])])[codes]


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """Keys that are all equally long."""

    keys: Bytes

    def at(self, rows: Ints) -> Bytes:
        """The keys of these rows."""
        return self.keys[rows]


Part: TypeAlias = Words | Plain


@dataclass(frozen=True, slots=True, eq=False)
class KeyParts:
    """A part for each column."""

    parts: tuple[Part, ...]

    def by_length(self) -> list[tuple[Ints, Bytes]] | None:
        """Rows with their keys, those whose words are equally long at once; None: too many."""
        lengths = np.zeros(1, np.int64)
        for part in self.parts:
            if isinstance(part, Words):
                lengths = lengths * (_MOST_BYTES + 1) + part.lengths[part.codes]
        kinds = np.unique(lengths).tolist()
        if len(kinds) > _MOST_LENGTHS:
            return None
        each = [np.flatnonzero(lengths == kind) for kind in kinds]
        return [(rows, np.concatenate([p.at(rows) for p in self.parts], axis=1)) for rows in each]


def key_parts(types: Types, columns: Sequence[Column]) -> KeyParts | None:
    """The keys of all rows; None where words do not repeat, or some value is not a word."""
    parts: list[Part] = []
    for sql_type, column in zip(types, columns, strict=True):
        part = _part(sql_type, column)
        if part is None:
            return None
        parts.append(part)
    return KeyParts(tuple(parts))


def _part(sql_type: SqlType, column: Column) -> Part | None:
    if isinstance(column, Numbers):
        return Plain(key_matrix(column)) if column.nulls is None else None
    return _words(sql_type, column.array)


def _words(sql_type: SqlType, array: pa.Array) -> Words | None:
    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        return None
    sample = array.slice(0, _SAMPLE)
    if 2 * len(sample.unique()) > len(sample):
        return None
    listed = array.dictionary_encode(null_encoding="encode")
    if len(listed.dictionary) * _LEAST_REPEATED > len(array):
        return None
    encode = row_key_encoder((sql_type,))
    keys = [encode((datum,)) for datum in to_datums(sql_type, Others(listed.dictionary))]
    lengths = np.array([len(key) for key in keys], np.int64)
    longest = int(lengths.max())
    if longest > _MOST_BYTES:
        return None
    filled = b"".join([key.ljust(longest, b"\0") for key in keys])
    matrix = np.frombuffer(filled, np.uint8).reshape(len(keys), longest)
    return Words(listed.indices.to_numpy().astype(np.int64), lengths, matrix)
