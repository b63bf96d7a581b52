"""Where a query's rows come from; pure.

After optimisation every Get of the tree is a leaf: a system relation, a shard, or an index of the
session's cluster. EXPLAIN shows the same choice that a SELECT runs with.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.objects import Index, Item, View
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from evertide.dataflow.description import Import
from evertide.expr.relation import Filter, Get, Project, Relation
from evertide.expr.scalar import Call, ColumnRef, Literal, Scalar
from evertide.expr.traverse import walk
from evertide.vocab.datum import Datum, Row
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.relation_desc import RelationDesc


@dataclass(frozen=True, slots=True)
class BuiltinLeaf:
    """A system relation: rows follow from the catalog snapshot."""

    builtin: Builtin


@dataclass(frozen=True, slots=True)
class ShardLeaf:
    """A table or materialized view, read from its shard."""

    collection: Import
    name: str


@dataclass(frozen=True, slots=True)
class IndexLeaf:
    """An index of the session's cluster, asked for these keys, or for all rows."""

    index_id: GlobalId
    cluster_id: ClusterId
    name: str
    desc: RelationDesc
    keys: tuple[Row, ...] | None


Leaf: TypeAlias = BuiltinLeaf | ShardLeaf | IndexLeaf


@dataclass(frozen=True, slots=True)
class IndexedViews:
    """Views that an index of this cluster holds, so that a query need not compute them.

    Asked about the few views that a query names, because every read comes by here and a cluster may
    have thousands of indexes. Without a cluster there are none.
    """

    snapshot: Snapshot
    cluster_id: ClusterId | None

    def __contains__(self, global_id: object) -> bool:
        if self.cluster_id is None or not isinstance(global_id, str):
            return False
        item = self.snapshot.item_of(GlobalId(global_id))
        if item is None or item.global_id != global_id or not isinstance(item.definition, View):
            return False
        return bool(self.snapshot.indexes_on(item.item_id, self.cluster_id))


def choose_leaves(
    relation: Relation, snapshot: Snapshot, cluster_id: ClusterId | None
) -> dict[GlobalId, Leaf]:
    """A leaf for every collection that the optimised relation reads."""
    counts = Counter(node.global_id for node in walk(relation) if isinstance(node, Get))
    filters = _filters_over_gets(relation)
    leaves: dict[GlobalId, Leaf] = {}
    for global_id, count in counts.items():
        builtin = builtin_of(global_id)
        if builtin is not None:
            leaves[global_id] = BuiltinLeaf(builtin)
            continue
        item = snapshot.item_of(global_id)
        assert item is not None, f"planned against a snapshot without {global_id}"
        # Two uses of one collection may want different rows of it: then all are read.
        predicates = filters.get(global_id, ()) if count == 1 else ()
        leaves[global_id] = _leaf(item, predicates, snapshot, cluster_id)
    return leaves


def _leaf(
    item: Item,
    predicates: tuple[Scalar, ...],
    snapshot: Snapshot,
    cluster_id: ClusterId | None,
) -> Leaf:
    indexes = [] if cluster_id is None else snapshot.indexes_on(item.item_id, cluster_id)
    bound = _bound_columns(predicates)
    for index in indexes:
        assert isinstance(index.definition, Index)
        positions = [key.position for key in index.definition.keys]
        if all(position in bound for position in positions):
            key = tuple(bound[p] for p in positions if p is not None)
            return _index_leaf(index, item, (key,))
    collection = collection_of(item, snapshot)
    if collection is not None:
        return ShardLeaf(collection, item.name)
    assert indexes, f"view {item.name} was kept without an index"
    return _index_leaf(indexes[0], item, None)


def _index_leaf(index: Item, on: Item, keys: tuple[Row, ...] | None) -> IndexLeaf:
    assert index.cluster_id is not None
    return IndexLeaf(index.global_id, index.cluster_id, index.name, on.desc, keys)


def _filters_over_gets(relation: Relation) -> dict[GlobalId, tuple[Scalar, ...]]:
    """Predicates that stand right over a Get, or over a Project of one, by collection."""
    found: dict[GlobalId, tuple[Scalar, ...]] = {}
    for node in walk(relation):
        match node:
            case Filter(input=Get(global_id=global_id), predicates=predicates):
                found[global_id] = predicates
            case Filter(
                input=Project(input=Get(global_id=global_id), columns=columns),
                predicates=predicates,
            ):
                found[global_id] = tuple(_through(p, columns) for p in predicates)
            case _:
                pass
    return found


def _through(predicate: Scalar, columns: tuple[int, ...]) -> Scalar:
    """A `column = literal` predicate over a projection, as one over its input."""
    match predicate:
        case Call(arguments=(ColumnRef(index=index, type=type_), Literal() as literal)):
            return Call(
                predicate.function, (ColumnRef(columns[index], type_), literal), predicate.type
            )
        case Call(arguments=(Literal() as literal, ColumnRef(index=index, type=type_))):
            return Call(
                predicate.function, (literal, ColumnRef(columns[index], type_)), predicate.type
            )
        case _:
            return predicate


def _bound_columns(predicates: tuple[Scalar, ...]) -> dict[int | None, Datum]:
    """Columns that the predicates pin to one value that is not NULL."""
    bound: dict[int | None, Datum] = {}
    for predicate in predicates:
        match predicate:
            case (
                Call(
                    function=function,
                    arguments=(ColumnRef(index=index), Literal(value=value)),
                )
                | Call(
                    function=function,
                    arguments=(Literal(value=value), ColumnRef(index=index)),
                )
            ) if function.name == "=" and value is not None:
                bound[index] = value
            case _:
                pass
    return bound
