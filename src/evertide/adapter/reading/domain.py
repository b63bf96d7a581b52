"""What a transaction that reads may go on to read.

Its first read fixes its time, and keeps that time readable for all that is near: everything in the
schemas that it touches, and what those follow from. Later reads stay within, so that none of them
fails because history has moved on.
"""

from collections.abc import Collection, Iterable, Sequence

from evertide.adapter.environment import Environment
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from evertide.dataflow.description import Import
from evertide.persist.faults import BelowSince
from evertide.persist.leases import ReadHold
from evertide.vocab.errors import InvalidTransactionState
from evertide.vocab.ids import GlobalId, SchemaId, ShardId
from evertide.vocab.timestamp import Timestamp


def read_domain(global_ids: Iterable[GlobalId], snapshot: Snapshot) -> Sequence[Import]:
    """Every stored collection of the schemas that these are in, and what those follow from."""
    items = [snapshot.item_of(global_id) for global_id in global_ids]
    schemas = tuple({item.schema_id: None for item in items if item is not None})
    if len(schemas) != 1:
        return _stored(schemas, snapshot)
    # Most read one schema, and each of that many times.
    return snapshot.recall(("domain", *schemas), lambda: _stored(schemas, snapshot))


def _stored(schemas: Iterable[SchemaId], snapshot: Snapshot) -> tuple[Import, ...]:
    near = [i.item_id for s in schemas for i in snapshot.items_in_schema(s)]
    found = (collection_of(item, snapshot) for item in snapshot.stored_inputs(near))
    return tuple(collection for collection in found if collection is not None)


async def hold_domain(domain: Sequence[Import], env: Environment, as_of: Timestamp) -> ReadHold:
    """Hold what can be held: what is not readable any more is refused when it is read."""
    while True:
        sinces = await env.storage.sinces(domain)
        domain = [c for c, since in zip(domain, sinces, strict=True) if since <= as_of]
        try:
            return await env.storage.hold(domain, as_of)
        except BelowSince:
            continue


def check_within(
    global_ids: Iterable[GlobalId], domain: Collection[ShardId], snapshot: Snapshot
) -> None:
    """Refuse what the transaction did not provide for when it began to read."""
    items = [snapshot.item_of(global_id) for global_id in global_ids]
    read = snapshot.stored_inputs([item.item_id for item in items if item is not None])
    outside = [item for item in read if item.shard_id not in domain]
    if outside:
        within = [item for item in snapshot.items.values() if item.shard_id in domain]
        available = sorted(f'"{snapshot.qualified_name(item)}"' for item in within)
        raise InvalidTransactionState(
            "Transactions can only reference objects in the same timedomain.",
            detail="\n".join(
                [
                    "The following relations in the query are outside the transaction's time"
                    " domain:",
                    *(f'"{snapshot.qualified_name(item)}"' for item in outside),
                    "Only the following relations are available:",
                    *available,
                ]
            ),
            hint="Read from all schemas that the transaction needs with its first query.",
        )
