"""The inner join by delta paths: every input's changes look up the other inputs in turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evertide.dataflow.delta_plan import DeltaNode, JoinNode, JoinPath, JoinStep
from evertide.expr.interpret import picker
from evertide.expr.relation import Types
from evertide.expr.row_key import column_encoder, join_key
from evertide.spark.operators.arrange import ArrangeOperator
from evertide.spark.operators.delta import NOTHING, Delta, Tick
from evertide.spark.runs import Entry
from evertide.vocab.datum import Row

Test: TypeAlias = Callable[[Row], bool]


class JoinOperator:
    """Keeps nothing: what it looks up is kept by the plan's ArrangeNodes."""

    def __init__(
        self,
        node: JoinNode,
        nodes: Sequence[DeltaNode],
        arranged: Mapping[int, ArrangeOperator],
    ) -> None:
        self._inputs = node.inputs
        types = [nodes[number].types for number in node.inputs]
        self._paths = [_path(path, types, arranged) for path in node.paths]

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        given = [deltas[number] for number in self._inputs]
        if not any(delta.rows or delta.errors for delta in given):
            return NOTHING
        rows: list[Entry] = []
        for path in self._paths:
            bound = given[path.source].rows
            for step in path.steps:
                if not bound:
                    break
                bound = step.extend(bound)
            if path.pick is None:
                rows += bound
            else:
                pick = path.pick
                rows += [(pick(row), ts, diff) for row, ts, diff in bound]
        return Delta(rows, [error for delta in given for error in delta.errors])


@dataclass(frozen=True, slots=True)
class _Step:
    """One lookup. `new`: with this tick's changes of what is looked up."""

    arranged: ArrangeOperator
    new: bool
    probe: tuple[int, ...]
    key_of: Callable[[Row], bytes]
    checks: Test | None

    def extend(self, bound: Sequence[Entry]) -> list[Entry]:
        waiting: dict[bytes, list[Entry]] = {}
        probe, key_of = self.probe, self.key_of
        for entry in bound:
            row = entry[0]
            if None in [row[column] for column in probe]:
                continue
            key = key_of(row)
            if key in waiting:
                waiting[key].append(entry)
            else:
                waiting[key] = [entry]
        found = self.arranged.probe(list(waiting), new=self.new)
        # The later of two changes is when both are there.
        joined = [
            (row + other, ts if ts > other_ts else other_ts, diff * other_diff)
            for key, others in found.items()
            for row, ts, diff in waiting[key]
            for other, other_ts, other_diff in others
        ]
        checks = self.checks
        return joined if checks is None else [entry for entry in joined if checks(entry[0])]


@dataclass(frozen=True, slots=True)
class _Path:
    source: int
    steps: tuple[_Step, ...]
    pick: Callable[[Row], Row] | None


def _path(path: JoinPath, types: Sequence[Types], arranged: Mapping[int, ArrangeOperator]) -> _Path:
    bound = types[path.source]
    steps: list[_Step] = []
    for step in path.steps:
        found = types[step.relation]
        checks = _checks(step, bound, found)
        key_of = column_encoder(bound, step.probe)
        new = step.relation < path.source
        steps.append(_Step(arranged[step.arrangement], new, step.probe, key_of, checks))
        bound += found
    unchanged = path.columns == tuple(range(len(path.columns)))
    return _Path(path.source, tuple(steps), None if unchanged else picker(path.columns))


def _checks(step: JoinStep, bound: Types, found: Types) -> Test | None:
    """Equalities beyond the arrangement's key."""
    if not step.also_equal:
        return None
    types = bound + found
    pairs = [
        (join_key(types, (left,)), join_key(types, (len(bound) + right,)))
        for left, right in step.also_equal
    ]

    def equal(row: Row) -> bool:
        for left, right in pairs:
            value = left(row)
            if value is None or value != right(row):
                return False
        return True

    return equal
