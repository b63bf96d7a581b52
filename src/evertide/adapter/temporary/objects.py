"""A session's temporary objects, put over the catalog's."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from evertide.adapter.temporary.naming import KnownNames, names_now, with_names
from evertide.adapter.temporary.tables import HeldTable, Space
from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.objects import CatalogObject, CatalogUpdate, Item, Table, object_key
from evertide.catalog.objects import ObjectKey as Key
from evertide.catalog.snapshot import Snapshot
from evertide.expr.interpret import Collection
from evertide.persist.prepare import THREAD_ROWS
from evertide.persist.txn import TableWrite
from evertide.sql.syntax.definition import OnCommit
from evertide.vocab.ids import ItemId, ShardId

# Of all sessions: what one of them planned must never be taken for another's.
_OVERLAYS: Final = count(1)


def marked(snapshot: Snapshot) -> Snapshot:
    """The snapshot, not to be taken for any other that plans were made with."""
    return snapshot.over((), next(_OVERLAYS))


@dataclass(frozen=True, slots=True)
class Held:
    """All there is at one moment; never changed, only put in the place of another."""

    objects: Mapping[Key, CatalogObject] = field(default_factory=dict)
    tables: Mapping[ShardId, HeldTable] = field(default_factory=dict)
    names: KnownNames = field(default_factory=dict)

    @property
    def items(self) -> list[Item]:
        return [found for found in self.objects.values() if isinstance(found, Item)]

    @property
    def weight(self) -> int:
        return sum(table.weight for table in self.tables.values())


class Temporary:
    """One session's. Whatever it does to them in a block is undone if that is rolled back."""

    def __init__(self, space: Space | None = None) -> None:
        self._space = Space() if space is None else space
        self._held = Held()
        self._overlay = 0
        # What it was put over last, and the result.
        self._seen: tuple[Snapshot, Snapshot] | None = None
        self._at_begin: Held | None = None

    def over(self, snapshot: Snapshot) -> Snapshot:
        """The catalog as this session sees it."""
        if not self._held.objects or snapshot.overlay:
            return snapshot
        if self._seen is None or self._seen[0].upper != snapshot.upper:
            self._put(_settled(self._held, snapshot))
            updates = [CatalogUpdate(found, 1) for found in self._held.objects.values()]
            self._seen = (snapshot, snapshot.over(updates, self._overlay))
        return self._seen[1]

    def apply(
        self, updates: Sequence[CatalogUpdate], after: Snapshot, ending: OnCommit | None = None
    ) -> None:
        """Its objects changed so, by a statement that left this snapshot behind.

        `ending`: what becomes of new tables when a transaction ends.
        """
        objects = dict(self._held.objects)
        for update in sorted(updates, key=lambda update: update.diff):
            if update.diff < 0:
                del objects[object_key(update.object)]
            else:
                objects[object_key(update.object)] = update.object
        held = _with_tables(replace(self._held, objects=objects), ending)
        self._put(replace(held, names=names_now(held.items, after)))

    def rows(self, shard_id: ShardId) -> Collection:
        """What a table of it holds."""
        return Collection(self._held.tables[shard_id].rows, [])

    async def written(self, writes: Mapping[ShardId, TableWrite]) -> Held:
        """What there is once these tables are written to, if there is room for it.

        Those that are gone by now are passed over: nobody can look at them. On a thread where it
        takes time: others wait for the loop.
        """
        before = self._held
        known = {s: (before.tables[s], write) for s, write in writes.items() if s in before.tables}

        def after() -> dict[ShardId, HeldTable]:
            return {s: table.after(write) for s, (table, write) in known.items()}

        short = sum(table.looked_at(write) for table, write in known.values()) <= THREAD_ROWS
        tables = after() if short else await asyncio.to_thread(after)
        held = replace(before, tables={**before.tables, **tables})
        self._space.check(before.weight, held.weight)
        return held

    def take(self, held: Held) -> None:
        """What was written is there from now on."""
        self._replace(held)

    def begin(self) -> None:
        """Remember what there is, in case the transaction is rolled back."""
        if self._at_begin is None:
            self._at_begin = self._held

    def end_transaction(self) -> None:
        """What was made to last no longer than a transaction goes."""
        self._at_begin = None
        tables = self._held.tables.items()
        ending = {s: table.on_commit for s, table in tables if table.on_commit is not None}
        if any(self._held.tables[s].runs or how is OnCommit.DROP for s, how in ending.items()):
            self._put(_ended(self._held, ending))

    @property
    def held(self) -> Held:
        """All that there is, to come back to."""
        return self._held

    def roll_back(self, held: Held | None = None) -> None:
        """As all was then; None: when the transaction began."""
        before = self._at_begin if held is None else held
        if before is not None and before is not self._held:
            self._put(before)

    def clear(self) -> None:
        """All of it goes."""
        self._put(Held())

    def _put(self, held: Held) -> None:
        """Other objects than before: plans that were made with those are not for these."""
        if held is not self._held:
            self._overlay = next(_OVERLAYS)
            self._seen = None
            self._replace(held)

    def _replace(self, held: Held) -> None:
        self._space.change(self._held.weight, held.weight)
        self._held = held


