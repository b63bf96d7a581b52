"""Goal: a table's image holds exactly the table's rows, and finds them by their values.

Method: random writes to a table with columns of many types, duplicates among them, and merges of
its history in between. After some of the writes the image is asked for, and compared with the rows
that a read gives; images that were handed out earlier must not change.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from evertide.persist import image as image_module
from evertide.persist import images as images_module
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.coding.parts import table_to_columns
from evertide.persist.handle import PersistClient
from evertide.persist.image import Places, TableImage
from evertide.persist.images import TableImages
from evertide.persist.snapshot import table_snapshot_table
from evertide.persist.state import Batch
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Committed, TableWrite, Txns, diffs_at, register_table
from evertide.persist.upkeep.compaction import compact_shard
from evertide.vocab.datum import Interval, Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import DATE, FLOAT8, INT4, INT8, INTERVAL, TEXT, array_of
from evertide.vocab.timestamp import Timestamp

TABLE, TXNS = ShardId("table"), ShardId("txns")
DESC = relation_desc(
    ("id", INT8), ("small", INT4), ("day", DATE), ("name", TEXT), ("real", FLOAT8),
    ("span", INTERVAL), ("many", array_of(INT4)),
)  # fmt: skip


def new_row(rng: Random, *, telling: bool) -> Row:
    """One of many, which its first column tells apart, or one of a few that come again."""
    if not telling:
        rng = Random(rng.randrange(8))
    number = rng.randrange(1_000_000) if telling else rng.randrange(3)
    return (
        number,
        rng.choice([None, 1, 2]),
        rng.randrange(-5, 5),
        rng.choice([None, "", "a", "é"]),
        rng.choice([0.0, -0.0, float("nan"), 1.5, None]),
        rng.choice([None, Interval(1, 0, 0), Interval(0, 30, 0)]),
        rng.choice([None, (), (1, None)]),
    )


def counted(image: TableImage, places: Places) -> Counter[str]:
    table, counts = image.take(places)
    assert (counts > 0).all()
    diffs = diffs_at(DESC, table.append_column("d", pa.array(counts)), Timestamp(0))
    columns = table_to_columns(DESC, diffs)
    found: Counter[str] = Counter()
    for row, count in zip(columns.rows, columns.diffs, strict=True):
        found[repr(row)] += count
    return found


def summed(diffs: Sequence[tuple[Row, int]]) -> list[tuple[Row, int]]:
    """Rows that come or go several times as one diff each."""
    rows = {repr(row): row for row, _ in diffs}
    sums: Counter[tuple[str, bool]] = Counter()
    for row, diff in diffs:
        sums[repr(row), diff > 0] += diff
    return [(rows[key], diff) for (key, _), diff in sums.items()]


class Site:
    """One table, its writer, and what it must hold."""

    def __init__(self, client: PersistClient, rng: Random, *, telling: bool) -> None:
        self.client = client
        self.txns = Txns(client, TXNS)
        self.rng = rng
        self.telling = telling
        self.rows: list[Row] = []
        self.now = 1

    async def write(self) -> None:
        added = [new_row(self.rng, telling=self.telling) for _ in range(self.rng.randrange(30))]
        added += self.rng.sample(added, min(2, len(added)))  # some are there twice
        gone = [
            self.rows.pop(self.rng.randrange(len(self.rows))) for _ in range(len(self.rows) // 3)
        ]
        self.rows += added
        diffs = [(row, -1) for row in gone] + [(row, 1) for row in added]
        if self.rng.random() < 0.5:
            diffs = summed(diffs)
        self.now += self.rng.choice([1, 2, 70_000])
        outcome = await self.txns.commit({TABLE: TableWrite(DESC, diffs)}, at=Timestamp(self.now))
        assert isinstance(outcome, Committed)

    async def merge(self) -> None:
        """Some of the table's batches become one, wherever an image may have ended."""

        def choose(batches: Sequence[Batch]) -> tuple[Batch, ...]:
            start = self.rng.randrange(len(batches))
            return tuple(batches[start : start + self.rng.randrange(2, 5)])

        await compact_shard(
            self.client.machine, self.client.blob, TABLE, DESC, self.now, choose=choose
        )


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of few rows are treated as those of many are."""
    monkeypatch.setattr(image_module, "_COPIED_ROWS", 4)
    monkeypatch.setattr(image_module, "_NOTED_SHARE", 2)
    monkeypatch.setattr(image_module, "_SMALL_ROWS", 8)


@pytest.mark.parametrize("telling", [True, False])
@pytest.mark.parametrize("seed", range(8))
async def test_an_image_is_what_a_read_gives(seed: int, telling: bool) -> None:
    await check_images(seed, telling=telling)


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("telling", [True, False])
@pytest.mark.parametrize("seed", range(8, 16))
async def test_rows_that_went_are_noted_beside_long_runs(seed: int, telling: bool) -> None:
    await check_images(seed, telling=telling)


async def check_images(seed: int, *, telling: bool) -> None:
    rng = Random(seed)
    store = MemoryStore()
    epoch = await store.raise_epoch()
    async with PersistClient(store.consensus(epoch), MemoryBlob()) as client:
        site = Site(client, rng, telling=telling)
        await site.txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        images = TableImages(client, site.txns)
        earlier: list[tuple[TableImage, Counter[str]]] = []
        for _ in range(25):
            await site.write()
            if rng.random() < 0.3:
                await site.merge()
            if rng.random() < 0.6:
                image = await images.at(TABLE, DESC, Timestamp(site.now))
                assert image is not None
                expected = Counter(map(repr, site.rows))
                assert counted(image, image.all_places()) == expected
                check_find(image, site.rows, rng)
                earlier.append((image, expected))
        for image, expected in earlier:
            assert counted(image, image.all_places()) == expected


def check_find(image: TableImage, rows: Sequence[Row], rng: Random) -> None:
    for column in (0, 1, 2):
        values = sorted({v for v in (row[column] for row in rows) if isinstance(v, int)})
        wanted = [value for value in values if rng.random() < 0.5] + [7_777_777]
        found = counted(image, image.find(column, np.unique(np.array(wanted, np.int64))))
        assert found == Counter(repr(row) for row in rows if row[column] in wanted)
        without = image.without(image.find(column, np.unique(np.array(wanted, np.int64))))
        left = Counter(repr(row) for row in rows if row[column] not in wanted)
        assert counted(without, without.all_places()) == left


async def test_an_image_is_brought_forward_not_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: time that passes, and history that is merged, do not cost a whole read."""
    store = MemoryStore()
    epoch = await store.raise_epoch()
    loads: list[Timestamp] = []

    async def counting(*arguments: object) -> pa.Table:
        loads.append(Timestamp(0))
        return await table_snapshot_table(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(images_module, "table_snapshot_table", counting)
    async with PersistClient(store.consensus(epoch), MemoryBlob()) as client:
        site = Site(client, Random(1), telling=True)
        await site.txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        images = TableImages(client, site.txns)
        await site.write()
        for _ in range(10):
            await images.at(TABLE, DESC, Timestamp(site.now))
            site.now += 100_000  # nothing is written to this table, but time passes
            await site.txns.commit({}, at=Timestamp(site.now))
            await site.write()
        assert len(loads) == 1


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("seed", range(6))
async def test_what_a_transaction_saw_is_kept_with_what_it_added_last(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: an image that a commit leaves behind is the table, and is not read from it again."""
    # Nobody else brings it forward, however long a step takes.
    monkeypatch.setattr(images_module, "_ASKED_S", 0.0)
    rng = Random(seed)
    store = MemoryStore()
    async with PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob()) as client:
        site = Site(client, rng, telling=True)
        await site.txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        for _ in range(3):
            await site.write()
        images = TableImages(client, site.txns)
        image = await images.at(TABLE, DESC, Timestamp(site.now))
        reads = counting_reads(client, monkeypatch)
        for _ in range(12):
            assert image is not None
            gone = rng.sample(site.rows, len(site.rows) // 4)
            ids = np.unique(np.array([row[0] for row in gone], np.int64))
            gone = [row for row in site.rows if row[0] in ids]
            site.rows = [row for row in site.rows if row[0] not in ids]
            added = [new_row(rng, telling=True) for _ in range(rng.randrange(12))]
            site.rows += added
            writes = [TableWrite(DESC, [(row, 1)]) for row in added]
            site.now += 5
            diffs = [(row, -1) for row in gone] + [(row, 1) for row in added]
            at = Timestamp(site.now)
            await site.txns.commit({TABLE: TableWrite(DESC, diffs)}, at=at)
            places = image.find(0, ids)
            if rng.random() < 0.5:
                images.committed(TABLE, DESC, image.without(places), at, writes)
            else:
                images.committed(TABLE, DESC, image, at, writes, gone=places)
            image = await images.at(TABLE, DESC, at)
            assert image is not None
            assert counted(image, image.all_places()) == Counter(map(repr, site.rows))
            check_find(image, site.rows, rng)
        assert reads == []


def counting_reads(client: PersistClient, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by how many batches each read of updates, or of a whole shard, asks for."""
    reads: list[int] = []
    updates_of = client.reader.updates_of

    async def counting(
        shard_id: ShardId, desc: RelationDesc, batches: Sequence[Batch], upper: Timestamp
    ) -> UpdateBatch | None:
        if batches:
            reads.append(len(batches))
        return await updates_of(shard_id, desc, batches, upper)

    async def counting_whole(*arguments: object) -> pa.Table:
        reads.append(0)
        return await table_snapshot_table(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(client.reader, "updates_of", counting)
    monkeypatch.setattr(images_module, "table_snapshot_table", counting_whole)
    return reads


async def test_an_earlier_time_is_served_while_the_table_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: a transaction that began before the image's time does not cost a whole read."""
    store = MemoryStore()
    async with PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob()) as client:
        site = Site(client, Random(3), telling=True)
        await site.txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        await site.write()
        images = TableImages(client, site.txns)
        written, before = Timestamp(site.now), Counter(map(repr, site.rows))
        await site.txns.commit({}, at=Timestamp(site.now + 50))
        await images.at(TABLE, DESC, Timestamp(site.now + 50))
        reads = counting_reads(client, monkeypatch)
        image = await images.at(TABLE, DESC, written)
        assert image is not None
        assert image.as_of == written
        assert counted(image, image.all_places()) == before
        assert reads == []
        site.now += 60
        while Counter(map(repr, site.rows)) == before:
            await site.write()
        await images.at(TABLE, DESC, Timestamp(site.now))
        image = await images.at(TABLE, DESC, written)
        assert image is not None
        assert counted(image, image.all_places()) == before
        assert 0 in reads


async def test_an_image_that_is_asked_for_is_kept_up_to_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Goal: rows that this process wrote are in the image soon, without anybody asking; but not
    where nobody has looked for rows lately."""
    store = MemoryStore()
    async with PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob()) as client:
        site = Site(client, Random(4), telling=True)
        await site.txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        await site.write()
        images = TableImages(client, site.txns)
        first = await images.at(TABLE, DESC, Timestamp(site.now))
        assert first is not None
        first.find(0, np.array([1, 2]))
        first.read(first.all_places(), DESC.types)
        reads = counting_reads(client, monkeypatch)
        while not reads:
            await site.write()
            images.committed(TABLE, DESC, None, Timestamp(site.now))
            await asyncio.gather(*images.under_way())
        reads.clear()
        image = await images.at(TABLE, DESC, Timestamp(site.now))
        assert image is not None
        assert image.runs != first.runs
        assert all(0 in run.orders and run.readers for run in image.runs), "it is ready to be used"
        monkeypatch.setattr(images_module, "_ASKED_S", 0.0)
        await site.write()
        images.committed(TABLE, DESC, None, Timestamp(site.now))
        assert images.under_way() == []


async def test_a_table_too_large_has_no_image() -> None:
    store = MemoryStore()
    epoch = await store.raise_epoch()
    async with PersistClient(store.consensus(epoch), MemoryBlob()) as client:
        site = Site(client, Random(1), telling=True)
        await site.txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        for _ in range(5):
            await site.write()
        small = TableImages(client, site.txns, limit_bytes=1_000)
        assert await small.at(TABLE, DESC, Timestamp(site.now)) is None
        assert not small.kept(TABLE, DESC)


def test_many_rows_that_look_alike_are_not_paired_one_by_one() -> None:
    """Of so many pairs nobody would see the end; the image is read anew instead."""
    rows = pa.table({"c0": pa.array(["same"] * 3_000), "d": pa.array([1] * 3_000)})
    desc = relation_desc(("a", TEXT))
    come = diffs_at(desc, rows, Timestamp(1))
    image = image_module.make_image(come, Timestamp(1), Timestamp(2))
    assert image is not None
    for count, kept in ((3, True), (3_000, False)):
        gone = rows.slice(0, count).set_column(1, "d", pa.array([-1] * count))
        left = image_module.advance(
            image, diffs_at(desc, gone, Timestamp(2)), Timestamp(2), Timestamp(3)
        )
        assert (left is not None) is kept
