"""One dataflow's plan with its state: what the evaluator keeps per dataflow."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, assert_never

from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    DeltaPlan,
    FlatMapNode,
    InputNode,
    JoinNode,
    LinearNode,
    NegateNode,
    RecomputeNode,
    ReduceNode,
    TemporalFilterNode,
    ThresholdNode,
    TopKNode,
    UnionNode,
    WindowNode,
)
from evertide.dataflow.signs import never_negative
from evertide.dataflow.stages import ExchangeNode, FeedNode, LookupNode, StageNode
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.sharing import Contents, Reader, contents_of
from evertide.spark.operators.arrange import ArrangeOperator, OutputIndex
from evertide.spark.operators.changes import delta_of, updates_of
from evertide.spark.operators.delta import (
    Delta,
    Operator,
    Room,
    Stateful,
    Tick,
    consolidated,
)
from evertide.spark.operators.flat_map import FlatMapOperator
from evertide.spark.operators.grouping.reduce import ReduceOperator
from evertide.spark.operators.grouping.reduce_columns import ReduceColumns, can_reduce_columns
from evertide.spark.operators.join import JoinOperator
from evertide.spark.operators.ranking.regroup import (
    RegroupOperator,
    threshold_operator,
    top_k_operator,
)
from evertide.spark.operators.recompute import RecomputeOperator
from evertide.spark.operators.stateless import (
    ConstantOperator,
    InputOperator,
    LinearOperator,
    NegateOperator,
    UnionOperator,
)
from evertide.spark.operators.temporal import Future, TemporalFilterOperator, earliest
from evertide.spark.operators.window import WindowOperator
from evertide.spark.partitions.operators import LookupOperator, ReceivedOperator
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

StatefulOperator = (
    ArrangeOperator | ReduceOperator | ReduceColumns | RegroupOperator | TemporalFilterOperator
)


class Begun(NamedTuple):
    """A tick's output, and how to let the state take the changes in."""

    output: Sequence[Update]
    keep: Callable[[], None]


