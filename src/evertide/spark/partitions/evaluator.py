"""The evaluator of a task, whose driver waits for answers, and which may have a share of a dataflow
only.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evertide.spark.arrangements.levels import SPILL_RECORDS
from evertide.spark.evaluate import Evaluator
from evertide.spark.operators.temporal import earliest
from evertide.spark.partitions.running import PartitionPlan, StageResult, StageTurn
from evertide.spark.running_plan import Begun
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# What takes so long that it is no matter when state takes it in.
MANY_ROWS: Final = 20_000


class TaskEvaluator(Evaluator):
    """Whole dataflows tick, shared ones take turns."""

    def __init__(self, directory: Path, *, spill_records: int = SPILL_RECORDS) -> None:
        super().__init__(directory, spill_records=spill_records)
        self._begun: tuple[GlobalId, Begun] | None = None

    def begin(
        self,
        dataflow_id: GlobalId,
        inputs: Mapping[GlobalId, Sequence[Update]],
        lower: Timestamp,
        upper: Timestamp,
    ) -> Sequence[Update]:
        """As tick, for whoever tells the driver of the output before state takes the changes in: by
        `keep`, which must come before anything else is asked of any dataflow. Raises DamagedRun.
        """
        assert self._begun is None, "what was begun before is kept"
        plan = self._plans[dataflow_id]
        rows = sum(map(len, inputs.values()))
        if rows > MANY_ROWS or plan.futures:
            # Those who wait are told when something is due, which only the state says.
            return self.tick(dataflow_id, inputs, lower, upper)
        # What is wrong must not be told, as far as it is known.
        self._merging.check(plan.arrangements)
        with self.garbage.left_alone(rows):
            begun = plan.begin(inputs, lower, upper)
        self._begun = dataflow_id, begun
        return begun.output

    def keep(self) -> None:
        """Take in what was begun, if something was, and see to merges while nobody waits.

        Raises KeepFailed.
        """
        if self._begun is None:
            return
        (dataflow_id, begun), self._begun = self._begun, None
        plan = self._plans[dataflow_id]
        try:
            begun.keep()
            self._sharing.bring_together(dataflow_id)
            self._merging.look_after(plan.arrangements)
        except Exception as error:
            raise KeepFailed(dataflow_id) from error

    def turn(self, dataflow_id: GlobalId, asked: StageTurn) -> StageResult:
        """Some stages of a tick of a dataflow of which this evaluator has a share."""
        plan = self._plans[dataflow_id]
        assert isinstance(plan, PartitionPlan), f"{dataflow_id} is not shared"
        self._merging.look_after(plan.arrangements)
        rows = sum(len(delta) for parts in asked.received.values() for delta in parts)
        with self.garbage.left_alone(rows):
            result = plan.turn(asked)
        self.due[dataflow_id] = earliest(plan.futures)
        return result


class KeepFailed(Exception):
    """The state of a dataflow could not take in what was told of it; the cause says why."""

    def __init__(self, dataflow_id: GlobalId) -> None:
        super().__init__(f"state of {dataflow_id} could not take changes in")
        self.dataflow_id = dataflow_id
