"""Changes of materialized views that are staged, applied and handed over; part of ops.py's unions.

A replacement is staged by a CreateItemOp and discarded by a DropItemsOp, as other views are.
"""

from dataclasses import dataclass
from typing import TypeAlias

from evertide.vocab.ids import GlobalId, ItemId


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyReplacementOp:
    """The view gets the replacement's version and definition; the replacement goes.

    `create_sql` is that definition under the view's name. The old version still runs and the view
    still depends on what that reads, until a FinishHandoverOp.
    """

    item_id: ItemId
    replacement_id: ItemId
    create_sql: str
    dependants_sql: tuple[tuple[ItemId, str], ...] = ()
    forward_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishHandoverOp:
    """The version of this id writes the view's shard, so the one before it need not run.

    Nothing happens if the view is not handing over to it: somebody else was first.
    """

    item_id: ItemId
    global_id: GlobalId


@dataclass(frozen=True, slots=True, kw_only=True)
class SetApplyWhenReadyOp:
    """The replacement is to be applied by itself, once that is possible."""

    replacement_id: ItemId
    forward_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteHydratedOp:
    """The replacement has caught up for the first time; nothing happens if that is known."""

    replacement_id: ItemId


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUpApplyOp:
    """The replacement is not applied by itself after all, and stays staged.

    Nothing happens if it is gone, or was not to be.
    """

    replacement_id: ItemId
    reason: str


ReplacementOp: TypeAlias = (
    ApplyReplacementOp | FinishHandoverOp | SetApplyWhenReadyOp | NoteHydratedOp | GiveUpApplyOp
)
