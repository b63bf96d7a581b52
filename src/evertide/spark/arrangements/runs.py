"""Runs: immutable files of (row, timestamp, diff) sorted by the hash of their key.

A run is one Arrow IPC file with one record batch, mapped into memory: columns h (the hash), c0..cN
in their physical encoding, t and d. Looking a key up is a search in h by numpy (finding.py); what
is found must be compared with the key itself, since different keys may have one hash.

The hash is Spark's xxhash64 with its seed, 42, of one binary column: the key's encoding
(persist/coding/keys.py). So Spark can sort and write runs that this code searches.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from evertide.expr.columnar.batch import Batch, Entry
from evertide.expr.columnar.column import Column, Ints, Numbers, from_arrow, is_number
from evertide.expr.columnar.hashes import hash_bytes
from evertide.expr.relation import Types
from evertide.persist.coding.encoding import arrow_type, encode_column
from evertide.persist.threads import give_way
from evertide.spark.arrangements.datums import (
    NUMPY_TYPES,
    Datums,
    Integers,
    datums_of_array,
    integers_of,
)
from evertide.spark.arrangements.finding import Directory, find
from evertide.vocab.sql_type import SqlType

__all__ = [
    "DamagedRun", "Entry", "Ints", "Run", "open_run", "run_schema", "table_of", "write_run",
]  # fmt: skip

# What is at these positions of a column; the same positions are given as Arrow's integers too.
Reader: TypeAlias = Callable[[Ints, pa.Array], Column]
N = TypeVar("N", bound=np.generic)

# About a millisecond of work.
_PIECE_ROWS: Final = 1_000
# In a file's name, between what the run was made by and its number.
_BEFORE_NUMBER: Final = "-"


class DamagedRun(Exception):
    """A file of ours holds something else than what was written to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One file. Never changes; the file may be unlinked while it is still read here."""

    path: Path
    types: Types
    table: pa.Table
    hashes: Ints
    # Made when the file is opened, and only in memory.
    directory: Directory | None
    times: Ints
    diffs: Ints
    readers: tuple[Reader, ...]
    datums: tuple[Datums, ...]
    # Of times and diffs.
    own: tuple[Integers, Integers]
    # Of what the file held when it was opened.
    digest: int

    @property
    def length(self) -> int:
        """How many entries."""
        return len(self.hashes)

    @property
    def file_bytes(self) -> int:
        """How large the data is; the file is hardly larger."""
        return int(self.table.nbytes)

    @property
    def origin(self) -> str:
        """Which merge made it, or what else: of runs that share it, merging makes no less."""
        return self.path.stem.partition(_BEFORE_NUMBER)[0]

    def check(self) -> None:
        """Raises DamagedRun if it no longer is what it was."""
        if digest_of(self.table) != self.digest:
            raise DamagedRun(f"{self.path} was changed by somebody")

    def find(self, needles: Ints) -> tuple[Ints, Ints]:
        """Where the needles are: pairs (position among the needles, position in the run)."""
        return find(self.hashes, needles, self.directory)

    def at(self, places: Ints) -> Batch:
        """What is at these positions."""
        picked = pa.array(places)
        columns = tuple([reader(places, picked) for reader in self.readers])
        return Batch(self.types, columns, self.times[places], self.diffs[places])

    def entries(self, places: Ints) -> list[Entry]:
        """The same row by row."""
        return entries_at(self.datums, self.own, places)

    def all_entries(self) -> list[Entry]:
        """Everything, in the order of the file."""
        return self.entries(np.arange(self.length))


def entries_at(
    datums: Sequence[Datums], own: tuple[Integers, Integers], places: Ints
) -> list[Entry]:
    """What is at these places, read column by column; `own` are times and diffs."""
    rows = zip(*[of(places) for of in datums], strict=True) if datums else repeat(())
    times, diffs = own
    return list(zip(rows, times(places), diffs(places), strict=False))


def run_schema(types: Types) -> pa.Schema:
    """The columns of a run's file."""
    own = [pa.field(f"c{i}", arrow_type(sql_type)) for i, sql_type in enumerate(types)]
    return pa.schema(
        [pa.field("h", pa.int64()), *own, pa.field("t", pa.int64()), pa.field("d", pa.int64())]
    )


