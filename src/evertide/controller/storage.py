"""Collections over shards: what a table or a materialized view holds, and how far it is known."""

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

from evertide.catalog.objects import Item, MaterializedView, Table
from evertide.catalog.snapshot import Snapshot
from evertide.controller.columns import ColumnReads
from evertide.controller.stillness import Look, shards_below
from evertide.controller.strays import told_of_strays
from evertide.dataflow.description import Derived, Import
from evertide.persist.contents import Contents
from evertide.persist.handle import PersistClient
from evertide.persist.images import TableImages
from evertide.persist.leases import ReadHold
from evertide.persist.push.watch import Signal
from evertide.persist.spark_input import PartFiles, part_files
from evertide.persist.state import ShardState
from evertide.persist.txn import Txns
from evertide.vocab.errors import UndefinedTable
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import Timestamp, step_back
from evertide.vocab.update import Update


def collection_of(
    item: Item, snapshot: Snapshot, global_id: GlobalId | None = None
) -> Import | None:
    """The durable collection behind an item; None for views and indexes.

    By the columns of the version of this id, the last one if none is given.
    """
    if item.shard_id is None:
        return None
    if snapshot.items.get(item.item_id) is item:
        key = ("collection", item.item_id)
        found = snapshot.recall(key, lambda: _import(item, snapshot, {}))
    else:
        found = _import(item, snapshot, {})  # what is no longer, or not yet, so in the catalog
    if global_id in (None, found.global_id):
        return found
    version = item.version(global_id)
    return replace(found, global_id=version.global_id, desc=version.desc)


def _import(item: Item, snapshot: Snapshot, made: dict[GlobalId, Import]) -> Import:
    """Made once for each item, however many views share it."""
    assert item.shard_id is not None, "only stored items are imported"
    if item.global_id not in made:
        is_table = isinstance(item.definition, Table)
        derived = _derived(item.outgoing or item, snapshot, made)
        made[item.global_id] = Import(item.global_id, item.shard_id, item.desc, is_table, derived)
    return made[item.global_id]


def _derived(item: Item, snapshot: Snapshot, made: dict[GlobalId, Import]) -> Derived | None:
    """How a view follows from others under the version that has its shard.

    That is the old one while it is handing over. Once the new one has taken the shard nothing
    follows from what the old one read, until the catalog says so too.
    """
    if not isinstance(item.definition, MaterializedView):
        return None
    inputs = tuple(_import(i, snapshot, made) for i in snapshot.stored_inputs(item.reads))
    refresh = item.refresh
    # What is known of its inputs says nothing of a view that looks at them now and then.
    by_time = refresh is not None or may_look_at_time(item, snapshot)
    return Derived(inputs, item.definition.as_of, item.global_id, by_time, refresh)


def may_look_at_time(item: Item, snapshot: Snapshot) -> bool:
    """Whether a view's definition names the time itself, or that of a view it looks through.

    By its text, because this is asked for every read; a word too many costs its readers a moment.
    """
    waiting = [item]
    while waiting:
        one = waiting.pop()
        if "mz_now" in one.create_sql.lower():
            return True
        below = (snapshot.items.get(item_id) for item_id in one.reads)
        waiting += [view for view in below if view is not None and view.shard_id is None]
    return False


class CollectionDropped(UndefinedTable):
    """It was dropped, so what somebody waits for will never be known of it."""

    def __init__(self, global_id: GlobalId, name: str | None = None) -> None:
        called = name or str(global_id)
        super().__init__(f"query could not complete because relation {called} was dropped")
        self._global_id = global_id

    def named(self, snapshot: Snapshot) -> "CollectionDropped":
        """The same, by the name under which it was read."""
        item = snapshot.item_of(self._global_id)
        name = None if item is None else snapshot.qualified_name(item)
        return CollectionDropped(self._global_id, name)


class Following:
    """What it takes to be told of changes, and to read many of them in parts."""

    def __init__(self, persist: PersistClient, txns_shard: ShardId) -> None:
        self._persist = persist
        self._txns_shard = txns_shard

    @contextmanager
    def watching(self, *collections: Import) -> Iterator[Signal]:
        """A signal that is set when more may be known of one of these collections."""
        below = dict.fromkeys(s for c in collections for s in shards_below(c))
        with self._persist.watch.on((self._txns_shard, *below)) as signal:
            yield signal

    async def stored_upper(self, collection: Import) -> Timestamp:
        """How far its own shard is, which may be less than is known of it."""
        return (await self._persist.state(collection.shard_id)).upper

    async def states(self, shard_ids: Collection[ShardId]) -> dict[ShardId, ShardState]:
        """What shards say of themselves, all at one moment."""
        return await self._persist.machine.states(shard_ids)

    async def written_by(self, collection: Import, writer: GlobalId) -> Timestamp | None:
        """How far its shard is, once the version of this id has it for itself; None: not yet."""
        state = await self._persist.state(collection.shard_id)
        taken = state.writer == writer and state.pending is None
        return state.upper if taken else None

    async def noted_upper(self, collection: Import) -> Timestamp:
        """How far its own shard was when this process last looked: at least so far it is."""
        return (await self._noted(collection)).upper

    async def has_records(self, collection: Import, least: int) -> bool:
        """Whether a read must look at so many updates, going by the state that is known by now.

        For whoever has just looked at the shard: what is newer makes no odds.
        """
        found = 0
        for batch in (await self._noted(collection)).batches:
            found += batch.rows
            if found >= least:
                return True
        return found >= least

    async def is_unfilled(self, collection: Import) -> bool:
        """Whether nothing was ever appended to its shard: a view that is still being built."""
        if collection.is_table:
            return False
        state = await self._noted(collection)
        return not state.batches and state.upper <= state.since

    async def _noted(self, collection: Import) -> ShardState:
        """What its shard said when this process last looked."""
        known = self._persist.machine.known_state(collection.shard_id)
        return known or await self._persist.state(collection.shard_id)

    async def stretch(
        self, collection: Import, lower: Timestamp, upper: Timestamp, rows: int
    ) -> Timestamp:
        """A timestamp beyond `lower`, at most `upper`: so far there are about so many updates.

        As fine as the shard's batches are.
        """
        state = await self._persist.state(collection.shard_id)
        found = 0
        for batch in state.batches:
            if batch.upper <= lower:
                continue
            found += batch.rows
            if found >= rows:
                return min(upper, batch.upper)
        return upper


