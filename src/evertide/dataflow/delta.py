"""From an optimised relation to its delta plan: pure, once per dataflow.

Nodes that do the same over the same inputs are one node, whatever their way into the plan: a table
joined with itself has one arrangement, and what lowering an outer join uses three times is computed
once.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias, assert_never

from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    DeltaNode,
    DeltaPlan,
    FlatMapNode,
    InputNode,
    JoinNode,
    JoinPath,
    JoinStep,
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
from evertide.dataflow.plan_codec import node_key
from evertide.expr.argument_order import in_value_order
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.join_order import Extension, connected_order, inner_equivalences, offsets_of
from evertide.expr.recursion import MARK, split_recursion
from evertide.expr.relation import (
    Apply,
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    LetRec,
    LocalGet,
    Map,
    Negate,
    OuterJoin,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Types,
    Union,
    Window,
)
from evertide.expr.relation_walk import in_order_of_use, inputs_of
from evertide.expr.scalar import Call, ColumnRef, Literal, Scalar
from evertide.expr.scalar_walk import columns_of, is_fallible, move_columns
from evertide.expr.temporal import check_core, is_temporal
from evertide.expr.transform.equalities import EQUALS
from evertide.vocab.sql_type import BOOL, Kind, SqlType

Linear: TypeAlias = Project | Map | Filter
NEVER: Final = (Literal(False, BOOL),)
ONE_ROW: Final = Constant((((), 1),), ())
# What a recursion calls that row; nothing reads it.
BEGIN: Final = f"{MARK}begin"
# Kinds that are compared as another kind is.
_EQUALITY_KINDS: Final = {Kind.VARCHAR: Kind.TEXT} | dict.fromkeys(
    (Kind.REGCLASS, Kind.REGPROC, Kind.REGTYPE), Kind.OID
)


def delta_plan(relation: Relation) -> DeltaPlan:
    """How changes of the relation's collections become changes of its contents."""
    builder = _Builder(relation)
    output = builder.place(relation)
    # The output is the last node; a plan made by one walk from it has nothing after it.
    assert output == len(builder.nodes) - 1, "nothing is computed after the output"
    return DeltaPlan(tuple(builder.nodes))


