"""How objects that one session has for itself are told from those that are stored.

They are never in the catalog's log: a session puts them over the snapshots that it plans with.
"""

from dataclasses import dataclass
from typing import Final

from evertide.vocab.ids import ItemId, SchemaId

TEMPORARY_SCHEMA: Final = "mz_temp"
TEMPORARY_SCHEMA_ID: Final = SchemaId("0")
# PostgreSQL's name for it, which means the same here.
TEMPORARY_ALIAS: Final = "pg_temp"
# No allocator gives ids of this form, and none gets to these oids.
_PREFIX: Final = "ut"
_FIRST_OID: Final = 4_000_000_000
TEMPORARY_SCHEMA_OID: Final = _FIRST_OID - 1


@dataclass(frozen=True, slots=True)
class GivenIds:
    """The ids of an item for which none are allocated."""

    item_id: ItemId
    oid: int


def temporary_ids(number: int) -> GivenIds:
    """Those of a process's so-manieth temporary item.

    >>> temporary_ids(3)
    GivenIds(item_id='ut3', oid=4000000003)
    """
    return GivenIds(ItemId(f"{_PREFIX}{number}"), _FIRST_OID + number)


def is_temporary_id(object_id: object) -> bool:
    """Whether it is that of a temporary item, or of their schema.

    >>> is_temporary_id("ut3"), is_temporary_id("u3")
    (True, False)
    """
    if not isinstance(object_id, str):
        return False
    return object_id.startswith(_PREFIX) or object_id == TEMPORARY_SCHEMA_ID
