"""Entries in memory by columns, sorted by the hash of their key: a run that has no file yet."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from evertide.expr.columnar.batch import Batch, Entry, concat_batches, equal_rows
from evertide.expr.columnar.codes import identity_codes
from evertide.expr.columnar.column import Ints, from_arrow, nbytes, to_arrow
from evertide.expr.relation import Types
from evertide.persist.coding.encoding import one_chunk
from evertide.spark.arrangements.datums import Datums, Integers, datums_of, integers_of
from evertide.spark.arrangements.finding import Directory, find, is_ascending
from evertide.spark.arrangements.runs import entries_at, run_schema


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLayer:
    """Not empty, and never changed."""

    hashes: Ints
    batch: Batch
    # How large it is, once somebody has asked.
    _measured: list[int] = field(default_factory=list)
    # How single values are read, once somebody has.
    _datums: list[tuple[Sequence[Datums], tuple[Integers, Integers]]] = field(default_factory=list)
    # Where hashes are, once somebody has looked for some.
    _directory: list[Directory | None] = field(default_factory=list)

    @classmethod
    def of(cls, hashes: Ints, batch: Batch) -> "ColumnLayer":
        """These entries with the hashes of their keys, in any order."""
        if is_ascending(hashes):
            return cls(hashes, batch)
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], batch.take(order))

    @property
    def records(self) -> int:
        """How many entries."""
        return len(self.hashes)

    @property
    def memory_bytes(self) -> int:
        """How large it is."""
        if not self._measured:
            columns = sum([nbytes(column) for column in self.batch.columns])
            self._measured.append(columns + 3 * int(self.hashes.nbytes))
        return self._measured[0]

    @property
    def types(self) -> Types:
        """Of the rows."""
        return self.batch.types

    def find(self, needles: Ints) -> tuple[Ints, Ints]:
        """Where the needles are: pairs (position among the needles, position in the layer)."""
        return find(self.hashes, needles, self.directory)

    @property
    def directory(self) -> Directory | None:
        """Made when it is first asked for: most layers are merged before anybody does."""
        if not self._directory:
            self._directory.append(Directory.of(self.hashes))
        return self._directory[0]

    def at(self, places: Ints) -> Batch:
        """What is at these positions."""
        return self.batch.take(places)

    def entries(self, places: Ints) -> list[Entry]:
        """The same row by row; there is at least one."""
        batch = self.batch
        if not self._datums:
            datums = list(map(datums_of, batch.types, batch.columns))
            own = (integers_of(batch.times), integers_of(batch.diffs))
            self._datums.append((datums, own))
        return entries_at(*self._datums[0], places)

    def all_entries(self) -> list[Entry]:
        """Everything."""
        return self.batch.entries()

    def table(self, _since: int) -> pa.Table:
        """As a run's file has it."""
        types = self.batch.types
        columns = [to_arrow(t, c) for t, c in zip(types, self.batch.columns, strict=True)]
        own = (pa.array(self.batch.times), pa.array(self.batch.diffs))
        return pa.Table.from_arrays(
            [pa.array(self.hashes), *columns, *own], schema=run_schema(types)
        )


def layer_of_table(types: Types, table: pa.Table) -> ColumnLayer:
    """A sorted table as a run's file has it, which is not empty, kept in memory."""
    arrays = [one_chunk(column) for column in table.columns]
    columns = tuple([from_arrow(t, a) for t, a in zip(types, arrays[1:-2], strict=True)])
    hashes, times, diffs = (arrays[i].to_numpy() for i in (0, -2, -1))
    batch = Batch(types, columns, times, diffs)
    # Mostly made beside the ticks, one of which would else make the directory.
    return ColumnLayer(hashes, batch, _directory=[Directory.of(hashes)])


def put_together(one: ColumnLayer, other: ColumnLayer, since: int) -> ColumnLayer:
    """Two small layers as one: times before `since` advanced to it, identical entries added up."""
    both = concat_batches(one.types, [one.batch, other.batch])
    both = both.at(np.maximum(both.times, since))
    hashes = np.concatenate([one.hashes, other.hashes])
    codes = [code for column in both.columns for code in identity_codes(column)]
    starts, order = equal_rows([hashes, both.times, *codes])
    sums = np.add.reduceat(both.diffs[order], starts)
    places = order[starts][sums != 0]
    return ColumnLayer.of(hashes[places], both.take(places).with_diffs(sums[sums != 0]))
