"""Catalog to dataflows: what one replica must run follows from the catalog alone.

Runs inside the replica. The same snapshot gives the same descriptions in every process, so nobody
need tell a replica about a new index or view.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import structlog

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
    Takeover,
)
from evertide.expr.relation import Relation
from evertide.expr.traverse import gets
from evertide.sql.views import plan_item
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import ClusterId, GlobalId, ItemId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp

log = structlog.get_logger()


class Follower:
    """Keeps the descriptions of what runs, so that a snapshot's unchanged items are not planned
    again: what a version computes is fixed when it is created.

    What may change while it runs is who writes the views that it reads, whether it may take the
    shard that it is to write, and how long an index's past stays readable.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[GlobalId, ClusterId], DataflowDescription] = {}
        self._writers: frozenset[tuple[GlobalId, bool]] = frozenset()
        self._set_aside: dict[tuple[GlobalId, ClusterId], str] = {}

    @property
    def writers(self) -> frozenset[tuple[GlobalId, bool]]:
        """Another one once a view has come to be written by another version."""
        return self._writers

    @property
    def set_aside(self) -> Mapping[tuple[GlobalId, ClusterId], str]:
        """What should run and cannot, and why."""
        return self._set_aside

    def dataflows(
        self, snapshot: Snapshot, cluster_ids: Collection[ClusterId]
    ) -> dict[GlobalId, DataflowDescription]:
        """Every dataflow of these clusters, inputs before users.

        One that cannot be described is set aside: the others run all the same.
        """
        wanted: dict[GlobalId, DataflowDescription] = {}
        set_aside: dict[tuple[GlobalId, ClusterId], str] = {}
        writers = _writers(snapshot)
        items = [item for c in cluster_ids for item in running(snapshot, c)]
        for item in _inputs_first(items, snapshot) if writers else sorted(items, key=_age):
            assert item.cluster_id is not None
            key = (item.global_id, item.cluster_id)
            try:
                wanted[item.global_id] = self._described(
                    item, snapshot, renewed=writers != self._writers
                )
            except Exception as error:  # nobody else's dataflow may end with it
                why = set_aside[key] = f"cannot be planned: {str(error) or type(error).__name__}"
                if self._set_aside.get(key) != why:
                    ours = not isinstance(error, SqlError)
                    log.error(
                        "dataflow set aside", object_id=item.global_id, reason=why, exc_info=ours
                    )
        self._known = {(d.global_id, d.cluster_id): d for d in wanted.values()}
        self._writers = writers
        self._set_aside = set_aside
        return wanted

    def _described(self, item: Item, snapshot: Snapshot, *, renewed: bool) -> DataflowDescription:
        """`renewed`: views may have other writers than when it was described."""
        assert item.cluster_id is not None
        known = self._known.get((item.global_id, item.cluster_id))
        if known is None:
            return describe_dataflow(item, snapshot)
        if renewed:
            imports = imports_by_id([i.global_id for i in known.imports], snapshot)
            known = replace(known, imports=imports)
        return _with_export(known, item, snapshot)


def has_dataflow(item: Item) -> bool:
    """Sources and sinks are of a cluster too, but nothing is computed for them."""
    return isinstance(item.definition, MaterializedView | Index)


def running(snapshot: Snapshot, cluster_id: ClusterId) -> list[Item]:
    """The items that a cluster runs a dataflow for, oldest first.

    What is handing over comes under both of its versions, each for the cluster that runs it.
    """
    found: list[Item] = []
    for item in snapshot.items_in_cluster(cluster_id):
        versions = (item,) if item.outgoing is None else (item, item.outgoing)
        found += [v for v in versions if has_dataflow(v) and v.cluster_id == cluster_id]
    return found


