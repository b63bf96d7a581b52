"""Runs that tasks of Spark write: their own range of hashes, sorted, in files of bounded size."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from evertide.expr.relation import Types
from evertide.spark.arrangements.runs import run_schema
from evertide.spark.building.result_files import ResultFile, file_name, this_task, told_file

# So much of a range is in a task's memory until it is written, whatever the range holds.
PIECE_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class RunWriter:
    """Takes rows sorted by hash (h, c0.., d) and writes them as files in the shape of runs.

    A range whose keys are few, or one key alone, is several files that follow each other.
    """

    directory: str
    types: Types
    as_of: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = this_task()
        for piece, table in enumerate(self._pieces(batches)):
            name = file_name(task, piece)
            path = Path(self.directory) / name
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            yield told_file(task, ResultFile(name, 1, table.num_rows, table.nbytes))

    def _pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            if batch.num_rows:
                held.append(batch)
                size += batch.nbytes
            if size >= PIECE_BYTES:
                yield self._as_run(held)
                held, size = [], 0
        if held:
            yield self._as_run(held)

    def _as_run(self, batches: list[pa.RecordBatch]) -> pa.Table:
        table = pa.Table.from_batches(batches)
        schema = run_schema(self.types)
        times = pa.array(np.full(table.num_rows, self.as_of, np.int64))
        columns = [table.column(f"c{i}") for i in range(len(self.types))]
        columns = [table.column("h"), *columns, times, table.column("d")]
        whole = pa.Table.from_arrays(columns, names=schema.names).cast(schema)
        return whole.combine_chunks()
