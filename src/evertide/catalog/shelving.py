"""What is kept of items that are dropped."""

from collections.abc import Mapping, Sequence
from typing import Final

from evertide.catalog.draft import Allocator, Draft, full_name
from evertide.catalog.grace import grace_ms
from evertide.catalog.objects import (
    DroppedItem,
    Index,
    Item,
    KeptComment,
    MaterializedView,
    NamedInput,
    NamedType,
    ObjectKind,
    Table,
    View,
)
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.temporary import is_temporary
from evertide.vocab.ids import ItemId

_KEPT: Final = (Table, View, MaterializedView, Index, NamedType)


def kept(draft: Draft, going: Sequence[ItemId]) -> Mapping[ItemId, DroppedItem]:
    """Of items that go, dependants first, those that can be brought back.

    Sources, sinks and replacements are gone at once, and with them what depends on them: it could
    not come back without.
    """
    snapshot = draft.snapshot
    if grace_ms(snapshot) == 0:
        return {}
    drop_id = snapshot.next_numbers[Allocator.AUDIT_EVENT]
    found: dict[ItemId, DroppedItem] = {}
    leaving = set(going)
    for item_id in reversed(going):
        item = snapshot.items[item_id]
        below = [read for read in item.reads if read in leaving]
        if _can_be_kept(item, draft) and all(read in found for read in below):
            root = found[below[0]].dropped_with or below[0] if below else None
            found[item_id] = _record(draft, item, drop_id, root)
    return found


def _can_be_kept(item: Item, draft: Draft) -> bool:
    """Not what is one session's own, nor what is made and dropped in one transaction."""
    if is_temporary(item) or draft.is_new(item):
        return False
    return item.replacement is None and isinstance(item.definition, _KEPT)


def _record(draft: Draft, item: Item, drop_id: int, root: ItemId | None) -> DroppedItem:
    snapshot = draft.snapshot
    named = full_name(snapshot, item)
    comments = snapshot.comments_on(ObjectKind.ITEM, item.item_id)
    cluster_id = item.cluster_id
    return DroppedItem(
        item_id=item.item_id,
        item=item,
        place=(named["database"], named["schema"]),
        cluster=None if cluster_id is None else snapshot.clusters[cluster_id].name,
        names=names_of_inputs(snapshot, item),
        comments=tuple(KeptComment(sub_id=c.sub_id, comment=c.comment) for c in comments),
        dropped_at_ms=draft.now_ms,
        drop_id=drop_id,
        dropped_with=root,
    )


def names_of_inputs(snapshot: Snapshot, item: Item) -> tuple[NamedInput, ...]:
    """What the names in an item's text mean, while they still mean that."""
    named = (snapshot.items.get(item_id) for item_id in item.depends_on)
    return tuple(
        NamedInput(name=tuple(full_name(snapshot, read).values()), item_id=read.item_id)
        for read in named
        if read is not None
    )
