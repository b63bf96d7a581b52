"""Items that were dropped and can still be brought back."""

from typing import ClassVar

import msgspec

from evertide.catalog.kinds.items import Item, ItemKind
from evertide.catalog.kinds.kind import ObjectKind
from evertide.catalog.kinds.replacements import NamedInput
from evertide.vocab.ids import ItemId, RoleId


class KeptComment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A comment that was on the item, or on one of its columns."""

    sub_id: int | None  # a column's number, from 1; None: the item itself
    comment: str


class DroppedItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An item as it was when it was dropped.

    What it refers to may go or be renamed while it is kept: nothing is kept for its sake but its
    own rows. So beside ids it holds the names of then, in which its text is written.
    """

    KIND: ClassVar[ObjectKind] = ObjectKind.DROPPED_ITEM
    KEY: ClassVar[tuple[str, ...]] = ("item_id",)

    item_id: ItemId
    item: Item
    place: tuple[str, str]  # the names of its database and its schema
    cluster: str | None  # the name of the cluster that worked for it; None: none did
    names: tuple[NamedInput, ...] = ()  # of what it depended on
    comments: tuple[KeptComment, ...] = ()
    dropped_at_ms: int
    drop_id: int  # the same for all that one statement dropped; later drops have higher ones
    dropped_with: ItemId | None = None  # what the drop was about; None: this one

    @property
    def name(self) -> str:
        """What it was called."""
        return self.item.name

    @property
    def owner(self) -> RoleId:
        """Whose it was."""
        return self.item.owner

    @property
    def kind(self) -> ItemKind:
        """What it was."""
        return self.item.kind
