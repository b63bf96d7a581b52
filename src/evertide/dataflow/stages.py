"""A delta plan cut into stages, for tasks that each keep a share of its state; pure.

State is spread by the hash of a key: an arrangement's by its key, a GROUP BY's by its keys, and so
on. A row must come to the task that has the state of its key, so wherever a node needs rows by
another key than they lie by, they are exchanged. A *stage* is what every task can do by itself
between two exchanges; a tick is its stages one after another, and state changes after the last.

Whatever rows lie where, all tasks together hold each node's changes exactly once, its errors
included. A node that keeps something is there once; one that keeps nothing may be there several
times, each time by another key, if that saves an exchange. A join becomes its delta paths: one
lookup after another, each where the arrangement is that it looks into.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    DeltaNode,
    DeltaPlan,
    FlatMapNode,
    InputNode,
    JoinNode,
    JoinPath,
    LinearNode,
    NegateNode,
    RecomputeNode,
    ReduceNode,
    TemporalFilterNode,
    ThresholdNode,
    TopKNode,
    UnionNode,
    WindowNode,
    inputs_of,
)
from evertide.expr.relation import Types
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.vocab.ids import GlobalId

Columns: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FeedNode:
    """The changes of an imported collection, each where these columns' hash says."""

    global_id: GlobalId
    key: Columns
    types: Types


@dataclass(frozen=True, slots=True)
class ExchangeNode:
    """Its input's rows, each where the key's hash says; errors, rows whose key fails, and all rows
    if there is no key, come to the first task, which has the constants too.
    """

    input: int
    key: tuple[Scalar, ...]
    types: Types


@dataclass(frozen=True, slots=True)
class LookupNode:
    """One step of a join's delta path: each row beside those of the arrangement with an equal key.

    `new`: with this tick's changes of what is looked up. Only the input's errors pass.
    """

    input: int
    arrangement: int
    probe: Columns
    also_equal: tuple[tuple[int, int], ...]
    new: bool
    types: Types


KeepingNode: TypeAlias = (
    ArrangeNode | ReduceNode | TopKNode | WindowNode | ThresholdNode | TemporalFilterNode
)
StageNode: TypeAlias = DeltaNode | FeedNode | ExchangeNode | LookupNode


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """Nodes in order of evaluation, and the stage of each: that of an exchange receives the rows.

    `places` says where the plan's own nodes that keep something are, by their positions there.
    `settled`: equal rows of the output come from one task, so that nothing cancels between tasks.
    `looked_back_at`: for each stage the nodes up to it whose changes a later one reads as they are.
    """

    nodes: tuple[StageNode, ...]
    stages: tuple[int, ...]
    output: int
    places: Mapping[int, int]
    settled: bool
    is_temporal: bool
    looked_back_at: tuple[Columns, ...]

    @property
    def last(self) -> int:
        """The last stage."""
        return max(self.stages)

    @property
    def feeds(self) -> Mapping[int, FeedNode]:
        """What comes from outside, by position."""
        return {p: node for p, node in enumerate(self.nodes) if isinstance(node, FeedNode)}

    def exchanges(self, stage: int) -> Mapping[int, ExchangeNode]:
        """What is received when this stage begins, by position."""
        return {
            position: node
            for position, node in enumerate(self.nodes)
            if isinstance(node, ExchangeNode) and self.stages[position] == stage
        }


def cut(plan: DeltaPlan, index_key: Columns | None) -> StagedPlan:
    """The plan in stages; an index has its output by its key."""
    cutter = _Cutter(plan)
    wanted = None if index_key is None else _refs(plan.types, index_key)
    output = cutter.place(plan.output, wanted)
    assert output == len(cutter.nodes) - 1, "nothing is computed for the output after it"
    return StagedPlan(
        tuple(cutter.nodes),
        tuple(cutter.stages),
        output,
        cutter.places,
        bool(cutter.lies_by[output]),
        plan.is_temporal,
        tuple([_looked_back_at(cutter, stage) for stage in range(max(cutter.stages) + 1)]),
    )


def _looked_back_at(cutter: "_Cutter", stage: int) -> Columns:
    """Nodes up to this stage that nodes of later ones read."""
    later = [
        node
        for node, at in zip(cutter.nodes, cutter.stages, strict=True)
        if at > stage and not isinstance(node, ExchangeNode)
    ]
    read = {source for node in later for source in _inputs(node)}
    return tuple([source for source in sorted(read) if cutter.stages[source] <= stage])


