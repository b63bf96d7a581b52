"""Files of update batches: a job's output on its way to whoever reads it.

A frame is the length of a payload (four bytes), its XXH3-64 (eight), and the payload of an
UpdateBatch. So a reader holds one batch at a time, hands it on without looking into it, and never
takes half a file, or a damaged one, for the whole.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

import msgspec
import pyarrow as pa
import xxhash
from pyspark import TaskContext

from evertide.expr.relation import Types
from evertide.persist.coding.arrow_inline import encode_arrow
from evertide.persist.faults import Corrupt
from evertide.spark.tables import as_updates

_FRAME: Final = Struct("!IQ")
# What a writing task tells its driver of its files: nothing that grows with the rows.
WRITTEN_SCHEMA: Final = "p int, name string, batches bigint, n bigint, bytes bigint"
# A batch has so many bytes at most, unless a single row has more: two of them are in memory where
# a result is read.
BATCH_BYTES: Final = 4 << 20


class ResultFile(msgspec.Struct, frozen=True):
    """A file that a task wrote into a job's directory; a run is one batch."""

    name: str
    batches: int
    rows: int
    bytes: int


class FrameWriter:
    """Writes one file; use it in a with statement."""

    def __init__(self, directory: Path, name: str) -> None:
        self._name = name
        self._file: BinaryIO = (directory / name).open("xb")
        self._batches = 0
        self._rows = 0
        self._bytes = 0

    def __enter__(self) -> "FrameWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, table: pa.Table) -> None:
        """Updates in encoding.update_schema, as one batch or as several if they are large."""
        for piece in _pieces(table):
            payload = encode_arrow(piece)
            self._file.write(_FRAME.pack(len(payload), xxhash.xxh3_64_intdigest(payload)))
            self._file.write(payload)
            self._batches += 1
            self._rows += piece.num_rows
            self._bytes += len(payload)

    @property
    def written(self) -> ResultFile:
        return ResultFile(self._name, self._batches, self._rows, self._bytes)


def read_frames(path: Path) -> Iterator[bytes]:
    """The payloads of a file, each checked; blocks. Raises Corrupt, FileNotFoundError."""
    with path.open("rb") as file:
        while header := file.read(_FRAME.size):
            if len(header) < _FRAME.size:
                raise Corrupt(f"result file {path.name} ends within a frame")
            length, checksum = _FRAME.unpack(header)
            payload = file.read(length)
            if len(payload) < length or xxhash.xxh3_64_intdigest(payload) != checksum:
                raise Corrupt(f"result file {path.name} is damaged: its checksum differs")
            yield payload


@dataclass(frozen=True, slots=True)
class ResultWriter:
    """Writes its partition of a result where a task runs, and tells what it wrote.

    A task that is run again writes a file of its own: what counts is what the job's result names.
    """

    directory: str
    types: Types
    as_of: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = this_task()
        coming = (batch for batch in batches if batch.num_rows)
        first = next(coming, None)
        if first is None:
            return
        with FrameWriter(Path(self.directory), file_name(task)) as writer:
            batch: pa.RecordBatch | None = first
            while batch is not None:
                writer.write(as_updates(self.types, pa.Table.from_batches([batch]), self.as_of))
                batch = next(coming, None)
        yield told_file(task, writer.written)


def this_task() -> TaskContext:
    """The task of Spark's that this runs in."""
    task = TaskContext.get()
    assert task is not None, "a task of Spark's calls this"
    return task


def file_name(task: TaskContext, piece: int = 0) -> str:
    """That no other task, and no other try of this one, gives a file."""
    return f"{task.partitionId():06d}-{piece:06d}-{task.taskAttemptId()}-{os.getpid()}"


def told_file(task: TaskContext, file: ResultFile) -> pa.RecordBatch:
    """A file that the task wrote, as a row of WRITTEN_SCHEMA."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([task.partitionId()], pa.int32()),
            pa.array([file.name]),
            *(pa.array([n]) for n in (file.batches, file.rows, file.bytes)),
        ],
        names=["p", "name", "batches", "n", "bytes"],
    )


def named_files(written: pa.Table) -> tuple[ResultFile, ...]:
    """The files that tasks told of, in the order of their partitions and pieces.

    Only these count: what a try that failed has written lies beside them.
    """
    told = sorted(written.to_pylist(), key=lambda one: (one["p"], one["name"]))
    tries = {(one["p"], *one["name"].split("-")[2:]) for one in told}
    assert len({p for p, *_ in tries}) == len(tries), "a partition has one result"
    return tuple(ResultFile(one["name"], one["batches"], one["n"], one["bytes"]) for one in told)


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """At most BATCH_BYTES each, as far as rows can be kept apart."""
    rows, size = table.num_rows, table.nbytes
    if size <= BATCH_BYTES or rows <= 1:
        yield table
        return
    half = rows // 2
    yield from _pieces(table.slice(0, half))
    yield from _pieces(table.slice(half))
