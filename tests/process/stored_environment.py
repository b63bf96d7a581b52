"""What a server that has ended left in its stores: the catalog, and the shards it speaks of."""

from pathlib import Path

from evertide.catalog.objects import Item, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.cli.config import Config
from evertide.cli.stores import Opened, open_generation
from evertide.dataflow.description import hold_owner
from evertide.persist.push.notify import LocalNotifier
from evertide.persist.state import ShardState
from evertide.vocab.ids import ShardId


async def faults_of_shards(data: Path, cache: Path, catalog: str) -> list[str]:
    """Where catalog and shards do not agree: a DDL that was applied in part."""
    consensus = f"sqlite:{data / 'consensus.db'}"
    config = Config(
        data=str(data),
        consensus=consensus,
        blob=f"file:{data / 'blob'}",
        oracle=consensus,
        catalog=catalog,
    )
    opened = await open_generation(config, cache, LocalNotifier())
    try:
        return await _compare(opened)
    finally:
        await opened.close()


async def _compare(opened: Opened) -> list[str]:
    snapshot = opened.catalog.newest
    wanted_holds = _wanted_holds(snapshot)
    items = {item.shard_id: item for item in snapshot.items.values() if item.shard_id is not None}
    consensus = opened.stores.consensus.consensus(opened.generation.epoch)
    stored = [one for one in await consensus.shard_ids() if one.startswith("item-")]
    faults = [f"{item.name} has no shard" for shard, item in items.items() if shard not in stored]
    for shard_id in stored:
        state, item = await opened.persist.state(shard_id), items.get(shard_id)
        if item is not None:
            faults += _faults_of(state, item, wanted_holds.get(shard_id, set()))
        elif not state.forgotten:
            faults.append(f"{shard_id} is nobody's, and not forgotten")
    return faults


def _faults_of(state: ShardState, item: Item, wanted_holds: set[str]) -> list[str]:
    is_view = isinstance(item.definition, MaterializedView)
    holds = {hold.owner for hold in state.holds if hold.owner.startswith("view ")}
    kept = {
        "it is not forgotten": not state.forgotten,
        "its writer is the view": state.writer == (item.global_id if is_view else None),
        f"{wanted_holds} hold it": holds == wanted_holds,
    }
    return [f"of {item.name} it is not true that {what}" for what, true in kept.items() if not true]


def _wanted_holds(snapshot: Snapshot) -> dict[ShardId, set[str]]:
    """By shard: who must hold its history."""
    wanted: dict[ShardId, set[str]] = {}
    for item in snapshot.items.values():
        if isinstance(item.definition, MaterializedView):
            for below in snapshot.stored_inputs(item.depends_on):
                if below.shard_id is not None:
                    wanted.setdefault(below.shard_id, set()).add(hold_owner(item.global_id))
    return wanted
