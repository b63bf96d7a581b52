"""Goal: contents as an Arrow table are exactly the contents as rows.

Method: random histories of rows with columns of every type, with deletions, errors and merges, read
at every time that is readable, also within batches; compared with PersistClient.snapshot.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.persist import prepare, snapshot
from evertide.persist.coding.encoding import update_schema
from evertide.persist.coding.parts import table_to_columns
from evertide.persist.faults import BelowSince
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.snapshot import snapshot_table, table_snapshot_table
from evertide.persist.state import Batch
from evertide.persist.store.file import FileBlob
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Committed, TableWrite, Txns, register_table
from evertide.persist.upkeep import merge
from evertide.persist.upkeep.compaction import compact_shard
from evertide.vocab.datum import Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD
from tests.persist.test_columns_come_back_as_they_were import DESC as EVERY_DESC
from tests.persist.test_columns_come_back_as_they_were import ROWS

ERROR = '["22012","division by zero"]'
WIDTH = 3


@dataclass(frozen=True)
class Change:
    """One update to come: which row (beyond the last: an error), when in its batch, how often."""

    row: int
    offset: int
    diff: int


@dataclass(frozen=True)
class Merge:
    start: int
    count: int


changes = st.builds(
    Change, st.integers(0, 4), st.integers(0, WIDTH - 1), st.sampled_from([1, 1, 2, -1])
)
steps = st.lists(
    st.lists(changes, min_size=1, max_size=6)
    | st.builds(Merge, st.integers(0, 3), st.integers(1, 4)),
    min_size=1,
    max_size=8,
)


def added_up(updates: Iterable[Update]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for row, ts, diff, error in updates:
        sums[repr((row, ts, error))] += diff
    return Counter({key: diff for key, diff in sums.items() if diff})


def check_table(desc: RelationDesc, table: pa.Table, as_of: Timestamp) -> list[Update]:
    """Its updates, after a look at what it promises beside its rows."""
    assert table.schema == update_schema(desc)
    table.validate(full=True)
    updates = table_to_columns(desc, table).updates()
    assert {update.ts for update in updates} <= {as_of}
    diffs: defaultdict[str, list[int]] = defaultdict(list)
    for row, _, diff, error in updates:
        diffs[repr((row, error))].append(diff)
    assert all(min(found) > 0 or len(found) == 1 for found in diffs.values()), "negatives alone"
    assert all(sum(found) for found in diffs.values()), "nothing that is not there"
    return updates


async def check_history(pool: Sequence[Row], script: list[list[Change] | Merge], lag: int) -> None:
    store, blob = MemoryStore(), MemoryBlob()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, blob) as client:
        await client.create_shard(SHARD, since_lag=lag)
        upper = Timestamp(0)
        for step in script:
            if isinstance(step, Merge):
                await merge_some(client, step)
                continue
            upper = await append(client, pool, step, upper)
        await client.maintenance.idle()  # else since may move on while this looks
        since = (await client.state(SHARD)).since
        for as_of in map(Timestamp, range(since, upper)):
            expected = await client.snapshot(SHARD, EVERY_DESC, as_of)
            table = await snapshot_table(client, SHARD, EVERY_DESC, as_of)
            assert added_up(check_table(EVERY_DESC, table, as_of)) == added_up(expected)
        if since:
            with pytest.raises(BelowSince):
                await snapshot_table(client, SHARD, EVERY_DESC, Timestamp(since - 1))


async def append(
    client: PersistClient, pool: Sequence[Row], step: list[Change], lower: Timestamp
) -> Timestamp:
    upper = Timestamp(lower + WIDTH)
    updates = []
    for change in step:
        at = Timestamp(lower + change.offset)
        if change.row < len(pool):
            updates.append(Update(pool[change.row], at, change.diff))
        else:
            updates.append(Update((), at, change.diff, ERROR))
    outcome = await client.compare_and_append(SHARD, EVERY_DESC, updates, lower, upper)
    assert outcome == Appended(upper)
    return upper


async def merge_some(client: PersistClient, step: Merge) -> None:
    def choose(batches: Sequence[Batch]) -> tuple[Batch, ...]:
        return tuple(batches[step.start : step.start + step.count])

    await compact_shard(client.machine, client.blob, SHARD, EVERY_DESC, 0, choose=choose)


@pytest.mark.parametrize("few", [0, 1_000])
@pytest.mark.parametrize("form", ["inline", "parts"])
def test_random_histories(form: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_FEW_ROWS", few)
    monkeypatch.setattr(snapshot, "_SLICE_ROWS", few)
    if form == "parts":
        monkeypatch.setattr(prepare, "INLINE_BYTES", 0)
        monkeypatch.setattr(merge, "MERGED_INLINE_BYTES", 0)

    @settings(max_examples=25, deadline=None)
    @given(st.lists(ROWS, min_size=1, max_size=4), steps, st.integers(0, 8))
    def check(pool: list[Row], script: list[list[Change] | Merge], lag: int) -> None:
        asyncio.run(check_history(pool, script, lag))

    check()


async def test_a_few_deletions_out_of_many_rows(tmp_path: Path) -> None:
    """The rows that retractions concern are found among those that share some of their values."""
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, FileBlob(tmp_path)) as client:
        await client.create_shard(SHARD)
        rows = [(f"name {i % 7}", i) for i in range(20_000)]
        inserted = [Update(row, Timestamp(0), 1) for row in [*rows, rows[5], rows[6]]]
        await client.compare_and_append(SHARD, DESC, inserted, Timestamp(0), Timestamp(1))
        deleted = [Update(row, Timestamp(1), -1) for row in rows[:6]]
        deleted.append(Update(("never there", 1), Timestamp(1), -1))
        await client.compare_and_append(SHARD, DESC, deleted, Timestamp(1), Timestamp(2))
        before = check_table(
            DESC, await snapshot_table(client, SHARD, DESC, Timestamp(0)), Timestamp(0)
        )
        assert added_up(before) == added_up(inserted)
        after = await snapshot_table(client, SHARD, DESC, Timestamp(1))
        found = check_table(DESC, after, Timestamp(1))
        assert added_up(found) == added_up(u._replace(ts=Timestamp(1)) for u in inserted + deleted)
        assert after.num_rows == 20_000 - 5 + 2, "rows[6] twice, rows[5] once, one negative"


async def test_a_table_is_complete_up_to_the_upper_of_all_tables() -> None:
    store = MemoryStore()
    async with PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob()) as client:
        txns = Txns(client, ShardId("txns"))
        await txns.ensure()
        await client.machine.apply_all([register_table(SHARD)])
        write = TableWrite(DESC, [(("x", 1), 1)])
        assert await txns.commit({SHARD: write}, at=Timestamp(3)) == Committed(Timestamp(3))
        await txns.commit({}, at=Timestamp(9))
        table = await table_snapshot_table(client, txns, SHARD, DESC, Timestamp(9))
        assert check_table(DESC, table, Timestamp(9)) == [Update(("x", 1), Timestamp(9), 1)]


async def test_an_empty_shard_is_an_empty_table() -> None:
    store = MemoryStore()
    async with PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob()) as client:
        await client.create_shard(SHARD)
        await client.compare_and_append(SHARD, DESC, [], Timestamp(0), Timestamp(5))
        table = await snapshot_table(client, SHARD, DESC, Timestamp(4))
        assert (table.num_rows, table.schema) == (0, update_schema(DESC))


async def test_parts_collected_meanwhile_are_looked_for_again(tmp_path: Path) -> None:
    """The reader knows an old state; its part goes between that look and the read."""
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())

    class CollectingBlob(FileBlob):
        collected = False

        async def get(self, key: str) -> bytes:
            if not self.collected:
                self.collected = True
                writer = PersistClient(consensus, FileBlob(tmp_path))
                await compact_shard(writer.machine, writer.blob, SHARD, DESC, 0, choose=tuple)
                await super().delete(key)
            return await super().get(key)

    async with PersistClient(consensus, FileBlob(tmp_path)) as client:
        await client.create_shard(SHARD)
        rows = [Update((f"row {i}", i), Timestamp(0), 1) for i in range(10_000)]
        await client.compare_and_append(SHARD, DESC, rows, Timestamp(0), Timestamp(1))
        reader = PersistClient(consensus, CollectingBlob(tmp_path))
        assert (await snapshot_table(reader, SHARD, DESC, Timestamp(0))).num_rows == 10_000