class _Builder:
    """The nodes so far. `place` gives a relation's position and adds what is not there yet."""

    def __init__(self, root: Relation) -> None:
        self.nodes: list[DeltaNode] = []
        self._known: dict[bytes, int] = {}
        self._places: dict[int, tuple[Relation, int]] = {}
        self._users = Counter(
            id(source) for node in in_order_of_use(root) for source in inputs_of(node)
        )

    def place(self, relation: Relation) -> int:
        known = self._places.get(id(relation))
        if known is None:
            known = relation, self._make(relation)
            self._places[id(relation)] = known
        return known[1]

    def add(self, node: DeltaNode) -> int:
        key = node_key(node)
        if key not in self._known:
            self._known[key] = len(self.nodes)
            self.nodes.append(node)
        return self._known[key]

    def _make(self, relation: Relation) -> int:
        types = relation.types
        match relation:
            case Constant(rows=rows):
                return self.add(ConstantNode(rows, types))
            case Get(global_id=global_id):
                return self.add(InputNode(global_id, types))
            case Filter(input=source, predicates=predicates) if _is_temporal(relation):
                return self.add(TemporalFilterNode(self.place(source), predicates, types))
            case Project() | Map() | Filter():
                return self._linear(relation)
            case FlatMap(input=source, function=function, arguments=given, ordinality=numbered):
                place = self.place(source)
                return self.add(FlatMapNode(place, function, given, numbered, types))
            case Join():
                return self._join(relation)
            case Reduce(input=source, keys=keys, aggregates=aggregates):
                calls = tuple(map(in_value_order, aggregates))
                return self.add(ReduceNode(self.place(source), keys, calls, types))
            case Distinct(input=source):
                keys = tuple(ColumnRef(i, sql_type) for i, sql_type in enumerate(types))
                return self.add(ReduceNode(self.place(source), keys, (), types))
            case TopK(input=source, limit=0):
                # Errors only: no need to keep rows of which none will ever be shown.
                everything = tuple(range(len(types)))
                return self.add(LinearNode(self.place(source), (), NEVER, everything, types))
            case TopK(input=source, group=group, order=order, limit=limit, offset=offset):
                return self.add(TopKNode(self.place(source), group, order, limit, offset, types))
            case Window(input=source, group=group, order=order, calls=calls):
                return self.add(WindowNode(self.place(source), group, order, calls, types))
            case Negate(input=source):
                return self.add(NegateNode(self.place(source), types))
            case Threshold(input=source):
                return self.add(ThresholdNode(self.place(source), types))
            case Union(inputs=inputs):
                return self.add(UnionNode(tuple(self.place(source) for source in inputs), types))
            case LetRec():
                return self._recursion(relation)
            case LocalGet(name=name):
                raise AssertionError(f"{name} is read outside its recursion")
            case OuterJoin() | Apply():
                raise AssertionError(f"{type(relation).__name__} is lowered first")
            case _:
                assert_never(relation)

    def _recursion(self, node: LetRec) -> int:
        """What it goes round over is followed as anything else is."""
        parts = split_recursion(node)
        check_core(parts.core)
        # The last input never changes, but it comes: so there is a first time to compute it.
        sources = (*parts.inputs, ONE_ROW)
        names = (*parts.input_names, BEGIN)
        places = tuple(self.place(source) for source in sources)
        return self.add(RecomputeNode(places, names, parts.core, node.types))

    def _linear(self, top: Linear) -> int:
        """A chain of Map, Filter and Project as few nodes; a step others use too starts anew."""
        chain: list[Linear] = [top]
        while True:
            below = chain[-1].input
            if not isinstance(below, Project | Map | Filter) or self._users[id(below)] > 1:
                break
            if _is_temporal(below):
                break
            chain.append(below)
        fused = _Fused.over(self.place(below), below.types)
        for step in reversed(chain):
            if not fused.takes(step):
                fused = _Fused.over(self._flush(fused), fused.types)
            fused = fused.then(step)
        return self._flush(fused)

    def _flush(self, fused: "_Fused") -> int:
        return fused.source if fused.is_nothing() else self.add(fused.node())

    def _join(self, join: Join) -> int:
        join = _without_inner_equivalences(join)
        places = [self.place(source) for source in join.inputs]
        if len(places) == 1:
            return places[0]
        arities = [len(source.types) for source in join.inputs]
        paths: list[JoinPath] = []
        for source in range(len(places)):
            order = connected_order(arities, join.equivalences, source)
            steps = tuple([self._step(step, places, join) for step in order.extensions])
            paths.append(JoinPath(source, steps, order.columns))
        return self.add(JoinNode(tuple(places), tuple(paths), join.types))

    def _step(self, extension: Extension, places: list[int], join: Join) -> JoinStep:
        """Key columns ascend, so that paths that look for the same columns share an arrangement."""
        pairs = sorted(zip(extension.key, extension.probe, strict=True))
        key = tuple(column for column, _ in pairs)
        number = extension.relation
        arranged = ArrangeNode(
            places[number], key, drop_null_keys=True, types=join.inputs[number].types
        )
        probe = tuple(column for _, column in pairs)
        return JoinStep(number, self.add(arranged), probe, extension.also_equal)


def _is_temporal(relation: Relation) -> bool:
    """Whether it is a filter that looks at the time itself."""
    return isinstance(relation, Filter) and any(map(is_temporal, relation.predicates))


