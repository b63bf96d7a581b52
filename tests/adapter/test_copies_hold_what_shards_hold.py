"""Goal: rows that are found in a copy are those that the shard holds at the timestamp.

Method: a table and a view grow by random changes, with times at which nothing changes, merges and
moves of since in between; after each the copy is asked, and compared with all of the contents.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from functools import partial
from operator import itemgetter
from random import Random

import pytest

from evertide.adapter.short_way import copies as copies_module
from evertide.adapter.short_way.copies import Copies
from evertide.adapter.short_way.keyed_rows import MOST_OF_ONE_KEY, KeyedRows, Unkeepable
from evertide.adapter.short_way.recipe import Recipe
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import Storage
from evertide.dataflow.description import Import
from evertide.persist.handle import PersistClient
from evertide.persist.state import ShardChange, advance_since, existing
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Committed, TableWrite, Txns, register_table
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT8, TEXT
from evertide.vocab.timestamp import Timestamp

DESC = relation_desc(("a", INT8), ("b", TEXT), ("c", FLOAT8))
TABLE = Import(GlobalId("t"), ShardId("t"), DESC, is_table=True)
RECIPE = Recipe(Snapshot(), TABLE, (TABLE.shard_id, 3, (0,)), False, itemgetter(0), None, None)


class Table:
    """A table's shard, and a copy of it."""

    def __init__(self, client: PersistClient, txns: Txns) -> None:
        self.client = client
        self._txns = txns
        self.storage = Storage(client, txns)
        self.copies = Copies(self.storage)
        self.now = 1

    async def write(self, changes: list[tuple[Row, int]], steps: int = 1) -> None:
        """All at one time, some steps later; without changes only time passes."""
        self.now += steps
        writes = {TABLE.shard_id: TableWrite(DESC, changes)} if changes else {}
        outcome = await self._txns.commit(writes, at=Timestamp(self.now))
        assert isinstance(outcome, Committed)

    async def forget_history(self) -> None:
        """Since is now."""
        moved = existing(partial(advance_since, to=Timestamp(self.now)))
        await self.client.machine.apply_all([ShardChange(TABLE.shard_id, moved)])

    async def ask(self) -> KeyedRows | None:
        """As a round does it: looked at, brought forward if need be, looked at again."""
        as_of = Timestamp(self.now)
        state = (await self.storage.look([TABLE])).state(TABLE)
        found = self.copies.find(RECIPE, state, as_of)
        if found is None and await self.copies.forward(RECIPE, state, as_of):
            found = self.copies.at(RECIPE.copy_key, as_of)
        if found is not None:
            self.copies.note_used(RECIPE.copy_key, 1)
        return found

    async def ask_until_copied(self) -> KeyedRows:
        for _ in range(2 * copies_module.WORTH_IT):
            found = await self.ask()
            if found is not None:
                return found
            await asyncio.gather(*self.copies.under_way())
        raise AssertionError("no copy was made")

    async def held(self, key: Hashable) -> Counter[str]:
        contents = await self.storage.contents(TABLE, Timestamp(self.now))
        return counted([row for row, count in contents.rows for _ in range(count)], key)


def counted(rows: list[Row], key: Hashable) -> Counter[str]:
    """By their text, in which -0.0 is not 0.0."""
    return Counter(repr(row) for row in rows if row[0] == key)


@pytest.fixture
async def table() -> AsyncIterator[Table]:
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, MemoryBlob()) as client:
        txns = Txns(client, ShardId("txns"))
        await txns.ensure()
        await client.append_all([], also=[register_table(TABLE.shard_id)])
        yield Table(client, txns)


def random_row(rng: Random) -> Row:
    return (
        rng.choice([0, 1, 2, None]),
        rng.choice(["x", "y", None]),
        rng.choice([0.0, -0.0, 1.5, float("nan")]),
    )


def random_changes(rng: Random, live: list[Row]) -> list[tuple[Row, int]]:
    changes: list[tuple[Row, int]] = []
    for _ in range(rng.randrange(4)):
        if live and rng.random() < 0.5:
            changes.append((live.pop(rng.randrange(len(live))), -1))
        else:
            live.append(random_row(rng))
            changes.append((live[-1], 1))
    return changes


@pytest.mark.parametrize("seed", range(20))
async def test_what_is_found_is_what_is_there(table: Table, seed: int) -> None:
    rng = Random(seed)
    live: list[Row] = []
    for _ in range(40):
        await table.write(random_changes(rng, live), steps=rng.randint(1, 3))
        if rng.random() < 0.2:
            await table.forget_history()
        found = await table.ask_until_copied()
        for key in (0, 1, 2):
            assert counted(list(found.get(key) or ()), key) == await table.held(key)
        assert found.get(None) is None


