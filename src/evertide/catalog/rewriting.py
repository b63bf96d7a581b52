"""New texts of definitions, where something that they name has another name now."""

from collections.abc import Sequence

import msgspec

from evertide.catalog.draft import Draft
from evertide.catalog.objects import Item
from evertide.vocab.errors import UndefinedTable
from evertide.vocab.ids import ItemId


def rewrite(draft: Draft, definitions: Sequence[tuple[ItemId, str]]) -> None:
    """Give each of these items its new definition."""
    for item_id, create_sql in definitions:
        item = existing_item(draft, item_id)
        draft.replace(item, msgspec.structs.replace(item, create_sql=create_sql))


def existing_item(draft: Draft, item_id: ItemId) -> Item:
    """The item, or the user's mistake."""
    item = draft.snapshot.items.get(item_id)
    if item is None:
        raise UndefinedTable(f"unknown catalog item '{item_id}'")
    return item
