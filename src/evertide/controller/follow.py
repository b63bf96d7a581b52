"""Catalog to dataflows: what one replica must run follows from the catalog alone.

Runs inside the replica. The same snapshot gives the same descriptions in every process, so nobody
need tell a replica about a new index or view.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from evertide.catalog.objects import Index, Item, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from evertide.dataflow.build import build
from evertide.dataflow.description import (
    DataflowDescription,
    Export,
    Import,
    IndexExport,
    ShardExport,
)
from evertide.expr.relation import Relation
from evertide.expr.traverse import gets
from evertide.sql.views import plan_item
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp


class Follower:
    """Keeps the descriptions of what runs, so that a snapshot's unchanged items are not planned
    again: an item's plan is fixed when it is created."""

    def __init__(self) -> None:
        self._known: dict[tuple[GlobalId, ClusterId], DataflowDescription] = {}

    def dataflows(
        self, snapshot: Snapshot, cluster_ids: Collection[ClusterId]
    ) -> dict[GlobalId, DataflowDescription]:
        """Every dataflow of these clusters, oldest first, so that inputs come before users."""
        wanted: dict[GlobalId, DataflowDescription] = {}
        items = [i for c in cluster_ids for i in snapshot.items_in_cluster(c) if has_dataflow(i)]
        for item in sorted(items, key=lambda i: (len(i.item_id), i.item_id)):
            assert item.cluster_id is not None
            key = (item.global_id, item.cluster_id)
            if key not in self._known:
                self._known[key] = describe_dataflow(item, snapshot)
            wanted[item.global_id] = _with_history(self._known[key], item)
        self._known = {(d.global_id, d.cluster_id): d for d in wanted.values()}
        return wanted


def has_dataflow(item: Item) -> bool:
    """Sources and sinks are of a cluster too, but nothing is computed for them."""
    return isinstance(item.definition, MaterializedView | Index)


def _with_history(description: DataflowDescription, item: Item) -> DataflowDescription:
    """How long an index's past stays readable may change while it runs."""
    export = description.export
    if not isinstance(export, IndexExport) or export.history_ms == item.history_ms:
        return description
    return replace(description, export=replace(export, history_ms=item.history_ms))


def describe_dataflow(item: Item, snapshot: Snapshot) -> DataflowDescription:
    """The dataflow of a materialized view or an index."""
    assert item.cluster_id is not None, "only items of a cluster run"
    relation, desc = plan_item(item, snapshot)
    return build(
        item.global_id,
        item.cluster_id,
        relation,
        imports_of(relation, snapshot),
        _export(item, desc),
        _as_of(item),
    )


def imports_of(relation: Relation, snapshot: Snapshot) -> tuple[Import, ...]:
    """The durable collections that a relation reads."""
    return imports_by_id(gets(relation), snapshot)


def imports_by_id(global_ids: Sequence[GlobalId], snapshot: Snapshot) -> tuple[Import, ...]:
    """The durable collections of these ids."""
    imports = []
    for global_id in global_ids:
        item = snapshot.item_of(global_id)
        collection = None if item is None else collection_of(item, snapshot)
        assert collection is not None, f"{global_id} is not a durable collection"
        imports.append(collection)
    return tuple(imports)


def _export(item: Item, desc: RelationDesc) -> Export:
    match item.definition:
        case MaterializedView(shard_id=shard_id):
            return ShardExport(shard_id, desc)
        case Index(keys=keys, on_id=on_id, history_ms=history_ms):
            key = tuple(k.position for k in keys if k.position is not None)
            assert len(key) == len(keys), "index keys are columns"
            return IndexExport(GlobalId(on_id), key, desc, history_ms)
        case _:
            raise AssertionError(f"{item.kind} has no dataflow")


def _as_of(item: Item) -> Timestamp:
    if isinstance(item.definition, MaterializedView):
        return item.definition.as_of
    return MIN_TS  # an index starts where its inputs are first readable