@dataclass(frozen=True, slots=True)
class _Fused:
    """A LinearNode in the making over the node at `source`.

    `columns` says where the columns of the relation built so far are among the source's columns and
    the scalars.
    """

    source: int
    source_types: Types
    scalars: tuple[Scalar, ...]
    predicates: tuple[Scalar, ...]
    columns: tuple[int, ...]

    @classmethod
    def over(cls, source: int, types: Types) -> "_Fused":
        return cls(source, types, (), (), tuple(range(len(types))))

    @property
    def types(self) -> Types:
        every = self.source_types + tuple(scalar.type for scalar in self.scalars)
        return tuple(every[i] for i in self.columns)

    def takes(self, step: Linear) -> bool:
        """Whether the step can be part of this node without a change in what fails.

        Scalars are evaluated before predicates, so one that may fail must not join a node that
        already drops rows. Predicates are one And, in which a later one can hide an earlier one's
        error or add its own where an earlier one is NULL.
        """
        match step:
            case Project():
                return True
            case Map(scalars=scalars):
                return not self.predicates or not any(map(is_fallible, scalars))
            case Filter(predicates=predicates):
                return not self.predicates or not any(
                    map(is_fallible, (*self.predicates, *predicates))
                )
            case _:
                assert_never(step)

    def then(self, step: Linear) -> "_Fused":
        """This node with one more step at its end."""
        moved = dict(enumerate(self.columns))
        match step:
            case Project(columns=columns):
                picked = tuple(self.columns[i] for i in columns)
                return self._with(self.scalars, self.predicates, picked)
            case Map(scalars=scalars):
                return self._mapped([move_columns(scalar, moved) for scalar in scalars])
            case Filter(predicates=predicates):
                more = tuple(move_columns(predicate, moved) for predicate in predicates)
                return self._with(self.scalars, self.predicates + more, self.columns)
            case _:
                assert_never(step)

    def _mapped(self, scalars: list[Scalar]) -> "_Fused":
        """A column given again needs no scalar."""
        added = list(self.scalars)
        columns = list(self.columns)
        for scalar in scalars:
            if isinstance(scalar, ColumnRef):
                columns.append(scalar.index)
            else:
                columns.append(len(self.source_types) + len(added))
                added.append(scalar)
        return self._with(tuple(added), self.predicates, tuple(columns))

    def _with(
        self, scalars: tuple[Scalar, ...], predicates: tuple[Scalar, ...], columns: tuple[int, ...]
    ) -> "_Fused":
        return _Fused(self.source, self.source_types, scalars, predicates, columns)

    def is_nothing(self) -> bool:
        unchanged = self.columns == tuple(range(len(self.source_types)))
        return unchanged and not self.scalars and not self.predicates

    def node(self) -> LinearNode:
        """Without scalars that nobody looks at; one that may fail is looked at for its error."""
        width = len(self.source_types)
        used = set(self.columns).union(*map(columns_of, self.predicates))
        for number in reversed(range(len(self.scalars))):
            if width + number in used or is_fallible(self.scalars[number]):
                used |= columns_of(self.scalars[number]) | {width + number}
        kept = [number for number in range(len(self.scalars)) if width + number in used]
        moved = {i: i for i in range(width)} | {width + n: width + i for i, n in enumerate(kept)}
        return LinearNode(
            self.source,
            tuple(move_columns(self.scalars[number], moved) for number in kept),
            tuple(move_columns(predicate, moved) for predicate in self.predicates),
            tuple(moved[i] for i in self.columns),
            self.types,
        )


def _without_inner_equivalences(join: Join) -> Join:
    """Columns of one input that must be equal to one another and to nothing else: predicates.

    Paths compare columns of one input with those of others only.
    """
    arities = [len(source.types) for source in join.inputs]
    offsets = offsets_of(arities)
    inputs = list(join.inputs)
    done: set[int] = set()
    for number, columns in inner_equivalences(arities, join.equivalences):
        inputs[number] = _all_equal(inputs[number], columns)
        done.add(offsets[number] + columns[0])
    rest = tuple(members for members in join.equivalences if members[0] not in done)
    return Join(tuple(inputs), rest) if done else join


def _all_equal(source: Relation, columns: tuple[int, ...]) -> Relation:
    refs = [ColumnRef(column, source.types[column]) for column in columns]
    equal = tuple(_equality(one, other) for one, other in pairwise(refs))
    return Filter(source, equal)


def _equality(one: ColumnRef, other: ColumnRef) -> Scalar:
    kind = _EQUALITY_KINDS.get(one.type.kind, one.type.kind)
    plain = SqlType(kind, element=one.type.element)
    function = by_signature(f"{EQUALS}({plain},{plain})")
    assert isinstance(function, ScalarFunction), "an equality is no aggregate"
    return Call(function, (one, other), function.result)