def _settled(held: Held, snapshot: Snapshot) -> Held:
    """What is left over this snapshot, which others may have changed.

    What depended on something that they dropped is gone with it, and what they renamed has its new
    name in the texts of views; a view that would mean something else by that is gone, too.
    """
    items = held.items
    names = {**held.names, **names_now(items, snapshot)}
    texts = {item.item_id: with_names(item, held.names, names) for item in items}
    gone: set[str] = {item_id for item_id, after in texts.items() if after is None}
    while True:
        known = {item.item_id for item in items} - gone
        lost = [i for i in items if i.item_id not in gone and not _stands(i, known, snapshot)]
        if not lost:
            break
        gone.update(item.item_id for item in lost)
    left = [item for item in items if item.item_id not in gone]
    own = {item_id: name for item_id, name in held.names.items() if item_id in known}
    names = {**own, **names_now(left, snapshot)}
    renamed = [after for item in left if (after := texts[item.item_id]) is not None]
    if not gone and all(one is other for one, other in zip(renamed, left, strict=True)):
        return held if names == held.names else replace(held, names=names)
    changed = {object_key(item): item for item in renamed}
    objects = {
        key: changed.get(key, found)
        for key, found in held.objects.items()
        if gone.isdisjoint(map(str, key))  # comments have what they are on in theirs
    }
    return _with_tables(Held(objects, held.tables, names))


def _stands(item: Item, own: set[ItemId], snapshot: Snapshot) -> bool:
    """Whether all that it refers to is still there."""
    if item.owner not in snapshot.roles:
        return False
    return all(
        read in own or read in snapshot.items or builtin_of(read) is not None
        for read in item.depends_on
    )


def _with_tables(held: Held, ending: OnCommit | None = None) -> Held:
    """With rows for just the tables that there are; `ending` is that of new ones."""
    found: dict[ShardId, HeldTable] = {}
    for item in held.items:
        if isinstance(item.definition, Table):
            shard_id = item.definition.shard_id
            known = held.tables.get(shard_id)
            found[shard_id] = known or HeldTable(item.desc, on_commit=ending)
    return replace(held, tables=found)


def _ended(held: Held, ending: Mapping[ShardId, OnCommit]) -> Held:
    """After a transaction: tables dropped or emptied. What depends on them goes when looked at."""
    dropped = {
        str(item.item_id)
        for item in held.items
        if isinstance(item.definition, Table)
        and ending.get(item.definition.shard_id) is OnCommit.DROP
    }
    objects = {k: found for k, found in held.objects.items() if dropped.isdisjoint(map(str, k))}
    tables = {s: t.emptied() if s in ending else t for s, t in held.tables.items()}
    return _with_tables(replace(held, objects=objects, tables=tables))