class Storage:
    """Reads collections. A table's upper is that of all tables, so tables ask txns for it."""

    def __init__(self, persist: PersistClient, txns: Txns) -> None:
        self._persist = persist
        self._txns = txns
        self.following = Following(persist, txns.shard_id)
        self.blob = persist.blob  # for what is kept beside collections
        self.images = TableImages(persist, txns)
        self.columns = ColumnReads(persist, txns, self.images)

    async def since(self, collection: Import) -> Timestamp:
        """The earliest timestamp at which its contents are exact."""
        return (await self._persist.state(collection.shard_id)).since

    async def sinces(self, collections: Sequence[Import]) -> list[Timestamp]:
        """The sinces of several collections."""
        if not collections:
            return []
        states = await self._persist.machine.states([c.shard_id for c in collections])
        return [states[collection.shard_id].since for collection in collections]

    async def upper(self, collection: Import) -> Timestamp:
        """The first timestamp not yet complete."""
        if collection.is_table:
            return await self._txns.upper()
        return (await self.look([collection])).upper(collection)

    async def look(self, collections: Sequence[Import]) -> Look:
        """How far these collections are, all at one moment."""
        txns = self._txns.shard_id
        below = dict.fromkeys(s for c in collections for s in shards_below(c))
        states = await self._persist.machine.states([txns, *below])
        return Look(states, states[txns].upper)

    async def hold(self, collections: Sequence[Import], as_of: Timestamp) -> ReadHold:
        """Keeps them readable at the timestamp until released; raises BelowSince."""
        return await self._persist.leases.hold((c.shard_id for c in collections), as_of)

    async def records(self, collection: Import) -> int:
        """About how many updates a read must look at: what chooses between executors."""
        state = await self._persist.state(collection.shard_id)
        return sum(batch.rows for batch in state.batches)

    async def decoded_bytes(self, collection: Import) -> int:
        """About how much memory all its updates take as columns."""
        state = await self._persist.state(collection.shard_id)
        return sum(batch.decoded_bytes for batch in state.batches)

    async def wait_for_upper(self, collection: Import, beyond: Timestamp) -> Timestamp:
        """Return the upper once it is beyond the timestamp, or raise CollectionDropped."""
        if collection.is_table:
            return await self._txns.wait_for_upper(beyond)
        upper = (await self._persist.state(collection.shard_id)).upper
        if upper <= beyond:
            upper = await self.upper(collection)
        if upper > beyond:
            return upper
        watched = (self._txns.shard_id, *shards_below(collection))
        return await self._persist.watch.until(
            watched, lambda: self._upper_to_come(collection, beyond), lambda upper: upper > beyond
        )

    async def _upper_to_come(self, collection: Import, beyond: Timestamp) -> Timestamp:
        """How far it is by now; nobody appends to what was dropped."""
        look = await self.look([collection])
        upper = look.upper(collection)
        if upper <= beyond and look.state(collection).forgotten:
            raise CollectionDropped(collection.global_id)
        return upper

    async def contents(self, collection: Import, as_of: Timestamp) -> Contents:
        """What it holds at the timestamp; waits until that is known."""
        await self.wait_for_upper(collection, as_of)
        reader, shard_id = self._persist.reader, collection.shard_id
        if collection.is_table:
            return told_of_strays(await reader.contents(shard_id, collection.desc, as_of), shard_id)
        # From the shard's upper on it stands still, so what it holds there is what it held before.
        last = step_back((await self._persist.state(shard_id)).upper)
        found = await reader.contents(shard_id, collection.desc, min(as_of, last))
        return told_of_strays(found, shard_id).at(as_of)

    async def updates(self, collection: Import, lower: Timestamp, upper: Timestamp) -> list[Update]:
        """What changed at timestamps from lower up to but not including upper."""
        await self.wait_for_upper(collection, step_back(upper))
        shard_id, desc = collection.shard_id, collection.desc
        return await self._persist.reader.updates(shard_id, desc, lower, upper)

    @asynccontextmanager
    async def part_files(self, collection: Import, as_of: Timestamp) -> AsyncIterator[PartFiles]:
        """The same contents as files that Spark reads, within the context."""
        await self.wait_for_upper(collection, as_of)
        shard_id, desc = collection.shard_id, collection.desc
        async with part_files(self._persist, shard_id, desc, as_of) as files:
            yield files
