"""Goal: however batches are merged, every allowed read stays exact; and since passes no hold.

Method: random histories, merged as maintenance would merge them, with limits so small that a few
rows already make many levels, and batches of many parts. Afterwards every read that is allowed is
compared with a list of all updates: contents at every time, and updates of every stretch.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.persist import prepare
from evertide.persist.faults import BelowSince
from evertide.persist.handle import PersistClient
from evertide.persist.state import (
    BlobPart,
    ShardChange,
    ShardState,
    allowed_since,
    existing,
    release_hold,
    set_hold,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.upkeep import bucket_merge, merge
from evertide.persist.upkeep.compaction import Compacted, compact_shard
from evertide.persist.upkeep.merge_choice import MergeSizes
from evertide.vocab.datum import Interval, Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import FLOAT4, FLOAT8, INT8, INTERVAL, NUMERIC, TEXT, array_of
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.support.owned import OURS

SHARD = ShardId("s1")
ERROR = '["22012","division by zero"]'
FLAT = relation_desc(("f", FLOAT8), ("n", NUMERIC), ("t", TEXT), ("i", INTERVAL))
FLAT_ROWS: list[Row] = [
    (0.0, Decimal(1), "a", Interval(1, 0, 0)),
    (-0.0, Decimal(1), "a", Interval(1, 0, 0)),
    (math.nan, Decimal("NaN"), "", None),
    (1.5, None, "x" * 300, Interval(0, 30, 0)),
    (None, None, None, None),
    (math.inf, Decimal("1E+2"), "é", Interval(0, 0, -1)),
]
NESTED = relation_desc(("l", array_of(FLOAT4)), ("i", array_of(INTERVAL)), ("n", INT8))
NESTED_ROWS: list[Row] = [
    ((0.0,), None, 1),
    ((-0.0,), None, 1),
    ((math.nan, None), (), 2),
    (None, (Interval(1, 2, 3), None), 2),
    ((), (), None),
]
# So small that a dozen rows are a large batch.
SMALL = [
    MergeSizes(
        level_bytes=32,
        fanout=fanout,
        inline_batches=4,
        inline_bytes=300,
        newest_batches=1,
        newest_bytes=200,
        part_bytes=part_bytes,
        step_bytes=steps * part_bytes,
    )
    for fanout in (2, 3)
    for part_bytes, steps in ((48, 1), (160, 2), (160, 8))
]


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def summed(updates: Iterable[Update]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for update in updates:
        sums[repr(update._replace(diff=0))] += update.diff
    return Counter({key: diff for key, diff in sums.items() if diff})


class History:
    """A shard, and all updates that were ever appended to it."""

    def __init__(self, desc: RelationDesc, rows: Sequence[Row], sizes: MergeSizes) -> None:
        self.desc, self.rows, self.sizes = desc, rows, sizes
        self.updates: list[Update] = []
        self.upper = 0
        self.store, self.blob = MemoryStore(), MemoryBlob()
        self.most_parts = 0

    async def open(self, lag: int) -> None:
        consensus = self.store.consensus(await self.store.raise_epoch())
        self.client = PersistClient(consensus, self.blob, owner=OURS)
        self.reader = PersistClient(consensus, self.blob, cache_bytes=0)
        await self.client.create_shard(SHARD, since_lag=lag)

    async def close(self) -> None:
        await self.client.maintenance.close()
        await self.reader.maintenance.close()

    async def append(self, width: int, changes: Sequence[tuple[int, int, int]]) -> None:
        lower, self.upper = self.upper, self.upper + width
        updates = []
        for number, offset, diff in changes:
            at = ts(lower + offset % width)
            row = self.rows[number] if number < len(self.rows) else ()
            updates.append(Update(row, at, diff, None if row else ERROR))
        self.updates += updates
        await self.client.compare_and_append(SHARD, self.desc, updates, ts(lower), ts(self.upper))
        await self.client.maintenance.close()  # only merges of this test's sizes

    async def hold(self, owner: int, ahead: int | None) -> None:
        state = await self.client.state(SHARD)
        if ahead is None:
            change = existing(lambda s: release_hold(s, owner=f"h{owner}"))
        else:
            at = ts(state.since + ahead)
            change = existing(lambda s: set_hold(s, owner=f"h{owner}", hold_ts=at))
        await self.client.machine.apply_all([ShardChange(SHARD, change)])

    async def merge_all(self) -> None:
        """As long as a merge is due; there is an end to it."""
        for _ in range(200):
            done = await self.merge_once()
            if done is None:
                return
            await prepare.discard(self.client.blob, done.garbage)
        raise AssertionError("merges do not come to an end")

    async def merge_once(self) -> Compacted | None:
        before = await self.client.state(SHARD)
        done = await compact_shard(
            self.client.machine, self.client.blob, SHARD, self.desc, 0, sizes=self.sizes
        )
        after = await self.client.state(SHARD)
        assert before.since <= after.since <= allowed_since(before, 0)
        assert [h.owner for h in after.holds] == [h.owner for h in before.holds], "no claim stays"
        self.most_parts = max([self.most_parts, *(len(b.parts) for b in after.batches)])
        return done

    async def check(self) -> None:
        """Every read that is allowed, and that others are refused."""
        state = await self.client.state(SHARD)
        assert set(await self.blob.keys()) == blob_keys(state)
        for as_of in range(state.since, self.upper):
            found = await self.reader.snapshot(SHARD, self.desc, ts(as_of))
            upto = [u._replace(ts=ts(as_of)) for u in self.updates if u.ts <= as_of]
            assert summed(found) == summed(upto)
        if state.since > 0:
            with pytest.raises(BelowSince):
                await self.reader.snapshot(SHARD, self.desc, ts(state.since - 1))
        for lower in range(state.since + 1, self.upper):
            for upper in range(lower + 1, self.upper + 1):
                found = await self.reader.read_updates(SHARD, self.desc, ts(lower), ts(upper))
                wanted = [u for u in self.updates if lower <= u.ts < upper]
                assert summed(found) == summed(wanted)


def blob_keys(state: ShardState) -> set[str]:
    parts = (part for batch in state.batches for part in batch.parts)
    return {part.key for part in parts if isinstance(part, BlobPart)}


row = st.integers(0, 6)
appends = st.tuples(
    st.just("append"),
    st.integers(1, 3),
    st.lists(st.tuples(row, st.integers(0, 2), st.sampled_from([1, -1, 2])), max_size=8),
)
steps = st.one_of(
    appends,
    appends,
    appends,
    st.tuples(st.just("merge")),
    st.tuples(st.just("hold"), st.integers(0, 1), st.none() | st.integers(0, 4)),
)


@pytest.fixture(params=["as it comes", "by columns"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether few updates lie in the state and are merged in Python, or are treated as if many."""
    if request.param == "by columns":
        monkeypatch.setattr(prepare, "INLINE_BYTES", 0)
        monkeypatch.setattr(merge, "MERGED_INLINE_BYTES", 0)
        monkeypatch.setattr(merge, "_FEW_UPDATES", 0)
        monkeypatch.setattr(bucket_merge, "_LOOP_ROWS", 0)
    return str(request.param)


