"""One task's share of a dataflow: its plan in stages, with the state of the keys it has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.stages import ExchangeNode, FeedNode, cut
from evertide.spark.operators.changes import updates_of
from evertide.spark.operators.delta import NOTHING, Delta, Room, Tick, consolidated, gathered
from evertide.spark.partitions.share import FIRST, Router, Share
from evertide.spark.running_plan import RunningPlan
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update


@dataclass(frozen=True, slots=True)
class StageTurn:
    """What is asked of a task: stages from `first` to `last` of one tick.

    `received` are the rows of the first of them, by position; more come only with another turn.
    """

    first: int
    last: int
    received: Mapping[int, list[Delta]]
    lower: Timestamp
    upper: Timestamp


@dataclass(frozen=True, slots=True)
class StageResult:
    """What to send to which task, by position and task; after the last stage the output."""

    sent: Mapping[int, list[Delta]] = field(default_factory=dict)
    output: Sequence[Update] = ()
    # Whether there are errors in the output.
    failed: bool = False
    # Whether later stages have nothing to do here unless they receive rows.
    quiet: bool = False


@dataclass(slots=True)
class _Underway:
    """A tick of which some stages are done. State changes with the last one only."""

    tick: Tick
    lower: Timestamp
    next_stage: int
    deltas: list[Delta]


class PartitionPlan(RunningPlan):
    """Ticks by turns: all tasks do a stage before any does the next."""

    def __init__(
        self,
        plan: DeltaPlan,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        room: Callable[[str], Room],
        share: Share,
    ) -> None:
        self.staged = cut(plan, index_key)
        super().__init__(plan, index_key, as_of, room, nodes=self.staged.nodes)
        self._share = share
        self._routers = {
            position: Router(node.types, node.key, share.count)
            for position, node in enumerate(self.staged.nodes)
            if isinstance(node, ExchangeNode)
        }
        self._underway: _Underway | None = None

    def place_of(self, position: int) -> int:
        return self.staged.places[position]

    def turn(self, asked: StageTurn) -> StageResult:
        """Some stages of a tick. If anything raises, the tick is over and nothing has changed."""
        try:
            underway = self._begin(asked) if asked.first == 0 else self._underway
            assert underway is not None, "a tick begins with its first stage"
            assert underway.next_stage == asked.first, "stages come one after another"
            assert (underway.lower, underway.tick.upper) == (asked.lower, asked.upper)
            return self._run(underway, asked)
        except BaseException:
            self._underway = None
            for stateful in self.stateful.values():
                stateful.abort()
            raise

    def _begin(self, asked: StageTurn) -> _Underway:
        assert self._underway is None, "another tick is under way"
        lower, upper = asked.lower, asked.upper
        self.check_span(lower, upper)
        for deltas in asked.received.values():
            for delta in deltas:
                first, last = delta.times()
                assert lower <= first <= last < upper, "updates out of range"
        constants_at = self.constants_at if self._share.number == FIRST else None
        deltas = [NOTHING] * len(self.staged.nodes)
        return _Underway(Tick({}, constants_at, upper), lower, 0, deltas)

    def _run(self, underway: _Underway, asked: StageTurn) -> StageResult:
        for position, received in asked.received.items():
            node = self.staged.nodes[position]
            assert isinstance(node, FeedNode | ExchangeNode), "only these receive rows"
            assert self.staged.stages[position] == asked.first, "rows for another stage"
            underway.deltas[position] = gathered(node.types, received)
        sent: dict[int, list[Delta]] = {}
        for stage in range(asked.first, asked.last + 1):
            assert not sent, "rows are on their way, and the next stage needs them"
            self._step(underway, stage)
            sent = self._sent(underway, stage + 1)
        underway.next_stage = asked.last + 1
        if asked.last < self.staged.last:
            self._underway = underway
            return StageResult(sent, quiet=self._is_quiet(underway, asked.last))
        return self._finish(underway.deltas[self.staged.output], asked.upper)

    def _step(self, underway: _Underway, stage: int) -> None:
        deltas = underway.deltas
        for position, operator in enumerate(self._operators):
            node = self.staged.nodes[position]
            if self.staged.stages[position] == stage and not isinstance(
                node, FeedNode | ExchangeNode
            ):
                deltas[position] = operator.step(deltas, underway.tick)

    def _sent(self, underway: _Underway, stage: int) -> dict[int, list[Delta]]:
        """What the stage after this one is to receive."""
        return {
            position: self._routers[position].split(delta)
            for position, node in self.staged.exchanges(stage).items()
            if not (delta := underway.deltas[node.input]).is_nothing
        }

    def _is_quiet(self, underway: _Underway, stage: int) -> bool:
        """What is due later may come up in any stage; else nothing comes of nothing."""
        read = self.staged.looked_back_at[stage]
        return not self.staged.is_temporal and all(
            underway.deltas[position].is_nothing for position in read
        )

    def _finish(self, delta: Delta, upper: Timestamp) -> StageResult:
        output = consolidated(delta, self.plan.types)
        if self.index is not None:
            self.index.prepare(output)
        updates = updates_of(output, self.plan.types)
        for operator in self.stateful.values():
            operator.commit(upper)
        if self.index is not None:
            self.index.commit(upper)
        self.constants_at = None
        self.upper = upper
        self._underway = None
        return StageResult(output=updates, failed=bool(output.errors))
