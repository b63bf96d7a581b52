"""What a statement changes, and what of it is the session's own."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from evertide.catalog.kinds.temporary import TEMPORARY_SCHEMA_ID, temporary_ids
from evertide.catalog.objects import CatalogUpdate
from evertide.catalog.ops import CreateItemOp, Op
from evertide.catalog.temporary import is_temporary
from evertide.catalog.transact import TransactResult

# Of all sessions: what one of them planned must never be taken for another's.
_NUMBERS: Final = count(1)


def divided(result: TransactResult) -> tuple[TransactResult, tuple[CatalogUpdate, ...]]:
    """What is to be stored, and what is the session's own."""
    own = tuple(update for update in result.updates if is_temporary(update.object))
    if not own:
        return result, ()
    stored = tuple(update for update in result.updates if not is_temporary(update.object))
    return replace(result, updates=stored), own


def numbered(ops: Sequence[Op]) -> list[Op]:
    """The ops with ids for the temporary items that they create."""
    return [
        replace(op, ids=temporary_ids(next(_NUMBERS)))
        if isinstance(op, CreateItemOp) and op.schema_id == TEMPORARY_SCHEMA_ID
        else op
        for op in ops
    ]