async def test_a_copy_is_made_for_what_is_asked_for_again_and_again(table: Table) -> None:
    await table.write([((1, "x", 1.5), 1)])
    for _ in range(copies_module.WORTH_IT - 1):
        assert await table.ask() is None
    assert not table.copies.under_way()
    assert await table.ask() is None
    await asyncio.gather(*table.copies.under_way())
    assert await table.ask() is not None


async def test_a_copy_is_not_taken_for_an_earlier_time(table: Table) -> None:
    await table.write([((1, "x", 1.5), 1)])
    found = await table.ask_until_copied()
    await table.write([((1, "y", 1.5), 1)])
    state = (await table.storage.look([TABLE])).state(TABLE)
    earlier = Timestamp(table.now - 1)
    assert table.copies.find(RECIPE, state, Timestamp(table.now)) is None
    assert await table.copies.forward(RECIPE, state, Timestamp(table.now))
    assert len(found.get(1) or ()) == 2
    assert table.copies.find(RECIPE, state, earlier) is None
    assert table.copies.at(RECIPE.copy_key, earlier) is None


async def test_large_collections_are_not_copied(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies_module, "MOST_ROWS", 10)
    await table.write([((number, "x", 1.5), 1) for number in range(11)])
    with pytest.raises(AssertionError, match="no copy was made"):
        await table.ask_until_copied()


async def test_a_copy_that_costs_more_than_it_spares_is_given_up(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies_module, "MOST_CHANGES", 100)
    await table.write([((1, "x", 1.5), 1)])
    await table.ask_until_copied()
    for start in range(0, 1_000, 50):
        await table.write([((number, "x", 1.5), 1) for number in range(start, start + 50)])
        if await table.ask() is None:
            break
    else:
        raise AssertionError("50 changes were brought over for each question")
    assert not table.copies.under_way()


async def test_what_was_used_longest_ago_makes_room(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies_module, "MOST_COPIES", 2)
    await table.write([((1, "x", 1.5), 1)])
    as_of = Timestamp(table.now)
    state = (await table.storage.look([TABLE])).state(TABLE)
    recipes = [
        Recipe(Snapshot(), TABLE, (TABLE.shard_id, 3, key), False, itemgetter(*key), None, None)
        for key in ((0,), (1,), (0, 1))
    ]
    for recipe in recipes:
        for _ in range(copies_module.WORTH_IT):
            await table.copies.forward(recipe, state, as_of)
        await asyncio.gather(*table.copies.under_way())
        if recipe is recipes[1]:
            table.copies.note_used(recipes[0].copy_key, 1)
    found = [table.copies.find(recipe, state, as_of) is not None for recipe in recipes]
    assert found == [True, False, True]


def test_too_many_rows_of_one_key_are_not_kept() -> None:
    rows = KeyedRows(DESC.types, (0,), 1_000_000)
    rows.add([((1, "x", 1.5), MOST_OF_ONE_KEY)])
    with pytest.raises(Unkeepable):
        rows.add([((1, "y", 1.5), 1)])


def test_a_row_that_was_not_there_cannot_go() -> None:
    rows = KeyedRows(DESC.types, (0,), 1_000_000)
    rows.add([((1, "x", 0.0), 1)])
    with pytest.raises(Unkeepable):
        rows.add([((1, "x", -0.0), -1)])


async def test_what_weighs_too_much_is_not_kept(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory, however small it is in the store: there the values of these rows are one."""
    monkeypatch.setattr(copies_module, "MOST_BYTES", 1_000_000)
    await table.write([((n, "x" * 50_000, 1.5), 1) for n in range(30)])
    for _ in range(2 * copies_module.WORTH_IT):
        assert await table.ask() is None
        await asyncio.gather(*table.copies.under_way())


async def test_a_copy_that_grows_too_heavy_goes(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies_module, "MOST_BYTES", 1_000_000)
    await table.write([((1, "x", 1.5), 1)])
    await table.ask_until_copied()
    for number in range(4):
        await table.write([((n, "x" * 50_000, 1.5), 1) for n in range(number * 4, number * 4 + 4)])
        assert await table.ask() is not None
    await table.write([((n, "x" * 50_000, 1.5), 1) for n in range(20, 30)])
    assert await table.ask() is None


def test_what_goes_weighs_nothing_any_more() -> None:
    rows = KeyedRows(DESC.types, (0,), 1_000_000)
    rows.add([((1, "x" * 1_000, 1.5), 3), ((None, "y", 1.5), 1)])
    assert rows.size_bytes > 3_000
    rows.add([((1, "x" * 1_000, 1.5), -3), ((None, "y", 1.5), -1)])
    assert rows.size_bytes == 0
