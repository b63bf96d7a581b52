"""What an arrangement consists of: a layer in memory, frozen layers, runs on disk.

Few changes go into the layer, by key. Many come as columns, and are a frozen layer at once; small
ones are merged in memory, and what has grown is written as a run.

All lists are replaced, never changed, so that whoever holds one may go on reading it. Merging is
three steps: a plan (due_merges) and `swap` on the owner's thread, both quick, and `merge` between
them, on any thread, which only reads what never changes. One merge of each kind may be under way:
what one of them has taken is left alone by the other.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa

from evertide.expr.columnar.batch import Entry
from evertide.expr.relation import Types
from evertide.spark.arrangements.column_layer import ColumnLayer, layer_of_table, put_together
from evertide.spark.arrangements.layer import Layer
from evertide.spark.arrangements.memory import give_back, memory_limit
from evertide.spark.arrangements.merge_runs import merge_tables
from evertide.spark.arrangements.ranges import in_ranges
from evertide.spark.arrangements.recent import Recent
from evertide.spark.arrangements.runs import Run, open_run, piece_path, write_run

Frozen: TypeAlias = Layer | ColumnLayer
Source: TypeAlias = ColumnLayer | Run

# Arrow counts the bytes of a text column with 32 bits; larger runs are not made.
MAX_RUN_BYTES: Final = 1 << 30
# Merges of more than this take long, and are done apart from those that ticks may wait for.
LARGE_BYTES: Final = 32 << 20
# The same where it lies in columns.
COLUMN_ENTRY_BYTES: Final = 80
# A layer of so many entries is written as a run; smaller ones stay in memory.
SPILL_RECORDS: Final = 50_000
# So few entries are put together by whoever adds them.
_SMALL_RECORDS: Final = 2_000
# A layer is merged with smaller ones if it is at most so many times as large as they together.
GROWTH: Final = 4


class Manifest(msgspec.Struct, frozen=True):
    """What a snapshot of one arrangement consists of: its since, and names of files."""

    since: int
    runs: tuple[str, ...]


class MergeCancelled(Exception):
    """Nobody needs any longer what was being merged."""


@dataclass(frozen=True, slots=True, eq=False)
class MergePlan:
    """Layers and runs that are to become one level of runs, or a layer if `in_memory`."""

    layers: tuple[Frozen, ...]
    runs: tuple[Run, ...]
    types: Types
    since: int
    path: Path
    in_memory: bool = False
    # Set when nobody needs it any longer; looked at between the pieces.
    cancelled: Event = field(default_factory=Event)


@dataclass(frozen=True, slots=True)
class Taken:
    """What merges under way will replace."""

    layers: tuple[Frozen, ...] = ()
    runs: tuple[Run, ...] = ()

    def with_plan(self, plan: MergePlan) -> "Taken":
        """One more merge has begun."""
        return Taken(self.layers + plan.layers, self.runs + plan.runs)

    def without(self, plan: MergePlan) -> "Taken":
        """One of them is over."""
        return Taken(
            tuple(layer for layer in self.layers if layer not in plan.layers),
            tuple(run for run in self.runs if run not in plan.runs),
        )


class Levels:
    """The layers and runs of one arrangement, in a directory of its own."""

    def __init__(
        self, directory: Path, types: Types, *, spill_records: int = SPILL_RECORDS
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.layer = Layer(types)
        self.frozen: tuple[Frozen, ...] = ()
        self.runs: tuple[Run, ...] = ()
        self.directory = directory
        self.recent = Recent(types)
        self._next_file = 0
        self.spill_records = spill_records
        self.taken = Taken()

    @property
    def keyed(self) -> list[Layer]:
        """Layers by key, newest first."""
        return [self.layer, *(layer for layer in self.frozen if isinstance(layer, Layer))]

    @property
    def hashed(self) -> list[Source]:
        """All that is not in layers by key."""
        return [*(layer for layer in self.frozen if isinstance(layer, ColumnLayer)), *self.runs]

    def add_columns(self, layer: ColumnLayer, since: int) -> None:
        """Add entries by columns. Small layers are put together at once, by the same rule by which
        larger ones are beside the ticks; without it a tick of one row would leave a layer of one.
        """
        self.recent.forget()
        frozen = self.frozen
        while frozen and isinstance(frozen[0], ColumnLayer) and frozen[0] not in self.taken.layers:
            total = frozen[0].records + layer.records
            if frozen[0].records > GROWTH * layer.records or total > _SMALL_RECORDS:
                break
            layer = put_together(frozen[0], layer, since)
            frozen = frozen[1:]
        self.frozen = (layer, *frozen) if layer.records else frozen

    def freeze(self) -> None:
        """Start a new layer; the old one waits to be written."""
        if self.layer.records:
            self.frozen = (self.layer, *self.frozen)
            self.layer = Layer(self.layer.types)

    def load_table(self, table: pa.Table) -> None:
        """Add a table as runs have it: h, c0.., t and d, sorted by h."""
        if not table.num_rows:
            return
        self.recent.forget()
        rows = -(-table.num_rows // (table.nbytes // _most_merged_bytes() + 1))
        path = self._new_path()
        for number, start in enumerate(range(0, table.num_rows, rows)):
            piece = table.slice(start, rows)
            run = write_run(piece_path(path, number), self.layer.types, piece)
            self.runs = (*self.runs, run)

    def plan(
        self,
        layers: tuple[Frozen, ...],
        runs: tuple[Run, ...],
        since: int,
        *,
        in_memory: bool = False,
    ) -> MergePlan:
        """To merge these, which no other merge must have taken."""
        plan = MergePlan(layers, runs, self.layer.types, since, self._new_path(), in_memory)
        self.taken = self.taken.with_plan(plan)
        return plan

    def swap(self, plan: MergePlan, merged: Sequence[Source]) -> None:
        """Put what was merged in the place of what it was made of. Files of that are left to
        `remove_files`: a large one takes as long as many ticks.
        """
        self.give_up(plan)
        self.recent.forget()
        self.frozen = tuple(layer for layer in self.frozen if layer not in plan.layers)
        at = self.runs.index(plan.runs[0]) if plan.runs else len(self.runs)
        runs = [old for old in self.runs if old not in plan.runs]
        runs[at:at] = [run for run in merged if isinstance(run, Run)]
        self.runs = tuple(runs)
        self.frozen += tuple(layer for layer in merged if isinstance(layer, ColumnLayer))

    def give_up(self, plan: MergePlan) -> None:
        """The merge that was planned will not come, or is over."""
        self.taken = self.taken.without(plan)

    def capture(self, since: int) -> MergePlan:
        """Everything there is now, for `write_snapshot` on any thread."""
        self.freeze()
        return MergePlan(self.frozen, self.runs, self.layer.types, since, self._new_path())

    def restore(self, directory: Path, manifest: Manifest) -> None:
        """Take over the runs that write_snapshot wrote."""
        self.recent.forget()
        for name in manifest.runs:
            path = self._new_path()
            _link(directory / name, path)
            self.runs = (*self.runs, open_run(path, self.layer.types))

    def _new_path(self) -> Path:
        self._next_file += 1
        return self.directory / f"{self._next_file}.arrow"


def merge(plan: MergePlan) -> Sequence[Source]:
    """What the plan names as one; nothing if nothing is left of it. Safe on any thread.

    Raises DamagedRun: what is wrong must not get into what is made of it. Or MergeCancelled.
    """
    for run in plan.runs:
        _require_wanted(plan)
        run.check()
    tables = [run.table for run in plan.runs]
    tables += [layer.table(plan.since) for layer in plan.layers]
    made: list[Source] = []
    try:
        for number, piece in enumerate(in_ranges(plan.types, tables, most_run_bytes())):
            _require_wanted(plan)
            merged = merge_tables(piece, plan.since)
            if not merged.num_rows:
                continue
            if plan.in_memory:
                made.append(layer_of_table(plan.types, merged))
            else:
                made.append(write_run(piece_path(plan.path, number), plan.types, merged))
                del merged
                give_back()  # what it took would else stay with the process
    except BaseException:
        remove_files(made)
        raise
    return made


def _require_wanted(plan: MergePlan) -> None:
    if plan.cancelled.is_set():
        raise MergeCancelled


def remove_files(runs: Sequence[Source]) -> None:
    """Of runs that are no longer looked into, or were made in vain."""
    for run in runs:
        if isinstance(run, Run):
            run.path.unlink(missing_ok=True)


def most_run_bytes() -> int:
    """Merging takes some times as much memory as what it makes, and there may be two merges."""
    return _most_merged_bytes() - large_bytes()


def large_bytes() -> int:
    """From here on a merge is apart from those that ticks may wait for."""
    return min(LARGE_BYTES, _most_merged_bytes() // 4)


def _most_merged_bytes() -> int:
    return min(MAX_RUN_BYTES, 2 * memory_limit())


def write_snapshot(directory: Path, name: str, captured: MergePlan) -> Manifest:
    """Write what was captured below `directory`; safe on any thread.

    Runs are linked, since they never change. One that a merge has unlinked meanwhile is written
    again: its contents are still mapped.
    """
    directory.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for number, run in enumerate(captured.runs):
        names.append(f"{name}-{number}.arrow")
        try:
            _link(run.path, directory / names[-1])
        except FileNotFoundError:
            write_run(directory / names[-1], captured.types, run.table)
    table = merge_tables([layer.table(captured.since) for layer in captured.layers], captured.since)
    if table.num_rows:
        names.append(f"{name}-layer.arrow")
        write_run(directory / names[-1], captured.types, table)
    return Manifest(captured.since, tuple(names))


def _link(source: Path, target: Path) -> None:
    """The same file under another name, or a copy where the two are on different disks."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)


