"""Which statements look rows up by the key of an index, or in a view, and nothing else; pure."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from evertide.adapter.reading.asking import settled
from evertide.adapter.reading.leaves import indexes_of
from evertide.catalog.objects import Index, Item
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from evertide.dataflow.description import Import
from evertide.expr.relation import Filter, Finishing, Get, Project, Relation
from evertide.expr.row_key import PLAIN_KINDS, picker
from evertide.expr.scalar import Call, ColumnRef, Literal, Parameter, Scalar
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Datum, Row
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.sql_type import Kind

# Casts that leave such a value as it is.
_KEEPING: Final = frozenset(
    {(Kind.INT2, Kind.INT4), (Kind.INT2, Kind.INT8), (Kind.INT4, Kind.INT8),
     (Kind.VARCHAR, Kind.TEXT)}
)  # fmt: skip
# Their text depends on the session.
_NAMED: Final = frozenset({Kind.REGCLASS, Kind.REGPROC})

# What rows are kept by: of which shard, with how many columns, and the columns of the key.
CopyKey: TypeAlias = tuple[ShardId, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """How the rows of a statement are found, for one snapshot of the catalog."""

    snapshot: Snapshot
    collection: Import
    copy_key: CopyKey
    # Whether it is a materialized view without an index: what its shard lacks, replicas tell.
    is_view: bool
    # The key for the statement's parameters; None where no row can have it.
    key: Callable[[Sequence[Datum]], Hashable | None]
    # The columns that a client sees, of a row of the collection; None: all of them.
    pick: Callable[[Row], Row] | None
    cut: slice | None

    def rows(self, found: Sequence[Row]) -> Sequence[Row]:
        """What a client sees of the rows that have the key."""
        if self.cut is not None:
            found = found[self.cut]
        pick = self.pick
        return found if pick is None else [pick(row) for row in found]


def recipe_of(
    plan: SelectPlan, relation: Relation, snapshot: Snapshot, cluster_id: ClusterId
) -> Recipe | None:
    """`relation` is the plan's with its views put in; None: it is something else."""
    if plan.as_of is not None or plan.vectors or plan.finishing.order or plan.tag != "SELECT":
        return None
    if any(sql_type.kind in _NAMED for sql_type in plan.desc.types):
        return None
    shape = _shape(relation)
    if shape is None:
        return None
    global_id, predicates, columns = shape
    sources = _sources(predicates)
    item = snapshot.item_of(global_id)
    if sources is None or item is None:
        return None
    collection = collection_of(item, snapshot, global_id)
    indexes = indexes_of(item, global_id, snapshot, cluster_id)
    covered = any(_covers(sources, i.definition) for i in indexes)
    is_view = not indexes and _is_plain_view(item, plan.finishing)
    if collection is None or not (covered or is_view):
        return None
    positions = tuple(sorted(sources))
    return Recipe(
        snapshot,
        collection,
        (collection.shard_id, collection.desc.arity, positions),
        is_view,
        _key_function([sources[position] for position in positions]),
        _pick(columns, plan.finishing, collection.desc.arity),
        _cut(plan.finishing),
    )


def _shape(relation: Relation) -> tuple[GlobalId, tuple[Scalar, ...], tuple[int, ...]] | None:
    """What is looked at, under which conditions, and which of its columns are left.

    Conditions name the columns of the collection itself.
    """
    outer: tuple[int, ...] | None = None
    if isinstance(relation, Project):
        outer, relation = relation.columns, relation.input
    if not isinstance(relation, Filter):
        return None
    inner = tuple(range(len(relation.input.types)))
    below = relation.input
    if isinstance(below, Project):
        inner, below = below.columns, below.input
    if not isinstance(below, Get):
        return None
    columns = inner if outer is None else tuple(inner[place] for place in outer)
    return below.global_id, tuple(_moved(p, inner) for p in relation.predicates), columns


def _moved(predicate: Scalar, columns: Sequence[int]) -> Scalar:
    """An equality by the columns of what its input's columns are taken from."""
    match predicate:
        case ColumnRef(index=index, type=sql_type):
            return ColumnRef(columns[index], sql_type)
        case Call(function=function, arguments=arguments, type=sql_type):
            return Call(function, tuple(_moved(a, columns) for a in arguments), sql_type)
        case _:
            return predicate


def _sources(predicates: Sequence[Scalar]) -> dict[int, Parameter | Literal] | None:
    """What each column has to equal; None if they ask for anything else."""
    found: dict[int, Parameter | Literal] = {}
    for predicate in predicates:
        if not isinstance(predicate, Call) or predicate.function.name != "=":
            return None
        left, right = (_uncast(argument) for argument in predicate.arguments)
        if isinstance(right, ColumnRef):
            left, right = right, left
        if not isinstance(left, ColumnRef) or not isinstance(right, Parameter | Literal):
            return None
        if (
            left.type.kind not in PLAIN_KINDS
            or right.type.kind not in PLAIN_KINDS
            or left.index in found
        ):
            return None
        found[left.index] = right
    return found or None


def _uncast(scalar: Scalar) -> Scalar:
    """What a cast is of, if it leaves values as they are."""
    match scalar:
        case Call(function=function, arguments=(argument,), type=after) if isinstance(
            argument, ColumnRef | Parameter | Literal
        ):
            kept = (argument.type.kind, after.kind) in _KEEPING
            return argument if kept and function.name == after.kind.value else scalar
        case _:
            return scalar


def _covers(sources: dict[int, Parameter | Literal], definition: object) -> bool:
    """Whether an index's whole key is known: that says it is made to be asked so."""
    return isinstance(definition, Index) and all(
        key.position is not None and key.position in sources for key in definition.keys
    )


def _is_plain_view(item: Item, finishing: Finishing) -> bool:
    """Which of many rows come first is for the ordinary way to say."""
    return settled(item) and _cut(finishing) is None


def _key_function(
    sources: Sequence[Parameter | Literal],
) -> Callable[[Sequence[Datum]], Hashable | None]:
    if len(sources) == 1 and isinstance(sources[0], Parameter):
        place = sources[0].index

        def one(parameters: Sequence[Datum]) -> Hashable | None:
            return parameters[place]

        return one

    def several(parameters: Sequence[Datum]) -> Hashable | None:
        values = [parameters[s.index] if isinstance(s, Parameter) else s.value for s in sources]
        if None in values:
            return None  # it equals nothing
        return values[0] if len(values) == 1 else tuple(values)

    return several


def _pick(
    columns: tuple[int, ...], finishing: Finishing, arity: int
) -> Callable[[Row], Row] | None:
    if finishing.project is not None:
        columns = tuple(columns[place] for place in finishing.project)
    return None if columns == tuple(range(arity)) else picker(columns)


def _cut(finishing: Finishing) -> slice | None:
    if finishing.limit is None and not finishing.offset:
        return None
    end = None if finishing.limit is None else finishing.offset + finishing.limit
    return slice(finishing.offset, end)
