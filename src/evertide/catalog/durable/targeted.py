"""Small changes that need no op of their own. Each is tried again until nobody else was first."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from evertide.catalog.draft import Allocator
from evertide.catalog.durable.protocol import WritableCatalog
from evertide.catalog.durable.transaction import Transaction
from evertide.catalog.objects import CatalogObject, Config, SystemObjectMapping, object_key
from evertide.persist.append import Appended
from evertide.persist.machine import Refused

T = TypeVar("T")


async def set_config(catalog: WritableCatalog, name: str, value: int) -> None:
    """Keep a number about the catalog itself."""
    await _commit(catalog, lambda transaction: _put(transaction, [Config(name=name, value=value)]))


async def set_system_object_mappings(
    catalog: WritableCatalog, mappings: Sequence[SystemObjectMapping]
) -> None:
    """Keep the ids and fingerprints of these system objects; those of others stay."""
    await _commit(catalog, lambda transaction: _put(transaction, mappings))


async def allocate_id(catalog: WritableCatalog, allocator: Allocator) -> int:
    """A number of this family that nobody else ever gets."""
    return await _commit(catalog, lambda transaction: transaction.draft.allocate(allocator))


async def _commit(catalog: WritableCatalog, change: Callable[[Transaction], T]) -> T:
    while True:
        transaction = await catalog.transaction()
        changed = change(transaction)
        outcome = await catalog.commit_transaction(transaction)
        assert not isinstance(outcome, Refused), "no data shard is touched"
        if isinstance(outcome, Appended):
            return changed


def _put(transaction: Transaction, objects: Sequence[CatalogObject]) -> None:
    """Each as it is given, in place of one with the same key."""
    for one in objects:
        before = transaction.snapshot.find(object_key(one))
        if before is None:
            transaction.draft.create(one)
        else:
            transaction.draft.replace(before, one)
