"""How much a session may have of its own, and how much of it may go into a dataflow."""

import asyncio
from collections.abc import Sequence
from typing import Final

from evertide.adapter.temporary.objects import Held
from evertide.adapter.temporary.tables import (
    SESSION_BYTES,
    least_weight,
    row_count,
    too_large,
    weight_of,
)
from evertide.catalog.objects import CatalogUpdate, Item
from evertide.persist.prepare import THREAD_ROWS
from evertide.persist.txn import TableWrite
from evertide.vocab.errors import InsufficientResources

# Every statement of the session takes a look at all of them.
SESSION_OBJECTS: Final = 1_000


def check_objects(held: Held, updates: Sequence[CatalogUpdate]) -> None:
    """Refuse more tables and views than a session may have."""
    more = sum(update.diff for update in updates if isinstance(update.object, Item))
    if more > 0 and len(held.items) + more > SESSION_OBJECTS:
        raise InsufficientResources(
            f"a session is limited to {SESSION_OBJECTS} temporary tables and views",
            hint="Drop some that are no longer needed.",
        )


def check_columns(write: TableWrite) -> None:
    """Refuse what is too large before rows are made of it."""
    if least_weight(write) > SESSION_BYTES:
        raise too_large()


async def weigh(write: TableWrite) -> int:
    """About how many bytes the rows take that come; on a thread if they are many."""
    check_columns(write)
    come = [entry for entry in write.rows if entry[1] > 0]
    if row_count(write) <= THREAD_ROWS:
        return weight_of(come) + least_weight(write)
    return await asyncio.to_thread(weight_of, come) + least_weight(write)


def check_collected(collected: int, more: int) -> None:
    """Refuse that a transaction keeps so much for its COMMIT."""
    if more and collected + more > SESSION_BYTES:
        raise InsufficientResources(
            f"what a transaction adds to temporary tables is limited to {SESSION_BYTES} bytes",
            hint="Commit more often, or use a table that is not temporary.",
        )
