"""Changes of what was dropped and is kept; part of ops.py's unions.

Items come to be kept by a DropItemsOp.
"""

from dataclasses import dataclass
from typing import TypeAlias

from evertide.vocab.ids import ClusterId, ItemId, RoleId, SchemaId
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """How one item comes back: where it is to be, whose, and its definition in names of today."""

    item_id: ItemId
    schema_id: SchemaId
    name: str
    owner: RoleId
    create_sql: str
    cluster_id: ClusterId | None = None  # None: none works for it
    # Of a materialized view: it is computed anew from here on, into a new shard. None: its rows go
    # on where they ended.
    anew_from: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class UndropItemsOp:
    """They come back, what others depend on first; refused if one cannot."""

    items: tuple[Returning, ...]


@dataclass(frozen=True, slots=True)
class PurgeDroppedOp:
    """They are not kept any longer; nothing happens to those that are not."""

    item_ids: tuple[ItemId, ...]


DroppedOp: TypeAlias = UndropItemsOp | PurgeDroppedOp
