"""Somebody new who reads everything, when all is over."""

from evertide.persist.upkeep.purge import is_purged
from evertide.vocab.timestamp import Timestamp, step_back, step_forward
from tests.sim.history import Followed
from tests.sim.work import Client, read_columns


async def audit(client: Client) -> None:
    """Read each collection where it is oldest, where it is newest, and in between."""
    storage = client.node.storage
    for collection in client.readable:
        shard_id, imported = collection.shard_id, collection.imported
        state = await client.node.client.state(shard_id)
        if is_purged(state):
            continue
        since, upper = state.since, await storage.upper(imported)
        if upper <= since:
            continue
        middle = Timestamp(client.rng.randint(since, upper - 1))
        for as_of in (since, middle, step_back(upper)):
            contents = await storage.contents(imported, as_of)
            client.history.reads.append(client.seen(contents, shard_id))
        if middle < state.upper:
            client.history.reads.append(await read_columns(client, collection, middle))
        lower = step_forward(since)
        if lower < upper:
            followed = Followed(client.node.process.name, shard_id, lower, lower)
            followed.add(await storage.updates(imported, lower, upper), upper)
            client.history.followed.append(followed)
