"""Goal: every read is exact, whatever was appended, merged and cached before it.

Method: random scripts of appends, compactions at random places with random since, holds and reads,
against a list of all updates ever appended. Readers: one whose caches live through the script, and
a new one for each read. Rows include those that Python's equality gets wrong.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.persist import prepare
from evertide.persist.faults import BelowSince
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.state import (
    Batch,
    ShardChange,
    existing,
    release_hold,
    set_hold,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.upkeep import merge
from evertide.persist.upkeep.compaction import compact_shard
from evertide.vocab.datum import Interval, Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT8, INTERVAL, NUMERIC, TEXT, array_of
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.support.owned import OURS

SHARD = ShardId("s1")
FLAT = relation_desc(("f", FLOAT8), ("n", NUMERIC), ("t", TEXT), ("i", INTERVAL))
NESTED = relation_desc(("l", array_of(FLOAT8)), ("n", INT8))
FLAT_ROWS: list[Row] = [
    (0.0, Decimal(1), "a", Interval(1, 0, 0)),
    (-0.0, Decimal(1), "a", Interval(1, 0, 0)),
    (math.nan, Decimal("NaN"), "", None),
    (1.5, Decimal("NaN"), None, Interval(0, 30, 0)),
    (None, None, None, None),
    (math.inf, Decimal("1E+2"), "é", Interval(0, 0, -1)),
]
NESTED_ROWS: list[Row] = [((0.0,), 1), ((-0.0,), 1), ((math.nan, None), 2), (None, 2), ((), None)]
ERROR = '["22012","division by zero"]'


@dataclass
class Model:
    """All updates, and the frontiers that a shard must have."""

    updates: list[Update] = field(default_factory=list)
    since: int = 0
    upper: int = 0

    def contents(self, as_of: int) -> Counter[str]:
        return summed(u._replace(ts=Timestamp(as_of)) for u in self.updates if u.ts <= as_of)

    def between(self, lower: int, upper: int) -> Counter[str]:
        return summed(u for u in self.updates if lower <= u.ts < upper)


def summed(updates: Iterable[Update]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for update in updates:
        sums[repr(update._replace(diff=0))] += update.diff
    return Counter({key: diff for key, diff in sums.items() if diff})


small = st.integers(0, 6)
append_step = st.tuples(
    st.just("append"),
    st.integers(1, 3),
    st.lists(st.tuples(small, small, st.sampled_from([1, -1]))),
)
step = st.one_of(
    append_step,
    append_step,
    st.tuples(st.just("compact"), small, st.integers(1, 6)),
    st.tuples(st.just("read"), small, small),
    st.tuples(st.just("updates"), small, small),
    st.tuples(st.just("hold"), small, st.booleans()),
)
Script = list[tuple]


class Run:
    """One script, step by step."""

    def __init__(self, nested: bool, lag: int) -> None:
        self.desc, self.rows = (NESTED, NESTED_ROWS) if nested else (FLAT, FLAT_ROWS)
        self.lag = lag
        self.model = Model()
        self.store, self.blob = MemoryStore(), MemoryBlob()

    async def __call__(self, script: Script) -> None:
        self.consensus = self.store.consensus(await self.store.raise_epoch())
        self.client = PersistClient(self.consensus, self.blob, owner=OURS)
        await self.client.create_shard(SHARD, since_lag=self.lag)
        for name, *arguments in script:
            await getattr(self, f"do_{name}")(*arguments)
            state = await self.client.state(SHARD)
            assert self.model.since <= state.since
            assert state.upper == self.model.upper
            self.model.since = state.since
        await self.client.maintenance.close()

    async def do_append(self, width: int, changes: Sequence[tuple[int, int, int]]) -> None:
        lower, upper = self.model.upper, self.model.upper + width
        updates = []
        for row, offset, diff in changes:
            ts = Timestamp(lower + offset % width)
            error = None if row < len(self.rows) else ERROR
            updates.append(Update(() if error else self.rows[row], ts, diff, error))
        outcome = await self.client.compare_and_append(
            SHARD, self.desc, updates, Timestamp(lower), Timestamp(upper)
        )
        assert outcome == Appended(Timestamp(upper))
        self.model.updates += updates
        self.model.upper = upper

    async def do_compact(self, start: int, count: int) -> None:
        def choose(batches: Sequence[Batch]) -> tuple[Batch, ...]:
            return tuple(batches[start : start + count])

        machine = self.client.machine
        done = await compact_shard(machine, self.client.blob, SHARD, self.desc, 0, choose=choose)
        if done is not None:
            await prepare.discard(self.client.blob, done.garbage)

    async def do_read(self, back: int, _: int) -> None:
        as_of = Timestamp(max(self.model.upper - 1 - back, 0))
        if as_of >= self.model.upper:
            return
        for client in (self.client, PersistClient(self.consensus, self.blob)):
            if as_of < self.model.since:
                with pytest.raises(BelowSince):
                    await client.snapshot(SHARD, self.desc, as_of)
                continue
            found = await client.snapshot(SHARD, self.desc, as_of)
            assert summed(found) == self.model.contents(as_of)
            assert len(found) == len(summed(found)), "consolidated"

    async def do_updates(self, back: int, length: int) -> None:
        lower = Timestamp(max(self.model.upper - back, 0))
        upper = Timestamp(min(lower + length, self.model.upper))
        for client in (self.client, PersistClient(self.consensus, self.blob)):
            if lower <= self.model.since and self.model.since > 0:
                with pytest.raises(BelowSince):
                    await client.read_updates(SHARD, self.desc, lower, upper)
                continue
            found = await client.read_updates(SHARD, self.desc, lower, upper)
            assert summed(found) == self.model.between(lower, upper)
            assert [u.ts for u in found] == sorted(u.ts for u in found)

    async def do_hold(self, ahead: int, take: bool) -> None:
        hold_ts = Timestamp(self.model.since + ahead)
        change = ShardChange(
            SHARD,
            existing(lambda s: set_hold(s, owner="h", hold_ts=hold_ts))
            if take
            else existing(lambda s: release_hold(s, owner="h")),
        )
        await self.client.machine.apply_all([change])


@pytest.mark.parametrize("form", ["inline", "part by rows", "part by columns"])
def test_reads_are_exact_at_every_time(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form != "inline":
        monkeypatch.setattr(prepare, "INLINE_BYTES", 0)
        monkeypatch.setattr(merge, "MERGED_INLINE_BYTES", 0)
    if form == "part by columns":
        monkeypatch.setattr(merge, "_FEW_UPDATES", 0)

    @settings(max_examples=120 if form == "inline" else 40, deadline=None)
    @given(st.booleans(), st.integers(0, 4), st.lists(step, min_size=4, max_size=25))
    def check(nested: bool, lag: int, script: Script) -> None:
        asyncio.run(Run(nested, lag)(script))

    check()


def test_a_merge_that_cancels_old_against_new_reaches_cached_contents() -> None:
    """Goal: a batch that vanished in a merge is not mistaken for one that never was.

    Contents are cached while the row is there; then its retraction and its insertion are merged
    into nothing, and no batch is left to tell.
    """
    asyncio.run(
        Run(nested=False, lag=0)(
            [
                ("append", 1, [(0, 0, 1)]),
                ("read", 0, 0),
                ("append", 1, [(0, 0, -1)]),
                ("append", 3, []),
                ("compact", 0, 2),
                ("read", 0, 0),
            ]
        )
    )
