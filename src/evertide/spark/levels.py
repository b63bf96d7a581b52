"""What an arrangement consists of: a layer in memory, frozen layers, runs on disk.

All lists are replaced, never changed, so that whoever holds one may go on reading it. Merging is
three steps: `merge_plan` and `swap` on the owner's thread, both quick, and `merge` between them, on
any thread, which only reads what never changes.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from evertide.expr.relation import Types
from evertide.expr.row_key import identity_function
from evertide.spark.layer import Layer
from evertide.spark.merge_runs import merge_tables
from evertide.spark.runs import Entry, Run, open_run, table_of, write_run

# Arrow counts the bytes of a text column with 32 bits; larger runs are not made.
MAX_RUN_BYTES: Final = 1 << 30
# A rough figure for an entry in memory: row, tuple, dict slot.
ENTRY_BYTES: Final = 400


class Manifest(msgspec.Struct, frozen=True):
    """What a snapshot of one arrangement consists of: its since, and names of files."""

    since: int
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MergePlan:
    """Layers and runs that are to become one run."""

    layers: tuple[Layer, ...]
    runs: tuple[Run, ...]
    types: Types
    since: int
    path: Path


class Levels:
    """The layers and runs of one arrangement, in a directory of its own."""

    def __init__(self, directory: Path, types: Types) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.layer = Layer(identity_function(types))
        self.frozen: tuple[Layer, ...] = ()
        self.runs: tuple[Run, ...] = ()
        self._directory = directory
        self._types = types
        self._next_file = 0

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Newest first."""
        return (self.layer, *self.frozen)

    def entries(self) -> Iterator[Entry]:
        """Everything, as it is."""
        for run in self.runs:
            yield from run.all_entries()
        for layer in self.layers:
            for group in layer.groups.values():
                yield from group

    def freeze(self) -> None:
        """Start a new layer; the old one waits to be written."""
        if self.layer.records:
            self.frozen = (self.layer, *self.frozen)
            self.layer = Layer(identity_function(self._types))

    def load_table(self, table: pa.Table) -> None:
        """Add a table as runs have it: h, c0.., t and d, sorted by h."""
        if not table.num_rows:
            return
        rows = -(-table.num_rows // (table.nbytes // MAX_RUN_BYTES + 1))
        for start in range(0, table.num_rows, rows):
            run = write_run(self._new_path(), self._types, table.slice(start, rows))
            self.runs = (*self.runs, run)

    def merge_plan(self, since: int) -> MergePlan | None:
        """What should be merged now, if anything: frozen layers and the newest runs.

        A run is taken along if what is merged already is at least half its size, so that sizes of
        runs grow geometrically and their number stays logarithmic.
        """
        if not self.frozen:
            return None
        records = sum(layer.records for layer in self.frozen)
        volume = records * ENTRY_BYTES
        taken: list[Run] = []
        for run in reversed(self.runs):
            volume += run.file_bytes
            if run.length > 2 * records or volume > MAX_RUN_BYTES:
                break
            records += run.length
            taken.append(run)
        return MergePlan(self.frozen, tuple(taken), self._types, since, self._new_path())

    def swap(self, plan: MergePlan, run: Run | None) -> None:
        """Put a merged run in the place of what it was made of; files no longer needed go."""
        self.frozen = tuple(layer for layer in self.frozen if layer not in plan.layers)
        kept = tuple(old for old in self.runs if old not in plan.runs)
        self.runs = kept if run is None else (*kept, run)
        for old in plan.runs:
            old.path.unlink(missing_ok=True)

    def capture(self, since: int) -> MergePlan:
        """Everything there is now, for `write_snapshot` on any thread."""
        self.freeze()
        return MergePlan(self.frozen, self.runs, self._types, since, self._new_path())

    def restore(self, directory: Path, manifest: Manifest) -> None:
        """Take over the runs that write_snapshot wrote."""
        for name in manifest.runs:
            path = self._new_path()
            _link(directory / name, path)
            self.runs = (*self.runs, open_run(path, self._types))

    def _new_path(self) -> Path:
        self._next_file += 1
        return self._directory / f"{self._next_file}.arrow"


def merge(plan: MergePlan) -> Run | None:
    """One run of all that the plan names; None if nothing is left of it. Safe on any thread."""
    tables = [run.table for run in plan.runs]
    tables += [table_of(plan.types, layer.keyed(plan.since)) for layer in plan.layers]
    merged = tables[0] if len(tables) == 1 else merge_tables(tables, plan.since)
    return write_run(plan.path, plan.types, merged) if merged.num_rows else None


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
    keyed = (entry for layer in captured.layers for entry in layer.keyed(captured.since))
    table = table_of(captured.types, keyed)
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
