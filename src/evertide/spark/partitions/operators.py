"""What only a plan in stages has: rows from elsewhere, and one lookup of a join at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from evertide.dataflow.delta_plan import InputNode, JoinNode, JoinPath, JoinStep
from evertide.dataflow.stages import LookupNode
from evertide.expr.relation import Types
from evertide.spark.operators.arrange import ArrangeOperator
from evertide.spark.operators.delta import NOTHING, Delta, Tick
from evertide.spark.operators.join import JoinOperator
from evertide.vocab.ids import GlobalId

# Names nothing: the inputs of a lookup are given to it.
_GIVEN = GlobalId("")


@dataclass(frozen=True, slots=True)
class ReceivedOperator:
    """Rows that came from the driver or from other tasks: whoever runs the stages has them."""

    def step(self, _deltas: Sequence[Delta], _tick: Tick) -> Delta:
        raise AssertionError("rows are received, not computed")


class LookupOperator:
    """A join of two inputs by the path of one of them, which is one lookup."""

    def __init__(self, node: LookupNode, source: Types, arranged: ArrangeOperator) -> None:
        self._input = node.input
        found = node.types[len(source) :]
        # A path looks up new what comes before its source, old what comes after it.
        self._source = 1 if node.new else 0
        other = 1 - self._source
        inputs = [InputNode(_GIVEN, source), InputNode(_GIVEN, found)]
        if node.new:
            inputs.reverse()
        step = JoinStep(other, node.arrangement, node.probe, node.also_equal)
        path = JoinPath(self._source, (step,), tuple(range(len(node.types))))
        join = JoinNode((0, 1), (path,), node.types)
        self._join = JoinOperator(join, inputs, {node.arrangement: arranged})

    def step(self, deltas: Sequence[Delta], tick: Tick) -> Delta:
        delta = deltas[self._input]
        given = [NOTHING, delta] if self._source else [delta, NOTHING]
        return self._join.step(given, tick)
