"""Goal: columns are added to a shard while others write, read and merge it at older versions.

Method: random scripts of appends, merges and reads, each at a random version, against a list of all
updates ever appended. A reader gets the first columns of what has more, and NULL in place of what
has fewer. Merges of all sizes are done by processes that know fewer columns than the parts have.
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
from evertide.persist.coding.inline import decode_inline, encode_inline
from evertide.persist.coding.parts import table_to_columns
from evertide.persist.faults import BelowSince, Corrupt
from evertide.persist.handle import Append, Appended, PersistClient
from evertide.persist.snapshot import snapshot_table
from evertide.persist.spark_input import part_files
from evertide.persist.state import Batch, SchemaMismatch
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.upkeep import merge
from evertide.persist.upkeep.compaction import compact_shard
from evertide.persist.upkeep.merge_choice import MergeSizes
from evertide.vocab.datum import Interval, Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc, relation_desc
from evertide.vocab.sql_type import FLOAT8, INT4, INT8, INTERVAL, NUMERIC, TEXT, array_of
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.support.owned import OURS

SHARD = ShardId("s1")
COLUMNS = (
    ColumnDesc("a", FLOAT8, nullable=False),
    ColumnDesc("b", INTERVAL),
    ColumnDesc("c", array_of(NUMERIC)),
    ColumnDesc("d", TEXT),
)
VERSIONS = [RelationDesc(COLUMNS[:arity]) for arity in (1, 2, 4)]
ROWS: list[Row] = [
    (0.0, Interval(1, 0, 0), (Decimal("NaN"), None), "x"),
    (-0.0, Interval(1, 0, 0), (Decimal("NaN"), None), "x"),
    (0.0, None, None, None),
    (math.nan, Interval(0, 30, 0), (), ""),
    (math.nan, Interval(0, 30, 0), (), "y"),
]
ERROR = '["22012","division by zero"]'


def seen(row: Row, desc: RelationDesc) -> Row:
    """What a reader of this version gets of a row."""
    return row[: desc.arity] + (None,) * (desc.arity - len(row))


def summed(updates: Iterable[Update], desc: RelationDesc) -> Counter[str]:
    sums: Counter[str] = Counter()
    for row, ts, diff, error in updates:
        sums[repr((() if error else seen(row, desc), ts, error))] += diff
    return Counter({key: diff for key, diff in sums.items() if diff})


small = st.integers(0, 6)
version = st.integers(0, len(VERSIONS) - 1)
append_step = st.tuples(
    st.just("append"),
    version,
    st.lists(st.tuples(small, small, st.sampled_from([1, 1, -1])), min_size=1, max_size=8),
)
step = st.one_of(
    append_step,
    append_step,
    append_step,
    st.tuples(st.just("merge"), version, small, st.integers(1, 6), st.integers(0, 3)),
    st.tuples(st.just("read"), version, small),
    st.tuples(st.just("updates"), version, small, small),
)


class Run:
    """One script, step by step."""

    def __init__(self, lag: int) -> None:
        self.lag = lag
        self.updates: list[Update] = []
        self.upper = 0
        self.known: list[int] = []
        self.store, self.blob = MemoryStore(), MemoryBlob()

    async def __call__(self, script: Sequence[tuple]) -> None:
        self.consensus = self.store.consensus(await self.store.raise_epoch())
        async with PersistClient(self.consensus, self.blob, owner=OURS) as self.client:
            await self.client.create_shard(SHARD, since_lag=self.lag)
            for name, *arguments in script:
                await getattr(self, f"do_{name}")(*arguments)
            if self.upper:
                for reader in range(len(VERSIONS)):
                    await self.do_read(reader, 0)

    async def do_append(self, writer: int, changes: Sequence[tuple[int, int, int]]) -> None:
        desc, updates = VERSIONS[writer], []
        lower, upper = Timestamp(self.upper), Timestamp(self.upper + 3)
        for row, offset, diff in changes:
            ts = Timestamp(lower + offset % 3)
            error = None if row < len(ROWS) else ERROR
            updates.append(Update(() if error else ROWS[row][: desc.arity], ts, diff, error))
        outcome = await self.client.compare_and_append(SHARD, desc, updates, lower, upper)
        if writer in self.known or not self.known or writer > max(self.known):
            assert outcome == Appended(upper)
            self.known.append(writer)
            self.updates += updates
            self.upper = upper
        else:
            assert isinstance(outcome, SchemaMismatch)

    async def do_merge(self, merger: int, start: int, count: int, buckets: int) -> None:
        def choose(batches: Sequence[Batch]) -> tuple[Batch, ...]:
            return tuple(batches[start : start + count])

        sizes = MergeSizes(part_bytes=2048 >> 2 * buckets, step_bytes=2048 >> 2 * buckets)
        client, desc = self.client, VERSIONS[merger]
        done = await compact_shard(
            client.machine, client.blob, SHARD, desc, 0, choose=choose, sizes=sizes
        )
        if done is not None:
            await prepare.discard(client.blob, done.garbage)

    async def do_read(self, reader: int, back: int) -> None:
        desc, as_of = VERSIONS[reader], Timestamp(max(self.upper - 1 - back, 0))
        if as_of >= self.upper:
            return
        since = (await self.client.state(SHARD)).since
        held = [u._replace(ts=as_of) for u in self.updates if u.ts <= as_of]
        for client in (self.client, PersistClient(self.consensus, self.blob)):
            if as_of < since:
                with pytest.raises(BelowSince):
                    await client.snapshot(SHARD, desc, as_of)
                continue
            found = await client.snapshot(SHARD, desc, as_of)
            assert summed(found, desc) == summed(held, desc)
            table = await snapshot_table(client, SHARD, desc, as_of)
            found = table_to_columns(desc, table).updates()
            assert summed(found, desc) == summed(held, desc)

    async def do_updates(self, reader: int, back: int, length: int) -> None:
        desc, lower = VERSIONS[reader], Timestamp(max(self.upper - back, 0))
        upper = Timestamp(min(lower + length, self.upper))
        since = (await self.client.state(SHARD)).since
        if since and lower <= since:
            return
        wanted = [u for u in self.updates if lower <= u.ts < upper]
        for client in (self.client, PersistClient(self.consensus, self.blob)):
            found = await client.read_updates(SHARD, desc, lower, upper)
            assert summed(found, desc) == summed(wanted, desc)


@pytest.mark.parametrize("form", ["inline", "part by rows", "part by columns"])
def test_every_read_is_exact_at_every_version(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form != "inline":
        monkeypatch.setattr(prepare, "INLINE_BYTES", 0)
        monkeypatch.setattr(merge, "MERGED_INLINE_BYTES", 0)
    if form == "part by columns":
        monkeypatch.setattr(merge, "_FEW_UPDATES", 0)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 4), st.lists(step, min_size=4, max_size=20))
    def check(lag: int, script: list[tuple]) -> None:
        asyncio.run(Run(lag)(script))

    check()


KEY = relation_desc(("a", INT8))
WIDE = relation_desc(("a", INT8), ("b", TEXT))


async def new_client() -> PersistClient:
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob())
    await client.create_shard(SHARD, since_lag=0)
    return client


async def append(client: PersistClient, desc: RelationDesc, rows: Sequence[Row]) -> None:
    upper = (await client.state(SHARD)).upper
    updates = [Update(row, upper, 1) for row in rows]
    outcome = await client.compare_and_append(SHARD, desc, updates, upper, Timestamp(upper + 1))
    assert isinstance(outcome, Appended)


async def test_rows_spread_by_fewer_columns_survive_a_merge_with_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parts of a large batch hold rows by a hash of all columns, which another column changes."""
    monkeypatch.setattr(merge, "MERGED_INLINE_BYTES", 0)
    monkeypatch.setattr(merge, "_FEW_UPDATES", 0)
    async with await new_client() as client:
        for desc, rows, part_bytes in (
            (KEY, [(i,) for i in range(1_000)], 4_000),
            (WIDE, [(i, "x") for i in range(1_000, 1_100)], 2_000),
            (KEY, [(i,) for i in range(2_000, 2_100)], 8_000),
        ):
            await append(client, desc, rows)
            sizes = MergeSizes(part_bytes=part_bytes, step_bytes=part_bytes)
            machine, blob = client.machine, client.blob
            assert await compact_shard(machine, blob, SHARD, KEY, 0, choose=tuple, sizes=sizes)
        (batch,) = (await client.state(SHARD)).batches
        assert len(batch.parts) > 1
        assert {part.schema for part in batch.parts} == {1}
        found = await client.snapshot(SHARD, WIDE, Timestamp(2))
        assert len(found) == 1_200
        assert Counter(row[1] for row, *_ in found) == {None: 1_100, "x": 100}