def table_of(types: Types, keyed: Iterable[tuple[bytes, Entry]]) -> pa.Table:
    """Entries with their keys as a sorted table.

    Made in pieces, between which other threads have their turn: this is the only part of writing
    and merging that keeps the interpreter busy.
    """
    pieces = [_empty_piece(types)]
    remaining = iter(keyed)
    while piece := list(islice(remaining, _PIECE_ROWS)):
        pieces.append(_piece(types, piece))
        give_way()
    whole = pa.concat_tables(pieces).combine_chunks()
    hashes: Ints = whole.column("h").to_numpy()
    return whole.take(pa.array(np.argsort(hashes, kind="stable")))


def _empty_piece(types: Types) -> pa.Table:
    return run_schema(types).empty_table()


def _piece(types: Types, keyed: Sequence[tuple[bytes, Entry]]) -> pa.Table:
    hashes = pa.array(hash_bytes([key for key, _ in keyed]))
    rows = [entry[0] for _, entry in keyed]
    columns = [
        encode_column(sql_type, [row[i] for row in rows]) for i, sql_type in enumerate(types)
    ]
    times = pa.array([entry[1] for _, entry in keyed], pa.int64())
    diffs = pa.array([entry[2] for _, entry in keyed], pa.int64())
    return pa.Table.from_arrays([hashes, *columns, times, diffs], schema=run_schema(types))


def write_run(path: Path, types: Types, table: pa.Table) -> Run:
    """Write a sorted table that is not empty. The file appears under its name when it is whole."""
    table = table.cast(run_schema(types)).combine_chunks()
    (batch,) = table.to_batches()
    part = path.with_suffix(".part")
    try:
        with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_batch(batch)
        os.replace(part, path)
        return open_run(path, types)
    except BaseException:
        # Whoever tries again takes another name, and the disk is full as it is.
        part.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        raise


def piece_path(path: Path, number: int) -> Path:
    """Where the run of this number is written, of several that are written at once."""
    return path.with_stem(f"{path.stem}{_BEFORE_NUMBER}{number}") if number else path


def open_run(path: Path, types: Types) -> Run:
    """Map a run's file."""
    with pa.memory_map(str(path)) as mapped:
        table = pa.ipc.open_file(mapped).read_all()
    assert table.schema.equals(run_schema(types)), f"{path} holds other columns: {table.schema}"
    assert table.num_rows, f"{path} is empty"
    columns = [table.column(name).chunk(0) for name in table.column_names]
    readers = tuple(
        _reader(sql_type, column) for sql_type, column in zip(types, columns[1:-2], strict=True)
    )
    datums = tuple(map(datums_of_array, types, columns[1:-2]))
    hashes, times, diffs = (_view(columns[i], np.int64) for i in (0, -2, -1))
    own = (integers_of(times), integers_of(diffs))
    directory = Directory.of(hashes)
    digest = digest_of(table)
    return Run(path, types, table, hashes, directory, times, diffs, readers, datums, own, digest)


def digest_of(table: pa.Table) -> int:
    """Of all its bytes."""
    digest = xxhash.xxh3_64()
    for column in table.columns:
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                if buffer is not None:
                    digest.update(buffer)
    return digest.intdigest()


def _reader(sql_type: SqlType, column: pa.Array) -> Reader:
    """Numbers are read through numpy where nothing is NULL, everything else through Arrow."""
    numpy_type = NUMPY_TYPES.get(column.type)
    if numpy_type is None or column.null_count or not is_number(sql_type):
        return lambda _places, picked: from_arrow(sql_type, column.take(picked))
    view = _view(column, numpy_type)
    wide = np.float64 if pa.types.is_floating(column.type) else np.int64
    return lambda places, _picked: Numbers(view[places].astype(wide, copy=False))


def _view(column: pa.Array, numpy_type: type[N]) -> npt.NDArray[N]:
    """The column's memory as it is: Arrow's own conversion would import pandas."""
    memory = np.frombuffer(column.buffers()[1], dtype=numpy_type)
    return memory[column.offset : column.offset + len(column)]
