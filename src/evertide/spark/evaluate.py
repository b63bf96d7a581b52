"""The evaluator: delta plans run row by row over arrangements.

It lives inside the resident Spark task, and in the replica's own process until that is up; it knows
neither. One thread at a time may call it. A tick costs by the size of its changes, not by the state
behind them; what grows with the state, writing and merging runs, happens on a thread beside it.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import pyarrow as pa

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.plan_codec import decode_plan
from evertide.spark.accumulate import State
from evertide.spark.arrangements.column_layer import layer_of_table
from evertide.spark.arrangements.levels import SPILL_RECORDS, added_up
from evertide.spark.arrangements.memory import give_back, reuse_memory
from evertide.spark.arrangements.merging import Merging
from evertide.spark.arrangements.sharing import Sharing
from evertide.spark.garbage import Garbage
from evertide.spark.operators.arrange import Wanted
from evertide.spark.operators.delta import ErrorEntry, Room
from evertide.spark.operators.grouping.reduce import ReduceOperator
from evertide.spark.operators.grouping.reduce_columns import ReduceColumns
from evertide.spark.operators.temporal import earliest
from evertide.spark.partitions.running import PartitionPlan
from evertide.spark.partitions.share import Share
from evertide.spark.running_plan import RunningPlan
from evertide.spark.snapshots import Snapshot, read_manifest, restore_plan
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp, step_back
from evertide.vocab.update import Update

# Stands for the index's arrangement where a node's position is asked for.
OUTPUT: Final = -1
# A tick of more rows than this takes so much memory that it is worth the time to return it.
LARGE_ROWS: Final = 200_000


@dataclass(frozen=True, slots=True)
class NodeState:
    """Hydrated state of one node.

    `rows`: its arrangement as runs have it (h, c0.., t, d, sorted by h). Those of an ArrangeNode, a
    TopKNode or a ThresholdNode are rows of its input; those of a ReduceNode are its keys followed
    by each different argument that an aggregate must look at (ROWS or DISTINCT). `groups`, of a
    ReduceNode only: per group its key, net rows, and a state per additive aggregate with an
    argument; a group whose key has several looks may come once per look. `errors`, of OUTPUT only:
    (encoded error, timestamp, diff).
    """

    rows: pa.Table | None = None
    groups: Sequence[tuple[Row, int, tuple[State, ...]]] = ()
    errors: Sequence[ErrorEntry] = ()


class Evaluator:
    """Keeps dataflows' state below a directory; turns input changes into output changes."""

    def __init__(self, directory: Path, *, spill_records: int = SPILL_RECORDS) -> None:
        self._directory = directory
        self._spill_records = spill_records
        self._plans: dict[GlobalId, RunningPlan] = {}
        # When an output may change next though no input does; None: never.
        self.due: dict[GlobalId, Timestamp | None] = {}
        self._homes: dict[GlobalId, Path] = {}
        self._merging = Merging()
        self.garbage = Garbage()
        self._sharing = Sharing(self._merging.settle, self._merging.is_damaged)
        reuse_memory()

    def create(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        share: Share | None = None,
        whole_from: Timestamp | None = None,
    ) -> None:
        """Make room for a dataflow with empty state, in the place of one of the same id.

        `share`: only for the keys that are this evaluator's; it ticks by turns then. `whole_from`:
        what comes before is only a part of what the inputs held then, and nobody else's business.
        """
        self.drop(dataflow_id)
        self._directory.mkdir(parents=True, exist_ok=True)
        home = Path(mkdtemp(dir=self._directory))
        self._homes[dataflow_id] = home

        def room(name: str) -> Room:
            return Room(home / name, self._spill_records)

        if share is None:
            self._plans[dataflow_id] = RunningPlan(plan, index_key, as_of, room)
        else:
            self._plans[dataflow_id] = PartitionPlan(plan, index_key, as_of, room, share)
        for reader in self._plans[dataflow_id].readers():
            reader.shared.whole_from = as_of if whole_from is None else whole_from
        self._sharing.add(dataflow_id, self._plans[dataflow_id].shareable())

    def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Mapping[GlobalId, Sequence[Update]],
        lower: Timestamp,
        upper: Timestamp,
    ) -> Sequence[Update]:
        """The output's changes at lower <= ts < upper, consolidated, exact at each timestamp.

        The first tick starts at as_of and brings the inputs' contents then as updates. If it
        raises, which is our bug, the dataflow's state is what it was.
        """
        plan = self._plans[dataflow_id]
        self._merging.look_after(plan.arrangements)
        rows = sum(map(len, inputs.values()))
        with self.garbage.left_alone(rows):
            output = plan.tick(inputs, lower, upper)
        if rows > LARGE_ROWS:
            self._merging.look_after(plan.arrangements)
            give_back()
        self._sharing.bring_together(dataflow_id)
        self.due[dataflow_id] = earliest(plan.futures)
        return output

    def peek(
        self, dataflow_id: GlobalId, keys: Wanted, as_of: Timestamp
    ) -> tuple[list[tuple[Row, int]], list[tuple[str, int]]]:
        """An index's rows with one of the keys, or all, and its errors; raises BelowSince, and
        DamagedRun if some of its state is known to be damaged.

        A Lookup may also raise LookupRefused, or OrderPending: then it is to be asked again.

        Whoever asks knows that nothing is missing at `as_of`: after the last tick, time may have
        passed without changes.
        """
        plan = self._plans[dataflow_id]
        assert plan.index is not None, f"{dataflow_id} is not an index"
        self._merging.check(plan.arrangements)
        return plan.index.peek(keys, as_of)

    def allow_compaction(self, dataflow_id: GlobalId, since: Timestamp) -> None:
        """Nobody will read the index below `since` again; nothing if it was dropped meanwhile."""
        plan = self._plans.get(dataflow_id)
        if plan is not None and plan.index is not None:
            self._merging.check(plan.arrangements)
            plan.index.advance_since(since)

    def drop(self, dataflow_id: GlobalId) -> None:
        """Forget the dataflow; nothing if there is none."""
        if dataflow_id in self._plans:
            plan = self._plans.pop(dataflow_id)
            # Merges of what others look into go on: ended whenever a reader goes, they never would.
            looked_into = {r.arrangement for r in plan.readers() if len(r.shared.readers) > 1}
            self._merging.settle([a for a in plan.arrangements if a not in looked_into])
            self._sharing.remove(dataflow_id)
            plan.close()
            self.due.pop(dataflow_id, None)
            shared = [r.arrangement.levels.directory for r in plan.readers() if not r.release()]
            _clear(self._homes.pop(dataflow_id), shared)

    def sizes(self, dataflow_id: GlobalId) -> Mapping[str, int]:
        """How much a dataflow keeps: entries and bytes of arrangements, groups, arrangements.

        What several dataflows share is counted with the first of them.
        """
        plan = self._plans.get(dataflow_id)
        if plan is None:
            return {}  # it was dropped meanwhile
        elsewhere = [r.arrangement for r in plan.readers() if r.shared.first is not r]
        sizes = [kept.size for kept in plan.arrangements if kept not in elsewhere]
        reduces = [op for op in plan.stateful.values() if isinstance(op, ReduceOperator)]
        by_columns = [op for op in plan.stateful.values() if isinstance(op, ReduceColumns)]
        return {
            "arrangements": len(sizes),
            "records": sum(size.records for size in sizes),
            "bytes": sum(size.bytes for size in sizes),
            "future": sum(map(len, plan.futures)),
            "groups": sum(len(reduce.groups) for reduce in reduces)
            + sum(added_up(reduce.groups.levels) for reduce in by_columns),
        }

    def load_state(
        self, dataflow_id: GlobalId, states: Mapping[int, NodeState], upper: Timestamp
    ) -> None:
        """State that was computed elsewhere, by position of its node; ticks go on from `upper`.

        Every stateful node that is not empty must be there; OUTPUT is the index's arrangement.
        """
        plan = self._plans[dataflow_id]
        for position, state in states.items():
            load_node(plan, position if position == OUTPUT else plan.place_of(position), state)
        plan.constants_at = None
        plan.upper = upper
        for reader in plan.readers():
            reader.advance(upper)
            reader.look_from(step_back(upper))

    def snapshot(self, directory: Path) -> Snapshot:
        """All state as it is now; the caller lets it `write` itself, best on another thread."""
        return Snapshot(directory, self._plans)

    def restore(self, directory: Path) -> dict[GlobalId, Timestamp]:
        """Take over a snapshot's dataflows. Gives the upper of each: its next tick starts there."""
        for saved in read_manifest(directory):
            dataflow_id, upper = GlobalId(saved.dataflow_id), Timestamp(saved.upper)
            plan = decode_plan(saved.plan)
            self.create(dataflow_id, plan, index_key=saved.index_key, as_of=upper)
            running = self._plans[dataflow_id]
            restore_plan(directory, saved, running)
            running.constants_at = None if saved.constants_at is None else upper
            self.due[dataflow_id] = earliest(running.futures)
        return {dataflow_id: plan.upper for dataflow_id, plan in self._plans.items()}

    def close(self) -> None:
        """End the threads."""
        self._merging.close()
        for plan in self._plans.values():
            plan.close()


def _clear(home: Path, shared: Sequence[Path]) -> None:
    """Remove a dataflow's files, but not those that others still look into."""
    for directory in home.iterdir():
        if not any(kept.is_relative_to(directory) for kept in shared):
            shutil.rmtree(directory, ignore_errors=True)
    if not shared:
        shutil.rmtree(home, ignore_errors=True)


def load_node(plan: RunningPlan, position: int, state: NodeState) -> None:
    """Fill one node that is still empty."""
    if position == OUTPUT:
        assert plan.index is not None, "only an index keeps its output"
        if state.rows is not None:
            plan.index.rows.levels.load_table(state.rows)
        plan.index.errors += state.errors
        return
    operator = plan.stateful[position]
    if isinstance(operator, ReduceColumns):
        members = None
        if state.rows is not None:
            members = layer_of_table(operator.shape.member_types, state.rows).batch
        operator.load(state.groups, members)
        return
    if state.rows is not None:
        (arrangement,) = operator.arrangements
        arrangement.levels.load_table(state.rows)
    if state.groups:
        assert isinstance(operator, ReduceOperator), f"node {position} keeps no groups"
        operator.load_groups(state.groups)
