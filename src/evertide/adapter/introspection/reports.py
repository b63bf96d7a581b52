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
from evertide.vocab.timestamp import EMPTY_FRONTIER

SILENT = "the replica does not answer"


async def reported(relation: str, env: Environment, snapshot: Snapshot) -> Sequence[Row]:
    """The rows of all replicas that answer."""
    return list(_with_replicas(await env.compute.introspect(snapshot, relation), snapshot))


def _with_replicas(told: Mapping[str, Sequence[Facts]], snapshot: Snapshot) -> Iterator[Facts]:
    """Replicas know their cluster, and give it where these rows have the replica.

    What is told of a replica that this snapshot does not have, because it was dropped or is newer,
    is left out.
    """
    replicas = {(process_name(r), r.cluster_id): r for r in snapshot.replicas.values()}
    by_text = {(process, str(cluster)): r for (process, cluster), r in replicas.items()}
    for process, rows in told.items():
        for object_id, cluster_id, *rest in rows:
            replica = by_text.get((process, str(cluster_id)))
            if replica is not None:
                yield (object_id, replica.replica_id, *rest)


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
            missing = (item.global_id, replica.replica_id, False, None, None, reason)
            rows.append(known.get((item.global_id, replica.replica_id), missing))
    return rows


async def frontiers(env: Environment, snapshot: Snapshot) -> Sequence[Row]:
    """(object, read frontier, write frontier) of every durable collection, and of every index.

    An index is as far as the replica that is furthest; it is readable from where any replica has
    it. One that no replica tells of is left out: NULL would mean that it is finished.
    """
    rows: list[Row] = []
    for item in snapshot.items.values():
        collection = collection_of(item, snapshot)
        if collection is None:
            continue
        since = await env.storage.since(collection)
        upper = await env.storage.upper(collection)
        finished = upper == EMPTY_FRONTIER and isinstance(item.definition, MaterializedView)
        rows.append((item.global_id, since, None if finished else upper))
    return [*rows, *await index_frontiers(env, snapshot)]


async def index_frontiers(env: Environment, snapshot: Snapshot) -> list[Row]:
    """The same three of every index that a replica tells of."""
    indexes = {i.global_id for i in snapshot.items.values() if isinstance(i.definition, Index)}
    if not indexes:
        return []
    told = await reported("mz_cluster_replica_frontiers", env, snapshot)
    return _furthest([row for row in told if row[0] in indexes])


def _furthest(told: Sequence[Row]) -> list[Row]:
    """One row for each index of (object, replica, upper or None: finished, since or None)."""
    rows: list[Row] = []
    for object_id in dict.fromkeys(row[0] for row in told):
        mine = [row for row in told if row[0] == object_id]
        uppers = [EMPTY_FRONTIER if row[2] is None else row[2] for row in mine]
        sinces = [row[3] for row in mine if row[3] is not None]
        upper = max(upper for upper in uppers if isinstance(upper, int))
        since = min((s for s in sinces if isinstance(s, int)), default=None)
        rows.append((object_id, since, None if upper == EMPTY_FRONTIER else upper))
    return rows