def _inputs(node: StageNode) -> Columns:
    """What a node reads changes of."""
    match node:
        case FeedNode():
            return ()
        case ExchangeNode(input=source) | LookupNode(input=source):
            return (source,)
        case _:
            return inputs_of(node)


class _Cutter:
    """The nodes so far. `lies_by` are the columns by whose hash each node's rows lie: any of them
    is enough. Nothing: equal rows may lie in several places.
    """

    def __init__(self, plan: DeltaPlan) -> None:
        self._plan = plan.nodes
        self.nodes: list[StageNode] = []
        self.stages: list[int] = []
        self.lies_by: list[frozenset[Columns]] = []
        self.places: dict[int, int] = {}
        self._known: dict[tuple[int, tuple[Scalar, ...] | None], int] = {}
        self._exchanged: dict[tuple[int, tuple[Scalar, ...]], int] = {}

    def place(self, position: int, key: tuple[Scalar, ...] | None) -> int:
        """Where the plan's node is, with its rows by this key; None: as they come."""
        known = self._known.get((position, key))
        if known is None:
            if key is None:
                known = self._natural(position)
            else:
                known = self._by_key(position, key)
            self._known[position, key] = known
        return known

    def _by_key(self, position: int, key: tuple[Scalar, ...]) -> int:
        columns = _columns(key)
        if columns is not None and self._can_push(position, columns):
            return self._pushed(position, columns)
        return self._exchange(self.place(position, None), key)

    def _exchange(self, source: int, key: tuple[Scalar, ...]) -> int:
        """The rows of a node that is here, by this key."""
        columns = _columns(key)
        if columns is not None and columns in self.lies_by[source]:
            return source
        known = self._exchanged.get((source, key))
        if known is None:
            node = ExchangeNode(source, key, self.nodes[source].types)
            lies_by = frozenset() if columns is None else frozenset({columns})
            known = self._add(node, self.stages[source] + 1, lies_by)
            self._exchanged[source, key] = known
        return known

    def _can_push(self, position: int, key: Columns) -> bool:
        """Whether the rows can come from outside by a key that makes these lie by this one."""
        node = self._plan[position]
        match node:
            case InputNode():
                return True
            case ArrangeNode(input=source) | NegateNode(input=source):
                return self._can_push(source, key)
            case LinearNode(input=source, columns=columns):
                below = tuple([columns[column] for column in key])
                return max(below, default=0) < self._width(source) and self._can_push(source, below)
            case FlatMapNode(input=source):
                return max(key, default=0) < self._width(source) and self._can_push(source, key)
            case UnionNode(inputs=inputs):
                return all(self._can_push(source, key) for source in inputs)
            case _:
                return False

    def _pushed(self, position: int, key: Columns) -> int:
        node = self._plan[position]
        wanted = _refs(node.types, key)
        match node:
            case InputNode(global_id=global_id, types=types):
                return self._add(FeedNode(global_id, key, types), 0, frozenset({key}))
            case ArrangeNode(input=source):
                return self.place(source, wanted)
            case NegateNode(input=source) | FlatMapNode(input=source):
                return self._over(node, (self.place(source, wanted),))
            case LinearNode(input=source, columns=columns):
                below = _refs(self._plan[source].types, [columns[column] for column in key])
                return self._over(node, (self.place(source, below),))
            case UnionNode(inputs=inputs):
                return self._over(node, [self.place(source, wanted) for source in inputs])
            case _:
                raise AssertionError(f"{type(node).__name__} takes no other key")

    def _natural(self, position: int) -> int:
        node = self._plan[position]
        match node:
            case InputNode(types=types):
                return self.place(position, _refs(types, range(len(types))))
            case ConstantNode():
                return self._add(node, 0, frozenset({()}))
            case LinearNode() | FlatMapNode() | NegateNode():
                return self._over(node, (self.place(node.input, None),))
            case UnionNode(inputs=inputs):
                return self._over(node, [self.place(source, None) for source in inputs])
            case ArrangeNode(input=source):
                return self.place(source, None)
            case JoinNode():
                return self._join(node)
            case RecomputeNode():
                return self._in_one_place(position, node)
            case ReduceNode(input=source, keys=keys):
                lies_by = frozenset({tuple(range(len(keys)))})
                return self._keeping(position, node, self.place(source, keys), lies_by)
            case (
                TopKNode(input=source, group=group, types=types)
                | WindowNode(input=source, group=group, types=types)
            ):
                moved = self.place(source, _refs(types, group))
                return self._keeping(position, node, moved, frozenset({group}))
            case (
                ThresholdNode(input=source, types=types)
                | TemporalFilterNode(input=source, types=types)
            ):
                whole = tuple(range(len(types)))
                moved = self.place(source, _refs(types, whole))
                return self._keeping(position, node, moved, frozenset({whole}))
            case _:
                assert_never(node)

    def _keeping(
        self,
        position: int,
        node: (
            ArrangeNode | ReduceNode | TopKNode | WindowNode | ThresholdNode | TemporalFilterNode
        ),
        source: int,
        lies_by: frozenset[Columns],
    ) -> int:
        """A node that keeps something, over an input that is here by the right key."""
        placed = self._add(replace(node, input=source), self.stages[source], lies_by)
        self.places[position] = placed
        return placed

    def _in_one_place(self, position: int, node: RecomputeNode) -> int:
        """What must see all rows, and errors, of its inputs."""
        inputs = tuple([self.place(source, ()) for source in node.inputs])
        stage = max((self.stages[source] for source in inputs), default=0)
        self.places[position] = self._add(replace(node, inputs=inputs), stage, frozenset({()}))
        return self.places[position]

    def _over(self, node: DeltaNode, sources: Sequence[int]) -> int:
        """A node that keeps nothing, over these inputs."""
        stage = max(self.stages[source] for source in sources)
        lies_by = frozenset[Columns].intersection(*[self.lies_by[source] for source in sources])
        match node:
            case UnionNode():
                return self._add(replace(node, inputs=tuple(sources)), stage, lies_by)
            case LinearNode(columns=columns):
                lies_by = frozenset(
                    tuple([columns.index(column) for column in key])
                    for key in lies_by
                    if set(key) <= set(columns)
                )
                return self._add(replace(node, input=sources[0]), stage, lies_by)
            case NegateNode() | FlatMapNode():
                return self._add(replace(node, input=sources[0]), stage, lies_by)
            case _:
                raise AssertionError(f"{type(node).__name__} is placed in another way")

    def _join(self, join: JoinNode) -> int:
        """The errors of each input pass with the path that begins there."""
        paths = [self._path(join, path) for path in join.paths]
        return self._over(UnionNode((), join.types), paths)

    def _path(self, join: JoinNode, path: JoinPath) -> int:
        source = join.inputs[path.source]
        bound = self._plan[source].types
        found = self.place(source, _refs(bound, path.steps[0].probe)) if path.steps else None
        here = self.place(source, None) if found is None else found
        for step in path.steps:
            here = self._exchange(here, _refs(bound, step.probe))
            arranged = self._arranged(step.arrangement)
            types = self.nodes[arranged].types
            new = step.relation < path.source
            node = LookupNode(here, arranged, step.probe, step.also_equal, new, types=bound + types)
            stage = max(self.stages[here], self.stages[arranged] if new else 0)
            key = self._arrangement(step.arrangement).key
            equal = tuple([len(bound) + column for column in key])
            here = self._add(node, stage, self.lies_by[here] | {step.probe, equal})
            bound += types
        if path.columns == tuple(range(len(bound))):
            return here
        return self._over(LinearNode(here, (), (), path.columns, join.types), (here,))

    def _arrangement(self, position: int) -> ArrangeNode:
        node = self._plan[position]
        assert isinstance(node, ArrangeNode), "a path looks into arrangements"
        return node

    def _arranged(self, position: int) -> int:
        """The arrangement that a path looks into: there once, whoever looks."""
        known = self.places.get(position)
        if known is not None:
            return known
        node = self._arrangement(position)
        source = self.place(node.input, _refs(node.types, node.key))
        return self._keeping(position, node, source, frozenset({node.key}))

    def _add(self, node: StageNode, stage: int, lies_by: frozenset[Columns]) -> int:
        self.nodes.append(node)
        self.stages.append(stage)
        self.lies_by.append(lies_by)
        return len(self.nodes) - 1

    def _width(self, position: int) -> int:
        return len(self._plan[position].types)


def _refs(types: Types, columns: Sequence[int]) -> tuple[Scalar, ...]:
    return tuple([ColumnRef(column, types[column]) for column in columns])


def _columns(key: tuple[Scalar, ...]) -> Columns | None:
    """The columns that a key is; None if some of it is computed."""
    columns = [part.index for part in key if isinstance(part, ColumnRef)]
    return tuple(columns) if len(columns) == len(key) else None