def _inputs_first(items: Sequence[Item], snapshot: Snapshot) -> list[Item]:
    """The items so that each comes after those that it reads, directly or not.

    By age does as long as no view was given a definition that reads younger ones.
    """
    places: dict[ItemId, int] = {}
    waiting = [(item.item_id, False) for item in sorted(items, key=_age, reverse=True)]
    while waiting:
        item_id, inputs_done = waiting.pop()
        item = snapshot.items.get(item_id)
        if item is None or item_id in places:
            continue
        if inputs_done:
            places[item_id] = len(places)
        else:
            waiting.append((item_id, True))
            waiting.extend((below, False) for below in item.reads if below not in places)
    return sorted(items, key=lambda item: (places[item.item_id], len(item.versions)))


def _age(item: Item) -> tuple[int, str]:
    """Ids grow, but as text u10 comes before u9."""
    return len(item.item_id), item.item_id


def _writers(snapshot: Snapshot) -> frozenset[tuple[GlobalId, bool]]:
    """What decides which version of a view has its shard, of views with more than one."""
    return frozenset(
        (item.global_id, item.definition.handing_over)
        for item in snapshot.items.values()
        if isinstance(item.definition, MaterializedView) and item.definition.past
    )


def _with_export(
    description: DataflowDescription, item: Item, snapshot: Snapshot
) -> DataflowDescription:
    """The description with what may have changed of its export."""
    match description.export:
        case IndexExport() as index if index.history_ms != item.history_ms:
            return replace(description, export=replace(index, history_ms=item.history_ms))
        case ShardExport() as shard:
            takeover = _takeover(item, snapshot)
            if takeover != shard.takeover:
                return replace(description, export=replace(shard, takeover=takeover))
    return description


def _takeover(item: Item, snapshot: Snapshot) -> Takeover | None:
    """From which version the item's shard is to be taken over, if it has another writer."""
    assert isinstance(item.definition, MaterializedView), "only views are exported to shards"
    if item.replacement is not None:
        old = collection_of(snapshot.items[item.replacement.target], snapshot)
        assert old is not None, "a view that is replaced is stored"
        return Takeover(old, may_write=False)
    if item.outgoing is not None:
        old = collection_of(item, snapshot, item.outgoing.global_id)
        assert old is not None, "a view that is handed over is stored"
        return Takeover(old, may_write=True, forward_time=item.definition.forward_time)
    return None


def describe_dataflow(item: Item, snapshot: Snapshot) -> DataflowDescription:
    """The dataflow of a materialized view or an index."""
    assert item.cluster_id is not None, "only items of a cluster run"
    relation, desc = plan_item(item, snapshot)
    built = build(
        item.global_id,
        item.cluster_id,
        relation,
        imports_of(relation, snapshot),
        _export(item, desc),
        _as_of(item),
    )
    return _with_export(built, item, snapshot)


def imports_of(relation: Relation, snapshot: Snapshot) -> tuple[Import, ...]:
    """The durable collections that a relation reads."""
    return imports_by_id(gets(relation), snapshot)


def imports_by_id(global_ids: Sequence[GlobalId], snapshot: Snapshot) -> tuple[Import, ...]:
    """The durable collections of these ids."""
    imports = []
    for global_id in global_ids:
        item = snapshot.item_of(global_id)
        collection = None if item is None else collection_of(item, snapshot, global_id)
        assert collection is not None, f"{global_id} is not a durable collection"
        imports.append(collection)
    return tuple(imports)


def _export(item: Item, desc: RelationDesc) -> Export:
    match item.definition:
        case MaterializedView(shard_id=shard_id):
            return ShardExport(shard_id, desc, refresh=item.refresh)
        case Index(on_id=on_id, history_ms=history_ms) as index:
            return IndexExport(GlobalId(on_id), index.key_places(desc.arity), desc, history_ms)
        case _:
            raise AssertionError(f"{item.kind} has no dataflow")


def _as_of(item: Item) -> Timestamp:
    if isinstance(item.definition, MaterializedView):
        return item.definition.as_of
    return MIN_TS  # an index starts where its inputs are first readable
