"""Delta plans: how a dataflow turns changes of its inputs into changes of its output.

A plan is a list of nodes in order of evaluation; a node names its inputs by their positions in the
list. On every tick each node gives a *delta*: updates (row, timestamp, diff) and error updates with
timestamps in the tick's interval, exact at each of them. The executors (spark/evaluate.py columnar
or by rows, spark/render/ as one Spark SQL text) run the same plan and must agree.

Stateful nodes say what they keep between ticks: ArrangeNode an arrangement of its input; Reduce-,
TopK- and WindowNode what they need per group; TemporalFilterNode what is due later. "Old" is
that state before the tick, "new" the same plus this tick's delta; a node never sees state that
another node changed halfway.
"""

from dataclasses import dataclass
from typing import TypeAlias

from evertide.expr.functions.row import TableFunction
from evertide.expr.recursion import Recursion
from evertide.expr.relation import AggregateCall, LetRec, OrderKey, Types, WindowCall
from evertide.expr.scalar import Scalar
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId


@dataclass(frozen=True, slots=True)
class InputNode:
    """The changes of an imported collection."""

    global_id: GlobalId
    types: Types


@dataclass(frozen=True, slots=True)
class ConstantNode:
    """Rows that come once, at the dataflow's as_of."""

    rows: tuple[tuple[Row, int], ...]
    types: Types


@dataclass(frozen=True, slots=True)
class LinearNode:
    """Map, then filter, then project, one update at a time; timestamp and diff pass through.

    `scalars` are appended one after another: each sees the input's columns and those before it.
    Order of evaluation: all scalars in order, then the predicates as one And; the first error that
    this order meets becomes the row's error, so a scalar's error counts even if a predicate would
    drop the row. (The planner puts predicates that guard scalars into an earlier node.)
    """

    input: int
    scalars: tuple[Scalar, ...]
    predicates: tuple[Scalar, ...]
    columns: tuple[int, ...]
    types: Types


@dataclass(frozen=True, slots=True)
class FlatMapNode:
    """A row of the input beside each row that the function gives for it; time and diff pass.

    A row whose arguments or function fail is an error instead. `ordinality` adds the number of the
    function's row, from 1, as the last column.
    """

    input: int
    function: TableFunction
    arguments: tuple[Scalar, ...]
    ordinality: bool
    types: Types


@dataclass(frozen=True, slots=True)
class TemporalFilterNode:
    """Rows for which every predicate is true, where some compare the time itself with a value.

    expr/temporal.py says which predicates there are. Each row is in from one timestamp on until
    another, so a change of the input gives up to two changes; those that are due later are kept.
    """

    input: int
    predicates: tuple[Scalar, ...]
    types: Types


@dataclass(frozen=True, slots=True)
class NegateNode:
    """Rows' diffs times -1; errors pass as they are."""

    input: int
    types: Types


@dataclass(frozen=True, slots=True)
class UnionNode:
    """All inputs' updates together."""

    inputs: tuple[int, ...]
    types: Types


@dataclass(frozen=True, slots=True)
class ArrangeNode:
    """Keeps its input arranged by these columns; passes the delta on.

    Rows with a NULL in the key are not kept if `drop_null_keys`: an equi-join never finds them.
    Error rows are not kept either; they pass with the delta of the node below.
    """

    input: int
    key: tuple[int, ...]
    drop_null_keys: bool
    types: Types


@dataclass(frozen=True, slots=True)
class JoinStep:
    """Extend what is bound so far by the rows of join input `relation` with an equal key.

    `arrangement` is the ArrangeNode of that input to look into; `probe` are the columns of the row
    bound so far, in *path order* (the source's columns, then those of each step's relation), that
    must equal the arrangement's key columns.
    """

    relation: int
    arrangement: int
    probe: tuple[int, ...]
    # (column of the bound row, column of the new relation's row) pairs checked in addition.
    also_equal: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class JoinPath:
    """What to do with the delta of join input `source`.

    Inputs before the source (by position in JoinNode.inputs) are looked up new, those after it old,
    so that every pair of changes is counted once; the time of a result is the greatest of its
    parts' times. `columns` puts the path-ordered row into the join's column order.
    """

    source: int
    steps: tuple[JoinStep, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinNode:
    """The inner join of n inputs by delta paths, one per input; no state between them.

    The inputs' error updates pass through once each.
    """

    inputs: tuple[int, ...]
    paths: tuple[JoinPath, ...]
    types: Types


@dataclass(frozen=True, slots=True)
class ReduceNode:
    """GROUP BY. Additive aggregates keep exact accumulators per group; if any aggregate needs the
    group's rows (min, max, DISTINCT), those are kept too, arranged by the keys.

    No aggregates: DISTINCT of the keys. A group whose rows all went gives no row.
    """

    input: int
    keys: tuple[Scalar, ...]
    aggregates: tuple[AggregateCall, ...]
    types: Types


@dataclass(frozen=True, slots=True)
class TopKNode:
    """Keeps the rows of each group and gives those that are in."""

    input: int
    group: tuple[int, ...]
    order: tuple[OrderKey, ...]
    limit: int | None
    offset: int
    types: Types


@dataclass(frozen=True, slots=True)
class WindowNode:
    """Keeps the rows of each partition and gives them with the values of its functions."""

    input: int
    group: tuple[int, ...]
    order: tuple[OrderKey, ...]
    calls: tuple[WindowCall, ...]
    types: Types


@dataclass(frozen=True, slots=True)
class ThresholdNode:
    """Rows with positive multiplicity, with that multiplicity."""

    input: int
    types: Types


@dataclass(frozen=True, slots=True)
class RecomputeNode:
    """A recursion over these inputs: computed anew at every timestamp at which one of them changes.

    Keeps the inputs' rows and what it gave last; gives the difference. expr/recursion.py says how
    `core` names the inputs, and what becomes of errors.
    """

    inputs: tuple[int, ...]
    input_names: tuple[str, ...]
    core: LetRec
    types: Types

    @property
    def recursion(self) -> Recursion:
        """What to solve, given the rows of the inputs."""
        return Recursion((), self.input_names, self.core)


DeltaNode: TypeAlias = (
    InputNode | ConstantNode | LinearNode | FlatMapNode | TemporalFilterNode | NegateNode
    | UnionNode | ArrangeNode | JoinNode | RecomputeNode | ReduceNode | TopKNode
    | WindowNode | ThresholdNode
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeltaPlan:
    """Nodes in order of evaluation; the last one is the output."""

    nodes: tuple[DeltaNode, ...]

    @property
    def output(self) -> int:
        """The position of the output node."""
        return len(self.nodes) - 1

    @property
    def is_temporal(self) -> bool:
        """Whether the output changes as time passes, though no input does."""
        return any(isinstance(node, TemporalFilterNode) for node in self.nodes)

    @property
    def recomputes(self) -> bool:
        """Whether some of it is computed anew when its inputs change, instead of followed."""
        return any(isinstance(node, RecomputeNode) for node in self.nodes)

    @property
    def types(self) -> Types:
        """The output's column types."""
        return self.nodes[-1].types


def inputs_of(node: DeltaNode) -> tuple[int, ...]:
    """The positions of the nodes that it reads changes of."""
    match node:
        case InputNode() | ConstantNode():
            return ()
        case UnionNode(inputs=inputs) | JoinNode(inputs=inputs) | RecomputeNode(inputs=inputs):
            return inputs
        case _:
            return (node.input,)