@pytest.mark.usefixtures("form")
def test_merges_at_every_level() -> None:
    @settings(max_examples=40, deadline=None)
    @given(
        st.booleans(),
        st.sampled_from(SMALL),
        st.integers(0, 5),
        st.lists(steps, min_size=5, max_size=20),
    )
    def check(nested: bool, sizes: MergeSizes, lag: int, script: Sequence[tuple]) -> None:
        async def run() -> None:
            history = History(*(NESTED, NESTED_ROWS) if nested else (FLAT, FLAT_ROWS), sizes)
            await history.open(lag)
            for name, *arguments in [*script, ("merge",)]:
                if name == "append":
                    await history.append(*arguments)
                elif name == "hold":
                    await history.hold(*arguments)
                else:
                    await history.merge_all()
            await history.check()
            await history.close()

        asyncio.run(run())

    check()


@pytest.mark.usefixtures("form")
async def test_a_batch_of_many_parts_has_equal_rows_in_one_of_them() -> None:
    """Else they would not be added up; and the histories above would test less than they seem to.

    Every row of the list comes and goes several times, at times that a merge makes equal.
    """
    sizes = MergeSizes(part_bytes=100, step_bytes=20_000)
    for desc, rows in ((FLAT, FLAT_ROWS), (NESTED, NESTED_ROWS)):
        history = History(desc, rows, sizes)
        await history.open(lag=0)
        for number in range(40):
            await history.append(1, [(number % (len(rows) + 1), 0, 1 + number % 3)])
        machine, blob = history.client.machine, history.client.blob
        assert await compact_shard(machine, blob, SHARD, desc, 0, choose=tuple, sizes=sizes)
        (batch,) = (await history.client.state(SHARD)).batches
        assert batch.rows == len(rows) + 1
        assert len(batch.parts) > 2
        await history.close()
