"""What replicas report, as rows that name the replica.

A replica that is down, or does not answer in time, is left out or shown as what it is; nobody waits
for it.
"""

from collections.abc import Iterator, Mapping, Sequence

from evertide.adapter.environment import Environment
from evertide.catalog.objects import Index, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import Facts
from evertide.controller.follow import has_dataflow
from evertide.controller.orchestrator import process_name
from evertide.controller.storage import collection_of
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER

SILENT = "the replica does not answer"


# What replicas tell only as long as they are watched; their frontiers are needed all the time.
_OF_WATCHED = ("mz_tick_records", "mz_arrangement_sizes")


async def reported(relation: str, env: Environment, snapshot: Snapshot) -> Sequence[Row]:
    """The rows of all replicas that answer."""
    rows = _with_replicas(await env.compute.introspect(snapshot, relation), snapshot)
    if relation not in _OF_WATCHED:
        return list(rows)
    replicas = snapshot.replicas.values()
    unwatched = {r.replica_id for r in replicas if r.introspection.interval_ms is None}
    return [row for row in rows if row[1] not in unwatched]


def _with_replicas(told: Mapping[str, Sequence[Facts]], snapshot: Snapshot) -> Iterator[Facts]:
    """Replicas know their cluster, and give it where these rows have the replica.

    They also know versions by their GlobalIds; users know items. What is told of a replica that
    this snapshot does not have, because it was dropped or is newer, is left out, and so is a
    version that another one has taken the place of.
    """
    replicas = {(process_name(r), r.cluster_id): r for r in snapshot.replicas.values()}
    by_text = {(process, str(cluster)): r for (process, cluster), r in replicas.items()}
    for process, rows in told.items():
        for object_id, cluster_id, *rest in rows:
            replica = by_text.get((process, str(cluster_id)))
            shown = _shown_id(object_id, snapshot)
            if replica is not None and shown is not None:
                yield (shown, replica.replica_id, *rest)


def _shown_id(object_id: object, snapshot: Snapshot) -> str | None:
    """The id of the item that a version is the current one of; None: an earlier one."""
    item = snapshot.item_of(GlobalId(str(object_id)))
    if item is None:
        return str(object_id)
    return item.item_id if item.global_id == object_id else None


async def hydration_statuses(env: Environment, snapshot: Snapshot) -> Sequence[Row]:
    """A row for everything a replica should run: what is not told of is not hydrated there.

    So whoever waits until all rows say true does not go on because a replica is missing.
    """
    told = await env.compute.introspect(snapshot, "mz_hydration_statuses")
    known = {(row[0], row[1]): row for row in _with_replicas(told, snapshot)}
    rows: list[Row] = []
    for item in snapshot.items.values():
        if item.cluster_id is None or not has_dataflow(item):
            continue
        for replica in snapshot.replicas_of(item.cluster_id):
            reason = None if process_name(replica) in told else SILENT
            missing = (item.item_id, replica.replica_id, False, None, None, reason)
            rows.append(known.get((item.item_id, replica.replica_id), missing))
    return rows


async def frontiers(env: Environment, snapshot: Snapshot) -> Sequence[Row]:
    """(object, read frontier, write frontier) of every durable collection, index and replacement.

    The latter two are as far as the replica that is furthest, and readable from where any replica
    has them. What no replica tells of is left out: NULL would mean that it is finished.
    """
    rows: list[Row] = []
    for item in snapshot.items.values():
        collection = collection_of(item, snapshot)
        if collection is None:
            continue
        since = await env.storage.since(collection)
        upper = await env.storage.upper(collection)
        finished = upper == EMPTY_FRONTIER and isinstance(item.definition, MaterializedView)
        rows.append((item.item_id, since, None if finished else upper))
    return [*rows, *await replica_frontiers(env, snapshot)]


async def replica_frontiers(env: Environment, snapshot: Snapshot) -> list[Row]:
    """The same three of every index and replacement that a replica tells of."""
    wanted = {
        item.item_id
        for item in snapshot.items.values()
        if isinstance(item.definition, Index) or item.replacement is not None
    }
    if not wanted:
        return []
    told = await reported("mz_cluster_replica_frontiers", env, snapshot)
    return _furthest([row for row in told if row[0] in wanted])


def _furthest(told: Sequence[Row]) -> list[Row]:
    """One row for each object of (object, replica, upper or None: finished, since or None)."""
    rows: list[Row] = []
    for object_id in dict.fromkeys(row[0] for row in told):
        mine = [row for row in told if row[0] == object_id]
        uppers = [EMPTY_FRONTIER if row[2] is None else row[2] for row in mine]
        sinces = [row[3] for row in mine if row[3] is not None]
        upper = max(upper for upper in uppers if isinstance(upper, int))
        since = min((s for s in sinces if isinstance(s, int)), default=None)
        rows.append((object_id, since, None if upper == EMPTY_FRONTIER else upper))
    return rows
