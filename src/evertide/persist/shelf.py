"""Shards of dropped items that may be brought back: they take no appends and lose nothing.

A hold keeps the shard from being purged for as long as the catalog keeps the item. It is taken and
released in the store transactions that append to the catalog, so the two never disagree.
"""

import msgspec

from evertide.persist.state import Changed, ShardState, forget, release_hold, restore, set_hold
from evertide.vocab.ids import GlobalId, ItemId


def shelf_owner(item_id: ItemId) -> str:
    """The name under which a dropped item's hold stands in its shard's state."""
    return f"dropped {item_id}"


def shelve(state: ShardState, *, owner: str) -> Changed:
    """Refuse appends, and keep all that is readable."""
    held = set_hold(state, owner=owner, hold_ts=state.since)
    return forget(held) if isinstance(held, ShardState) else held


def unshelve(state: ShardState, *, owner: str, writer: GlobalId | None) -> Changed:
    """Take appends again, of this writer; contents are as they were."""
    restored = restore(state)
    if not isinstance(restored, ShardState):
        return restored
    return msgspec.structs.replace(release_hold(restored, owner=owner), writer=writer)


def give_up(state: ShardState, *, owner: str) -> ShardState:
    """Let the shard be purged."""
    return release_hold(state, owner=owner)
