"""Recursions solved by delta plans: an iteration costs by what the one before it changed.

Every binding has a plan whose inputs are the recursion's inputs and the bindings themselves, and an
iteration is a tick: what one binding's tick gives is what changes for those that read it. Errors
are in a binding once each (expr/recursion.py), so only that one came or went is told.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan, InputNode
from evertide.expr.budget import Budget
from evertide.expr.group_rows import Counted
from evertide.expr.interpret import Collection, solve_anew
from evertide.expr.recursion import Recursion, iterate, once_each
from evertide.expr.relation import Get, LetRec, LocalGet, Relation, Types
from evertide.expr.relation_walk import rewrite_up
from evertide.persist.coding.batch import UpdateBatch, concat_batches, to_batch
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.levels import SPILL_RECORDS
from evertide.spark.arrangements.merging import merge_now
from evertide.spark.operators.delta import WIDE_ROWS, Room
from evertide.spark.tables import desc_of
from evertide.vocab.errors import ProgramLimitExceeded
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp, step_forward
from evertide.vocab.update import Update

# Layers of one arrangement that may wait before they are merged.
_MOST_WAITING: Final = 6
_START: Final = Timestamp(1)
# Up to so many rows on the way the interpreter is quicker than making plans and their state.
# Measured with transitive closures of chains, on a busy machine: 20 edges, with some 6,000 rows on
# the way, take it 19 ms, and plans 46 ms; 50 edges, with some 86,000, take 341 ms and 38 ms.
FEW_ROWS: Final = 5_000


class Ticking(Protocol):
    """A plan with its state; running_plan.py offers it."""

    @property
    def arrangements(self) -> Sequence[Arrangement]: ...

    def tick(
        self, inputs: Mapping[GlobalId, Sequence[Update]], lower: Timestamp, upper: Timestamp
    ) -> Sequence[Update]: ...

    def release(self) -> None: ...


MakePlan: TypeAlias = Callable[[DeltaPlan, Timestamp, Callable[[str], Room]], Ticking]


class Solver:
    """One recursion, over whatever its inputs hold. Its plans are made when they are needed."""

    def __init__(self, recursion: Recursion, make_plan: MakePlan) -> None:
        self._recursion = recursion
        self._make_plan = make_plan

    @cached_property
    def _plans(self) -> list[DeltaPlan]:
        core = self._recursion.core
        own = {*self._recursion.input_names, *core.names}
        return [delta_plan(_over_collections(part, own)) for part in (*core.values, core.body)]

    def solve(
        self, inputs: Sequence[list[Counted]], budget: Budget, directory: Path | None = None
    ) -> Collection:
        """What the recursion comes to over these rows; files, if any, are in the directory."""
        try:
            return solve_anew(self._recursion, inputs, Budget(FEW_ROWS))
        except ProgramLimitExceeded:
            pass  # they are not few
        given = dict(zip(self._recursion.input_names, inputs, strict=True))
        with TemporaryDirectory(dir=directory) as place:
            steps = [
                _Step(plan, self._make_plan, Path(place) / str(number), given)
                for number, plan in enumerate(self._plans)
            ]
            try:
                return _run(self._recursion.core, steps, budget)
            finally:
                for step in steps:
                    step.end()


def _run(core: LetRec, steps: Sequence["_Step"], budget: Budget) -> Collection:
    now = _START

    def advance(number: int) -> bool:
        nonlocal now
        changes = steps[number].advance(now)
        if number == len(core.names) - 1:
            now = step_forward(now)
        budget.spend(len(changes))
        for step in steps if changes else ():
            step.take(core.names[number], changes)
        return bool(changes)

    failure = iterate(core, advance)
    if failure is not None:
        return Collection([], [(failure, 1)])
    found = steps[-1].tick(now)
    budget.spend(len(found))
    rows = [(update.row, update.diff) for update in found if update.error is None]
    errors = [(update.error, update.diff) for update in found if update.error is not None]
    return Collection(rows, once_each(errors))


class _Step:
    """One binding, or what is made of them in the end: a plan, and changes that wait for it."""

    def __init__(
        self,
        plan: DeltaPlan,
        make_plan: MakePlan,
        directory: Path,
        given: Mapping[str, list[Counted]],
    ) -> None:
        self._running: Ticking | None = None
        self._plan, self._make_plan, self._directory = plan, make_plan, directory
        inputs = [node for node in plan.nodes if isinstance(node, InputNode)]
        self._inputs: dict[str, Types] = {node.global_id: node.types for node in inputs}
        self._waiting: dict[str, list[Sequence[Update]]] = {
            name: [[Update(row, _START, count) for row, count in given[name]]]
            for name in self._inputs
            if given.get(name)
        }
        self._errors: dict[str, int] = {}

    def end(self) -> None:
        """Let go of its state, which may be large, at once."""
        if self._running is not None:
            self._running.release()
            self._running = None

    def take(self, name: str, changes: Sequence[Update]) -> None:
        """What a binding changed by."""
        if name in self._inputs:
            self._waiting.setdefault(name, []).append(changes)

    def advance(self, now: Timestamp) -> Sequence[Update]:
        """What this binding changes by."""
        if self._running is not None and not self._waiting:
            return ()
        changes = self.tick(now)
        if not _has_errors(changes):
            return changes
        rows = [update for update in changes if update.error is None]
        return [*rows, *self._told(changes, now)]

    def tick(self, now: Timestamp) -> Sequence[Update]:
        """What the plan's output changes by, errors as often as they arise."""
        if self._running is None:
            self._running = self._make_plan(
                self._plan, now, lambda name: Room(self._directory / name, SPILL_RECORDS)
            )
        waiting, self._waiting = self._waiting, {}
        inputs = {
            GlobalId(name): _at(now, self._inputs[name], parts) for name, parts in waiting.items()
        }
        changes = self._running.tick(inputs, now, step_forward(now))
        for arrangement in self._running.arrangements:
            if len(arrangement.levels.frozen) > _MOST_WAITING:
                merge_now(arrangement)
        return changes

    def _told(self, changes: Sequence[Update], now: Timestamp) -> list[Update]:
        """Errors that were not there before, and those that are there no more."""
        told: list[Update] = []
        for _, _, diff, error in changes:
            if error is None:
                continue
            before = self._errors.get(error, 0)
            self._errors[error] = before + diff
            if bool(before) != bool(before + diff):
                told.append(Update((), now, 1 if before + diff else -1, error))
        return told


def _has_errors(changes: Sequence[Update]) -> bool:
    if isinstance(changes, UpdateBatch) and changes.columnar:
        return bool(changes.table.column("e").null_count < len(changes))
    return any(update.error is not None for update in changes)


def _over_collections(relation: Relation, names: set[str]) -> Relation:
    """The relation with what it reads by these names as collections of its own."""

    def named(node: Relation) -> Relation:
        if isinstance(node, LocalGet) and node.name in names:
            return Get(GlobalId(node.name), node.types)
        return node

    return rewrite_up(relation, named)


def _at(now: Timestamp, types: Types, parts: Sequence[Sequence[Update]]) -> Sequence[Update]:
    """Changes of earlier times, all at this one."""
    desc = desc_of(types)
    if sum(map(len, parts)) < WIDE_ROWS:
        return [Update(u.row, now, u.diff, u.error) for part in parts for u in part]
    table = concat_batches(desc, [to_batch(desc, part) for part in parts]).table
    times = pa.array(np.full(table.num_rows, now, np.int64))
    place = table.schema.get_field_index("t")
    return UpdateBatch(desc, table=table.set_column(place, table.schema.field(place), times))
