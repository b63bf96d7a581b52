"""What cannot come back after all stays dropped, and with it what depends on it."""

from collections.abc import Mapping, Sequence

from evertide.catalog.dropped_ops import Returning
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.undrop.group import below_is_dropped, staying
from evertide.vocab.errors import Notice, SqlError
from evertide.vocab.ids import ItemId


def leave_out(
    items: Sequence[Returning], refused: Mapping[ItemId, SqlError], snapshot: Snapshot
) -> tuple[tuple[Returning, ...], tuple[Notice, ...]]:
    """The items, inputs before users, that come back all the same; and of the others, why not."""
    coming: list[Returning] = []
    notices: list[Notice] = []
    left: set[ItemId] = set()
    for one in items:
        dropped = snapshot.dropped_items[one.item_id]
        below = next((item_id for item_id in dropped.item.reads if item_id in left), None)
        reason = refused.get(one.item_id)
        if reason is None and below is not None:
            reason = below_is_dropped(dropped, snapshot.dropped_items[below])
        if reason is None:
            coming.append(one)
        else:
            left.add(one.item_id)
            notices.append(Notice("NOTICE", "00000", staying(dropped, reason), hint=reason.hint))
    return tuple(coming), tuple(notices)
