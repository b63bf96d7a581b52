"""Where a query's rows come from; pure.

After optimisation every Get of the tree is a leaf: a system relation, a shard, an index of the
session's cluster, or a temporary table. EXPLAIN shows the same choice that a SELECT runs with.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from evertide.adapter.reading.asked import EVERYTHING, Asked, asked_of_gets
from evertide.adapter.reading.index_lookup import KeySpans, best
from evertide.adapter.reading.index_spans import spans_of
from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.objects import Item, Table, View
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from evertide.dataflow.description import Import
from evertide.dataflow.lookup import Lookup
from evertide.expr.relation import Get, Project, Relation
from evertide.expr.relation_walk import inputs_of
from evertide.expr.scalar import Scalar
from evertide.expr.traverse import gets, walk
from evertide.sql.views import index_expressions
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc

# If so many entries or more have keys that are asked for, the shard is read instead.
MANY_ENTRIES: Final = 100_000


@dataclass(frozen=True, slots=True)
class BuiltinLeaf:
    """A system relation: rows follow from the catalog snapshot."""

    builtin: Builtin


@dataclass(frozen=True, slots=True)
class ShardLeaf:
    """A table or materialized view, read from its shard.

    Of its rows only those count for which all of the predicates are true, or one has an error.
    """

    collection: Import
    name: str
    predicates: tuple[Scalar, ...] = ()
    # Nothing but those predicates stands above it once, so they may choose what is read.
    once: bool = False


@dataclass(frozen=True, slots=True)
class IndexLeaf:
    """An index of the session's cluster, asked for these keys, or for all rows."""

    index_id: GlobalId
    cluster_id: ClusterId
    name: str
    desc: RelationDesc
    keys: KeySpans | None
    # Entries that it answers with at most; None: however many, for they are nowhere else.
    most: int | None

    @property
    def lookup(self) -> Lookup | None:
        """What its replica is asked."""
        return None if self.keys is None else Lookup(self.keys.spans, self.keys.exact, self.most)


@dataclass(frozen=True, slots=True)
class HeldLeaf:
    """A temporary table, whose rows the session has in memory."""

    shard_id: ShardId
    name: str
    desc: RelationDesc


Leaf: TypeAlias = BuiltinLeaf | ShardLeaf | IndexLeaf | HeldLeaf


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
    counts = _uses(relation)
    asked = asked_of_gets(relation)
    leaves: dict[GlobalId, Leaf] = {}
    for global_id in gets(relation):
        builtin = builtin_of(global_id)
        if builtin is not None:
            leaves[global_id] = BuiltinLeaf(builtin)
            continue
        item = snapshot.item_of(global_id)
        assert item is not None, f"planned against a snapshot without {global_id}"
        if isinstance(item.definition, Table) and item.shard_id is None:
            leaves[global_id] = HeldLeaf(item.definition.shard_id, item.name, item.desc)
            continue
        # Two uses of one collection may want different rows of it: then all are read.
        once = counts[global_id] == 1
        wanted = asked.get(global_id, EVERYTHING) if once else EVERYTHING
        leaf = _leaf(item, global_id, wanted, snapshot, cluster_id)
        if isinstance(leaf, ShardLeaf) and once:
            leaf = replace(leaf, predicates=wanted.near, once=True)
        leaves[global_id] = leaf
    return leaves


def _leaf(
    item: Item,
    global_id: GlobalId,
    asked: Asked,
    snapshot: Snapshot,
    cluster_id: ClusterId | None,
) -> Leaf:
    indexes = [] if cluster_id is None else indexes_of(item, global_id, snapshot, cluster_id)
    collection, desc = collection_of(item, snapshot, global_id), item.version(global_id).desc
    most = None if collection is None else MANY_ENTRIES
    found = [(i, spans_of(i, desc, asked, snapshot)) for i in indexes] if asked.near else []
    chosen = best([(index, spans) for index, spans in found if spans is not None])
    if chosen is not None:
        return _index_leaf(chosen[0], desc, chosen[1], most)
    if collection is not None:
        return ShardLeaf(collection, item.name)
    assert indexes, f"view {item.name} was kept without an index"
    # One by expressions does not answer while they fail for some row, though the view is whole.
    plain = (index for index in indexes if not index_expressions(index, snapshot))
    return _index_leaf(next(plain, indexes[0]), desc, None, None)


def indexes_of(
    item: Item, global_id: GlobalId, snapshot: Snapshot, cluster_id: ClusterId
) -> list[Item]:
    """Indexes of a cluster that hold the columns of this version of the relation, oldest first.

    One that was made before the relation got more columns does not have these.
    """
    wanted = item.version(global_id).desc
    indexes = snapshot.indexes_on(item.item_id, cluster_id)
    return [i for i in indexes if item.version_among(i.planned_against).desc == wanted]


def _index_leaf(
    index: Item, on: RelationDesc, keys: KeySpans | None, most: int | None
) -> IndexLeaf:
    assert index.cluster_id is not None
    return IndexLeaf(index.global_id, index.cluster_id, index.name, on, keys, most)


def _uses(relation: Relation) -> Counter[GlobalId]:
    """How many nodes take each collection's rows, as they are or some columns of them.

    One object may stand in several places: a Get that both sides of a join share is used twice.
    """
    found: Counter[GlobalId] = Counter()
    used = [relation]
    for node in walk(relation):
        if not _columns_of_one(node):  # its rows are counted where it is used itself
            used += inputs_of(node)
    for node in used:
        match node:
            case Get(global_id=global_id) | Project(input=Get(global_id=global_id)):
                found[global_id] += 1
            case _:
                pass
    return found


def _columns_of_one(node: Relation) -> bool:
    return isinstance(node, Project) and isinstance(node.input, Get)