def all_sources(levels: Levels) -> list[Source]:
    """Everything by columns. What lies in the layer by key is frozen for it."""
    levels.freeze()
    layers = [f.columns() if isinstance(f, Layer) else f for f in levels.frozen]
    return [*layers, *levels.runs]


def all_entries(levels: Levels) -> Iterator[Entry]:
    """Everything row by row, as it is."""
    for source in levels.hashed:
        yield from source.all_entries()
    for layer in levels.keyed:
        for group in layer.groups.values():
            yield from group


def count_records(levels: Levels) -> tuple[int, int, int]:
    """How many entries lie by key, in columns in memory, and in runs."""
    in_columns = sum(f.records for f in levels.frozen if isinstance(f, ColumnLayer))
    by_key = sum(layer.records for layer in levels.keyed)
    return by_key, in_columns, sum(run.length for run in levels.runs)


def memory_bytes(levels: Levels) -> int:
    """Roughly what lies in memory. Columns know it; of rows by key some are looked at."""
    newest = levels.layer.memory_bytes if levels.layer.records else 0
    if not levels.frozen:
        return newest
    return newest + sum([layer.memory_bytes for layer in levels.frozen])


def added_up(levels: Levels) -> int:
    """All diffs together: how many rows there are, if none is there twice or less than once."""
    columns = [s.diffs if isinstance(s, Run) else s.batch.diffs for s in levels.hashed]
    entries = (e for layer in levels.keyed for group in layer.groups.values() for e in group)
    return sum(int(diffs.sum()) for diffs in columns) + sum(diff for _, _, diff in entries)
