"""Objects of one session: what they are in a snapshot, and who may depend on them."""

from collections.abc import Iterable
from typing import Final

from evertide.catalog.kinds.privileges import granted
from evertide.catalog.kinds.temporary import (
    TEMPORARY_SCHEMA,
    TEMPORARY_SCHEMA_ID,
    TEMPORARY_SCHEMA_OID,
    is_temporary_id,
)
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    CatalogObject,
    Comment,
    Item,
    Schema,
    object_key,
)
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import InvalidTableDefinition
from evertide.vocab.ids import ItemId, RoleId, SchemaId, ShardId

# Before the id of the collection that a shard is named after.
SHARD_PREFIX: Final = "item-"
_SYSTEM: Final = RoleId("s1")

# Nobody's, so that it neither goes nor changes with what a role owns.
SESSION_SCHEMA: Final = Schema(
    schema_id=TEMPORARY_SCHEMA_ID,
    oid=TEMPORARY_SCHEMA_OID,
    database_id=None,
    name=TEMPORARY_SCHEMA,
    owner=_SYSTEM,
    privileges=granted(granted((), _SYSTEM, _SYSTEM, "UC"), PUBLIC_ROLE_ID, _SYSTEM, "UC"),
)


def is_temporary(found: CatalogObject) -> bool:
    """Whether it is one session's: an item in the temporary schema, the schema, a comment on it."""
    match found:
        case Item() | Schema():
            return found.schema_id == TEMPORARY_SCHEMA_ID
        case Comment(object_id=object_id):
            return is_temporary_id(object_id)
        case _:
            return is_temporary_id(object_key(found)[1])


def refuse_lasting(schema_id: SchemaId, depends_on: Iterable[ItemId], snapshot: Snapshot) -> None:
    """What is to outlast the session cannot depend on what does not."""
    if schema_id == TEMPORARY_SCHEMA_ID:
        return
    for item_id in depends_on:
        if is_temporary_id(item_id):
            item = snapshot.items.get(item_id)
            shown = item_id if item is None else item.name
            raise cannot_depend_on(shown)


def cannot_depend_on(name: str) -> InvalidTableDefinition:
    """The error of what is to outlast the session and needs this item."""
    return InvalidTableDefinition(
        "non-temporary items cannot depend on temporary item",
        detail=f'"{name}" is temporary, and gone when the session ends.',
    )


def is_held(shard_id: ShardId) -> bool:
    """Whether it names the rows of a temporary table, which are in no shard."""
    return is_temporary_id(shard_id.removeprefix(SHARD_PREFIX))
