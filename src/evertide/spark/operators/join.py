"""The inner join by delta paths: every input's changes look up the other inputs in turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from evertide.dataflow.delta_plan import DeltaNode, JoinNode, JoinPath, JoinStep
from evertide.expr.columnar.batch import Batch, Entry, add_up
from evertide.expr.columnar.codes import equal_keys
from evertide.expr.columnar.hashes import hash_keys
from evertide.expr.relation import Types
from evertide.expr.row_key import join_key, picker
from evertide.spark.arrangements.finding import is_each
from evertide.spark.operators.arrange import ArrangeOperator
from evertide.spark.operators.delta import NOTHING, Delta, Tick, gathered, without_nulls
from evertide.spark.operators.keyed import ByKey
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
        self._types = node.types
        types = [nodes[number].types for number in node.inputs]
        self._paths = [_path(path, types, arranged) for path in node.paths]

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        given = [deltas[number] for number in self._inputs]
        if all(delta.is_nothing for delta in given):
            return NOTHING
        joined = [self._follow(p, given[p.source]) for p in self._paths if len(given[p.source])]
        errors = [error for delta in given for error in delta.errors]
        return gathered(self._types, joined).with_errors(errors)

    def _follow(self, path: "_Path", delta: Delta) -> Delta:
        """The changes of one input, extended by all other inputs; row by row while they are few."""
        for number, step in enumerate(path.steps):
            if not len(delta):
                return NOTHING
            types = path.types[number]
            if delta.is_wide:
                delta = Delta(batch=step.extend_columns(delta, types))
            else:
                delta = Delta(step.extend(delta))
        if path.pick is None:
            return delta.with_errors(())
        if delta.is_wide:
            return Delta(batch=delta.batch(path.types[-1]).pick(path.columns))
        pick = path.pick
        return Delta([(pick(row), ts, diff) for row, ts, diff in delta.rows])


@dataclass(frozen=True, slots=True)
class _Step:
    """One lookup. `new`: with this tick's changes of what is looked up."""

    arranged: ArrangeOperator
    new: bool
    probe: tuple[int, ...]
    by_key: ByKey
    checks: Test | None
    key_types: Types
    also_equal: tuple[tuple[int, int], ...]

    def extend(self, bound: Delta) -> list[Entry]:
        waiting, parts = bound.by_key(self.by_key, drop_nulls=True)
        if not waiting:
            return []
        found = self.arranged.probe(list(waiting), parts, new=self.new)
        # The later of two changes is when both are there.
        joined = [
            (row + other, ts if ts > other_ts else other_ts, diff * other_diff)
            for key, others in found.items()
            for row, ts, diff in waiting[key]
            for other, other_ts, other_diff in others
        ]
        checks = self.checks
        return joined if checks is None else [entry for entry in joined if checks(entry[0])]

    def extend_columns(self, changes: Delta, types: Types) -> Batch:
        """The same by columns."""
        layer = changes.hashed(self.probe)
        bound = without_nulls(changes.batch(types), self.probe) if layer is None else layer.batch
        keys = [bound.columns[i] for i in self.probe]
        hashes = hash_keys(self.key_types, keys, len(bound)) if layer is None else layer.hashes
        where, found = self.arranged.find(keys, hashes, new=self.new)
        left = bound if is_each(where, len(bound)) else bound.take(where)
        for one, other in self.also_equal:
            equal = equal_keys(bound.types[one], left.columns[one], found.columns[other])
            equal &= ~left.columns[one].null_mask
            left, found = left.take(equal), found.take(equal)
        joined = Batch(
            bound.types + found.types,
            left.columns + found.columns,
            np.maximum(left.times, found.times),
            left.diffs * found.diffs,
        )
        # A row that came and went since the last merge was found both ways.
        return add_up(joined) if (found.diffs < 0).any() else joined


@dataclass(frozen=True, slots=True)
class _Path:
    """`types` are those of the row before each step, and after the last one."""

    source: int
    steps: tuple[_Step, ...]
    types: tuple[Types, ...]
    columns: tuple[int, ...]
    pick: Callable[[Row], Row] | None


def _path(path: JoinPath, types: Sequence[Types], arranged: Mapping[int, ArrangeOperator]) -> _Path:
    bound = types[path.source]
    bounds = [bound]
    steps: list[_Step] = []
    for step in path.steps:
        found = types[step.relation]
        checks = _checks(step, bound, found)
        by_key = ByKey(bound, step.probe)
        new = step.relation < path.source
        key_types = tuple(bound[i] for i in step.probe)
        steps.append(
            _Step(
                arranged[step.arrangement],
                new,
                step.probe,
                by_key,
                checks,
                key_types,
                step.also_equal,
            )
        )
        bound += found
        bounds.append(bound)
    unchanged = path.columns == tuple(range(len(path.columns)))
    pick = None if unchanged else picker(path.columns)
    return _Path(path.source, tuple(steps), tuple(bounds), path.columns, pick)


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