async def test_listeners_of_all_versions_hear_all_versions() -> None:
    async with await new_client() as client:
        heard = {arity: client.listen(SHARD, desc, Timestamp(0)) for arity, desc in
                 ((1, KEY), (2, WIDE))}  # fmt: skip
        for desc, row in ((KEY, (1,)), (WIDE, (2, "x")), (KEY, (3,))):
            await append(client, desc, [row])
            for arity, listener in heard.items():
                updates, _ = await anext(listener)
                assert [u.row for u in updates] == [(*row, None)[:arity]]


async def test_spark_is_given_rows_in_the_columns_that_it_asked_for() -> None:
    async with await new_client() as client:
        await append(client, KEY, [(1,)])
        await append(client, WIDE, [(2, "x")])
        async with part_files(client, SHARD, WIDE, Timestamp(1)) as files:
            assert [update.row for update in files.inline] == [(1, None), (2, "x")]
        async with part_files(client, SHARD, KEY, Timestamp(1)) as files:
            assert [update.row for update in files.inline] == [(1,), (2,)]


async def test_a_refused_append_changes_nothing_else() -> None:
    """All or nothing, also when one shard of several does not have these columns."""
    async with await new_client() as client:
        await append(client, WIDE, [(1, "x")])
        await client.create_shard(ShardId("s2"))
        one, two = Timestamp(1), Timestamp(2)
        other = relation_desc(("a", INT4))
        refused = await client.append_all(
            [
                Append(ShardId("s2"), KEY, [Update((1,), Timestamp(0), 1)], Timestamp(0), two),
                Append(SHARD, other, [Update((1,), one, 1)], one, two),
            ]
        )
        assert not isinstance(refused, Appended)
        assert refused.refusal == SchemaMismatch(("int8", "text"), ("int4",))
        assert (await client.state(ShardId("s2"))).upper == 0
        added = RelationDesc((*WIDE.columns, ColumnDesc("c", INT4, nullable=False)))
        more = [Update((1, "x", 1), one, 1)]
        outcome = await client.compare_and_append(SHARD, added, more, one, two)
        assert outcome == SchemaMismatch(("int8", "text"), ("int8", "text", "int4"))


@pytest.mark.parametrize("rows", [1, 20_000], ids=["inline", "part"])
async def test_a_reader_that_expects_other_types_gets_no_rows(rows: int) -> None:
    async with await new_client() as client:
        await append(client, WIDE, [(i, "x") for i in range(rows)])
        for desc in (relation_desc(("a", TEXT)), relation_desc(("a", INT8), ("b", INT8))):
            with pytest.raises(Corrupt, match=f"shard {SHARD}"):
                await PersistClient(client.machine._consensus, client.blob._store).snapshot(
                    SHARD, desc, Timestamp(0)
                )


def test_rows_of_an_inline_batch_are_cut_and_filled_up() -> None:
    payload = encode_inline([Update((1, Decimal("1.5")), Timestamp(3), 1)])
    columns = (("a", INT4), ("b", NUMERIC), ("c", TEXT), ("d", array_of(INT8)))
    rows = [decode_inline(relation_desc(*columns[:n]), payload).rows for n in range(5)]
    assert rows == [
        [()],
        [(1,)],
        [(1, Decimal("1.5"))],
        [(1, Decimal("1.5"), None)],
        [(1, Decimal("1.5"), None, None)],
    ]
