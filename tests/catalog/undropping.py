"""Short forms of the ops that tests of dropped items ask for."""

from collections.abc import Mapping

from evertide.catalog.drop import with_dependants
from evertide.catalog.dropped_ops import Returning, UndropItemsOp
from evertide.catalog.objects import DroppedItem, Item
from evertide.catalog.ops import DropItemsOp
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.ids import ItemId
from evertide.vocab.timestamp import Timestamp


def drop(snapshot: Snapshot, *items: Item) -> DropItemsOp:
    """DROP … CASCADE of these."""
    ids = with_dependants(snapshot, [item.item_id for item in items])
    return DropItemsOp(ids, keep=True)


def undrop(
    snapshot: Snapshot, *item_ids: ItemId, anew: Mapping[ItemId, Timestamp] | None = None
) -> UndropItemsOp:
    """They come back as they were; views in `anew` are computed anew from there on."""
    found = [snapshot.dropped_items[item_id] for item_id in item_ids]
    starts = anew or {}
    return UndropItemsOp(tuple(_as_it_was(one, starts.get(one.item_id)) for one in found))


def _as_it_was(dropped: DroppedItem, anew_from: Timestamp | None) -> Returning:
    item = dropped.item
    return Returning(
        item_id=item.item_id,
        schema_id=item.schema_id,
        name=item.name,
        owner=item.owner,
        create_sql=item.create_sql,
        cluster_id=item.cluster_id,
        anew_from=anew_from,
    )
