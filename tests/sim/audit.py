"""Somebody new who reads everything, when all is over."""

from evertide.persist.faults import BelowSince
from evertide.persist.purge import is_purged
from evertide.vocab.timestamp import Timestamp, step_back, step_forward
from tests.sim.history import Followed
from tests.sim.stored import Collection
from tests.sim.work import Client, read_columns


async def audit(client: Client) -> None:
    """Read each collection where it is oldest, where it is newest, and in between."""
    for collection in client.readable:
        since = await _since(client, collection)
        while since is not None and not await _read_from(client, collection, since):
            since = await _since(client, collection)


async def _since(client: Client, collection: Collection) -> Timestamp | None:
    """From where on it can be read; None: not at all."""
    state = await client.node.client.state(collection.shard_id)
    if is_purged(state) or await client.node.storage.upper(collection.imported) <= state.since:
        return None
    return state.since


async def _read_from(client: Client, collection: Collection, since: Timestamp) -> bool:
    """False: the others' last leases have run out meanwhile, and history was merged."""
    storage, imported = client.node.storage, collection.imported
    try:
        hold = await storage.hold([imported], since)
    except BelowSince:
        return False
    with hold:
        await _read(client, collection, since, await storage.upper(imported))
    return True


async def _read(client: Client, collection: Collection, since: Timestamp, upper: Timestamp) -> None:
    storage, shard_id, imported = client.node.storage, collection.shard_id, collection.imported
    middle = Timestamp(client.rng.randint(since, upper - 1))
    for as_of in (since, middle, step_back(upper)):
        contents = await storage.contents(imported, as_of)
        client.history.reads.append(client.seen(contents, shard_id))
    if middle < (await client.node.client.state(shard_id)).upper:
        client.history.reads.append(await read_columns(client, collection, middle))
    lower = step_forward(since)
    if lower < upper:
        followed = Followed(client.node.process.name, shard_id, lower, lower)
        followed.add(await storage.updates(imported, lower, upper), upper)
        client.history.followed.append(followed)