class RunningPlan:
    """`upper` is how far it has ticked; before the first tick it is the dataflow's as_of."""

    def __init__(
        self,
        plan: DeltaPlan,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        room: Callable[[str], Room],
        nodes: Sequence[StageNode] | None = None,
    ) -> None:
        """`nodes`: those that are run, where they are not the plan's own."""
        self.plan = plan
        self._nodes = plan.nodes if nodes is None else nodes
        self.index_key = index_key
        self.upper = as_of
        self.stateful: dict[int, Stateful] = {}
        self.index: OutputIndex | None = None
        if index_key is not None:
            self.index = OutputIndex(plan.types, index_key, room("output"), as_of)
        # Constants come with the first tick; None once they have come.
        self.constants_at: Timestamp | None = as_of
        self._operators = [
            self._operator(number, node, room) for number, node in enumerate(self._nodes)
        ]

    def _operator(self, number: int, node: StageNode, room: Callable[[str], Room]) -> Operator:
        match node:
            case InputNode():
                return InputOperator(node)
            case ConstantNode():
                return ConstantOperator(node)
            case LinearNode(input=source):
                return LinearOperator(node, self._nodes[source].types)
            case FlatMapNode():
                return FlatMapOperator(node)
            case NegateNode():
                return NegateOperator(node)
            case UnionNode():
                return UnionOperator(node)
            case JoinNode():
                arranged = {
                    position: operator
                    for position, operator in self.stateful.items()
                    if isinstance(operator, ArrangeOperator)
                }
                return JoinOperator(node, self.plan.nodes, arranged)
            case ArrangeNode() | ReduceNode() | TopKNode() | ThresholdNode() | TemporalFilterNode():
                self.stateful[number] = _stateful(node, self._nodes, room(str(number)))
                return self.stateful[number]
            case RecomputeNode(inputs=inputs):
                types = [self._nodes[source].types for source in inputs]
                recompute = RecomputeOperator(node, types, room(str(number)), make_plan)
                self.stateful[number] = recompute
                return recompute
            case WindowNode(input=source):
                window = WindowOperator(node, self._nodes[source].types, room(str(number)))
                self.stateful[number] = window
                return window
            case FeedNode() | ExchangeNode():
                return ReceivedOperator()
            case LookupNode(input=source, arrangement=place):
                looked_up = self.stateful[place]
                assert isinstance(looked_up, ArrangeOperator), "a lookup is into an arrangement"
                return LookupOperator(node, self._nodes[source].types, looked_up)
            case _:
                assert_never(node)

    def place_of(self, position: int) -> int:
        """Where the plan's node at this position is among those that are run."""
        return position

    @property
    def arrangements(self) -> list[Arrangement]:
        """All that there are, in the order of the plan."""
        kept = [a for operator in self.stateful.values() for a in operator.arrangements]
        return kept if self.index is None else [*kept, self.index.rows]

    def readers(self) -> list[Reader]:
        """Who looks into arrangements that could be shared."""
        operators = self.stateful.values()
        found = [op.reader for op in operators if isinstance(op, ArrangeOperator)]
        return found if self.index is None else [*found, self.index.reader]

    def shareable(self) -> dict[Reader, Contents]:
        """Those of them of whom it can be told what they read, and what that is."""
        found: dict[Reader, Contents | None] = {}
        for position, operator in self.stateful.items():
            node = self._nodes[position]
            if isinstance(operator, ArrangeOperator) and isinstance(node, ArrangeNode):
                found[operator.reader] = contents_of(self._nodes, node.input, node.key)
        if self.index is not None:
            last = len(self._nodes) - 1
            found[self.index.reader] = contents_of(self._nodes, last, self.index.rows.key)
        return {reader: same for reader, same in found.items() if same is not None}

    @property
    def futures(self) -> list[Future]:
        """What its temporal filters keep, in the order of the plan."""
        operators = self.stateful.values()
        return [op.future for op in operators if isinstance(op, TemporalFilterOperator)]

    def tick(
        self, inputs: Mapping[GlobalId, Sequence[Update]], lower: Timestamp, upper: Timestamp
    ) -> Sequence[Update]:
        """The output's changes at lower <= ts < upper. If anything raises, nothing has changed."""
        begun = self.begin(inputs, lower, upper)
        begun.keep()
        return begun.output

    def begin(
        self, inputs: Mapping[GlobalId, Sequence[Update]], lower: Timestamp, upper: Timestamp
    ) -> Begun:
        """The same, while all is as before until it is kept, which must come next."""
        due = self.check_span(lower, upper)
        given = {global_id: delta_of(updates) for global_id, updates in inputs.items() if updates}
        _check_times(given, lower, upper)
        output: Sequence[Update] = []
        steps = bool(given) or self.constants_at is not None or (due is not None and due < upper)
        if steps:
            output = self._changes(Tick(given, self.constants_at, upper))
        return Begun(output, partial(self._keep, upper, steps=steps))

    def _keep(self, upper: Timestamp, *, steps: bool) -> None:
        if steps:
            for operator in self.stateful.values():
                operator.commit(upper)
            if self.index is not None:
                self.index.commit(upper)
        self.constants_at = None
        self.upper = upper

    def check_span(self, lower: Timestamp, upper: Timestamp) -> Timestamp | None:
        """Whether a tick may go from here to there; gives when something is due."""
        # Beyond it: time passed without any change, which needs no tick.
        assert lower >= self.upper, f"a tick from {lower} goes back behind {self.upper}"
        assert self.constants_at in (None, lower), f"the first tick starts at {self.constants_at}"
        assert lower < upper, "a tick has at least one timestamp"
        due = earliest(self.futures)
        assert due is None or due >= lower, f"what was due at {due} was passed over"
        return due

    def release(self) -> None:
        """Let go of its state, where nobody else looks after it."""
        for reader in self.readers():
            reader.release()

    def close(self) -> None:
        """End what runs beside it."""
        if self.index is not None:
            self.index.close()

    def _changes(self, tick: Tick) -> Sequence[Update]:
        """All operators step before any commits."""
        try:
            deltas: list[Delta] = []
            for operator in self._operators:
                deltas.append(operator.step(deltas, tick))
            output = consolidated(deltas[-1], self.plan.types)
            if self.index is not None:
                self.index.prepare(output)
            return updates_of(output, self.plan.types)
        except BaseException:
            for stateful in self.stateful.values():
                stateful.abort()
            raise


def _stateful(
    node: ArrangeNode | ReduceNode | TopKNode | ThresholdNode | TemporalFilterNode,
    nodes: Sequence[StageNode],
    room: Room,
) -> StatefulOperator:
    match node:
        case ArrangeNode():
            return ArrangeOperator(node, room)
        case ReduceNode(input=source) if can_reduce_columns(node):
            signs = never_negative(nodes, source)
            return ReduceColumns(node, nodes[source].types, room, never_negative=signs)
        case ReduceNode():
            return ReduceOperator(node, room)
        case TopKNode():
            return top_k_operator(node, room)
        case ThresholdNode():
            return threshold_operator(node, room)
        case TemporalFilterNode():
            return TemporalFilterOperator(node)
        case _:
            assert_never(node)


def make_plan(plan: DeltaPlan, as_of: Timestamp, room: Callable[[str], Room]) -> RunningPlan:
    """A plan with empty state."""
    return RunningPlan(plan, None, as_of, room)


def _check_times(given: Mapping[GlobalId, Delta], lower: Timestamp, upper: Timestamp) -> None:
    """An update outside the tick would be seen too early, or never: whoever sent it is wrong."""
    for global_id, delta in given.items():
        times = delta.times()
        assert lower <= min(times) <= max(times) < upper, f"{global_id} has updates out of range"
