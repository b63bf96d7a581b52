"""Which task has which rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import xxhash

from evertide.expr.columnar.batch import Entry
from evertide.expr.columnar.column import Ints
from evertide.expr.columnar.hashes import SPARK_HASH_SEED, hash_keys
from evertide.expr.compile import compile_scalar
from evertide.expr.relation import Types
from evertide.expr.row_key import column_encoder
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.persist.coding.keys import row_key_encoder
from evertide.spark.operators.delta import NOTHING, Delta
from evertide.vocab.datum import Row
from evertide.vocab.errors import SqlError

# Has all errors, constants, rows whose key fails, and what has no key.
FIRST: Final = 0
_NO_KEY: Final = int(xxhash.xxh64_intdigest(b"", SPARK_HASH_SEED))
_WORD: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Share:
    """The task `number` of `count`, from 0."""

    number: int
    count: int


def owners_of_hashes(hashes: Ints, count: int) -> Ints:
    """Which task has the rows whose keys have these hashes, as Spark's xxhash64 gives them.

    They are counted from the hash of no key at all, which so is the first task's.
    """
    with np.errstate(over="ignore"):
        beyond = hashes.view(np.uint64) - np.uint64(_NO_KEY)
    return (beyond % np.uint64(count)).astype(np.int64)


def owner_of_key(key: bytes, count: int) -> int:
    """The same of one encoded key."""
    return (xxhash.xxh64_intdigest(key, SPARK_HASH_SEED) - _NO_KEY) % _WORD % count


class Router:
    """Takes changes apart by the task that has their key."""

    def __init__(self, types: Types, key: tuple[Scalar, ...], count: int) -> None:
        self._types = types
        self._count = count
        self._key_types = tuple([part.type for part in key])
        columns = [part.index for part in key if isinstance(part, ColumnRef)]
        # None: the key is computed, row by row.
        self._columns = tuple(columns) if len(columns) == len(key) else None
        self._encode = (
            _computed(key) if self._columns is None else column_encoder(types, self._columns)
        )

    def split(self, delta: Delta) -> list[Delta]:
        """For each task its part; all errors are the first one's."""
        if delta.is_wide and self._columns is not None:
            parts = self._split_columns(delta)
        else:
            parts = self._split_rows(delta.rows)
        parts[FIRST] = parts[FIRST].with_errors(delta.errors)
        return parts

    def _split_columns(self, delta: Delta) -> list[Delta]:
        assert self._columns is not None, "a computed key goes row by row"
        batch = delta.batch(self._types)
        keys = [batch.columns[column] for column in self._columns]
        owners = owners_of_hashes(hash_keys(self._key_types, keys, len(batch)), self._count)
        return [Delta(batch=batch.take(owners == number)) for number in range(self._count)]

    def _split_rows(self, entries: Sequence[Entry]) -> list[Delta]:
        if not entries:
            return [NOTHING] * self._count
        parts: list[list[Entry]] = [[] for _ in range(self._count)]
        for entry in entries:
            parts[self._owner(entry[0])].append(entry)
        return [Delta(part) for part in parts]

    def _owner(self, row: Row) -> int:
        try:
            return owner_of_key(self._encode(row), self._count)
        except SqlError:
            return FIRST


def _computed(key: tuple[Scalar, ...]) -> Callable[[Row], bytes]:
    """A key whose parts are computed from the row; whatever fails is raised."""
    scalars = [compile_scalar(part) for part in key]
    encode = row_key_encoder(tuple([part.type for part in key]))
    return lambda row: encode(tuple([scalar(row) for scalar in scalars]))
