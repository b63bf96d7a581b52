"""What reading takes: on each relation that is named, and on all that is read through it.

A view is read with its owner's rights over what its definition reads. One that has had others keeps
the rows that those made for as long as history is kept. Whoever looks back to them needs the rights
that they took, or a view could be given a harmless definition to show what it never might.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.objects import Item, ItemKind, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.plans import (
    CopyToPlan,
    DataPlan,
    DeclarePlan,
    InsertPlan,
    SelectPlan,
    SubscribePlan,
)
from evertide.sql.plan.roles.rights import Privilege
from evertide.vocab.errors import InsufficientPrivilege
from evertide.vocab.ids import ItemId, RoleId

# Superusers may read these; a mask stands in them for what they are about.
SECRET_RELATIONS: Final = ("pg_authid", "pg_shadow")
# What reading goes on behind, with the rights of whoever owns the relation.
_READ_THROUGH: Final = (ItemKind.VIEW, ItemKind.MATERIALIZED_VIEW)


def relations(
    item_ids: Iterable[ItemId], snapshot: Snapshot, *, back: bool = False
) -> Iterator[Privilege]:
    """What whoever runs a statement needs to read these, and owners of views behind them.

    `back`: at a time at which views may have had earlier definitions.
    """
    return _Reading(snapshot, back).of(item_ids, None)


def on_item(
    item_id: ItemId, letters: str, snapshot: Snapshot, role_id: RoleId | None = None
) -> Iterator[Privilege]:
    """Letters on an item, and the use of the schema that it is in."""
    yield Privilege(("schema", snapshot.items[item_id].schema_id), "U", role_id)
    yield Privilege(("item", item_id), letters, role_id)


def looks_back(plan: DataPlan) -> bool:
    """Whether it names a time to read at."""
    match plan:
        case SelectPlan(as_of=as_of) | SubscribePlan(as_of=as_of):
            return as_of is not None
        case CopyToPlan(source=inner) | DeclarePlan(source=inner) | InsertPlan(source=inner):
            return isinstance(inner, SelectPlan | SubscribePlan) and looks_back(inner)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Reading:
    snapshot: Snapshot
    back: bool
    seen: set[tuple[ItemId, RoleId | None]] = field(default_factory=set)

    def of(self, item_ids: Iterable[ItemId], role_id: RoleId | None) -> Iterator[Privilege]:
        for item_id in item_ids:
            item = self.snapshot.items.get(item_id)
            if item is None:
                self._refuse_secret(item_id, role_id)
            if item is None or (item_id, role_id) in self.seen:
                continue
            self.seen.add((item_id, role_id))
            letters = "U" if item.kind is ItemKind.TYPE else "r"
            yield from on_item(item_id, letters, self.snapshot, role_id)
            if item.kind in _READ_THROUGH:
                yield from self.of(self._behind(item), item.owner)

    def _behind(self, item: Item) -> Iterator[ItemId]:
        """What its rows come from. While it is handing over they may be those of before."""
        yield from item.reads
        if not isinstance(item.definition, MaterializedView):
            return
        if item.definition.handing_over:
            yield from item.depends_on
        if self.back:
            for past in item.definition.past:
                self._refuse_gone(item, past.depends_on)
                yield from past.depends_on

    def _refuse_secret(self, item_id: ItemId, role_id: RoleId | None) -> None:
        """Of the system's relations everyone reads all but those that tell of passwords."""
        builtin = builtin_of(item_id)
        if builtin is None or builtin.name not in SECRET_RELATIONS:
            return
        if role_id is None or not self.snapshot.roles[role_id].superuser:
            raise InsufficientPrivilege(f"permission denied for table {builtin.name}")

    def _refuse_gone(self, item: Item, read: Iterable[ItemId]) -> None:
        """Nobody can tell any more who might read what was dropped, so only superusers may."""
        gone = [one for one in read if one.startswith("u") and one not in self.snapshot.items]
        if gone and not self.snapshot.roles[item.owner].superuser:
            raise InsufficientPrivilege(
                f'permission denied for the history of materialized view "{item.name}"',
                detail="An earlier definition of it read what has been dropped since.",
                hint="Read it at the current time, without AS OF.",
            )
