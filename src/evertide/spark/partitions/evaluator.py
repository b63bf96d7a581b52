"""The evaluator of a task that may have a share of a dataflow only."""

from evertide.spark.evaluate import Evaluator
from evertide.spark.partitions.running import PartitionPlan, StageResult, StageTurn
from evertide.vocab.ids import GlobalId


class TaskEvaluator(Evaluator):
    """Whole dataflows tick, shared ones take turns."""

    def turn(self, dataflow_id: GlobalId, asked: StageTurn) -> StageResult:
        """Some stages of a tick of a dataflow of which this evaluator has a share."""
        plan = self._plans[dataflow_id]
        assert isinstance(plan, PartitionPlan), f"{dataflow_id} is not shared"
        self._merging.look_after(plan.arrangements)
        rows = sum(len(delta) for parts in asked.received.values() for delta in parts)
        with self.garbage.left_alone(rows):
            result = plan.turn(asked)
        self.due[dataflow_id] = plan.due()
        return result
