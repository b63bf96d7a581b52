"""How sources and sinks fare, from what replicas tell of them."""

from collections.abc import Sequence
from typing import Final

from evertide.adapter.environment import Environment
from evertide.catalog.builtin.external import writing_cluster
from evertide.catalog.kinds.external import external_type
from evertide.catalog.objects import Item, ItemKind, Sink, Source, Subsource
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import Facts
from evertide.controller.orchestrator import process_name
from evertide.vocab.datum import Row
from evertide.vocab.ids import ClusterId, GlobalId

STATUSES: Final = {"mz_source_statuses": ItemKind.SOURCE, "mz_sink_statuses": ItemKind.SINK}
# Of several replicas that tell of one source or sink, the one that fares best is believed: what
# one of them writes is there for all.
_BEST_FIRST: Final = ("running", "stalled", "starting")


async def external_statuses(relation: str, env: Environment, snapshot: Snapshot) -> Sequence[Row]:
    """A row for each source, or for each sink."""
    told = await env.compute.introspect(snapshot, relation)
    by_id: dict[object, list[Facts]] = {}
    for rows in told.values():
        for row in rows:
            by_id.setdefault(row[0], []).append(row)
    wanted = STATUSES[relation]
    return [
        _row(item, by_id.get(_writer_of(item, snapshot), []), set(told), snapshot)
        for item in snapshot.items.values()
        if item.kind is wanted
    ]


def _writer_of(item: Item, snapshot: Snapshot) -> GlobalId:
    """What is written for a subsource is written by its source."""
    if isinstance(item.definition, Subsource):
        return snapshot.items[item.definition.source_id].global_id
    return item.global_id


def _row(item: Item, told: Sequence[Facts], answering: set[str], snapshot: Snapshot) -> Row:
    assert isinstance(item.definition, Source | Subsource | Sink), "asked of no others"
    named = (item.item_id, item.name, external_type(item.definition))
    if told:
        best = min(told, key=lambda facts: _BEST_FIRST.index(str(facts[2])))
        _, _, status, error, changed_us = best
        return *named, changed_us, status, error, None
    cluster_id = writing_cluster(item, snapshot)
    assert cluster_id is not None, "sources and sinks are of a cluster"
    return *named, None, *_silence(cluster_id, answering, snapshot), None


def _silence(
    cluster_id: ClusterId, answering: set[str], snapshot: Snapshot
) -> tuple[str, str | None]:
    replicas = snapshot.replicas_of(cluster_id)
    if not replicas:
        return "paused", f'cluster "{snapshot.clusters[cluster_id].name}" has no replicas'
    if any(process_name(replica) in answering for replica in replicas):
        return "starting", None
    return "stalled", "no replica of its cluster answers"
