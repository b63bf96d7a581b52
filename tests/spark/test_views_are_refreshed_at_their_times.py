"""Goal: a view with refreshes holds at every time what its query gave at the refresh before, and
says no earlier than it can know that it does; after the last refresh it needs nothing any more.

Method: workers over stores in memory, one round at a time. Random tables, schedules and restarts,
against a model; then what is held and what is finished.
"""

import asyncio
import random
from collections import Counter
from functools import partial
from pathlib import Path

import msgspec
import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.description import (
    DataflowDescription,
    Derived,
    Import,
    ShardExport,
    hold_owner,
)
from evertide.expr.relation import Get
from evertide.persist.handle import PersistClient
from evertide.persist.state import (
    Changed,
    ShardChange,
    ShardState,
    advance_since,
    allowed_since,
    existing,
    set_hold,
    set_since_lag,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Committed, TableWrite, Txns, register_table
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.holds import hold_changes, together
from evertide.spark.reports import Reports
from evertide.spark.worker import Worker
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.refresh import Every, RefreshSchedule
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp

DESC = relation_desc(("a", TEXT))
TABLE, VIEW = ShardId("t"), ShardId("v")
TABLE_ID, VIEW_ID = GlobalId("t"), GlobalId("v")
IMPORT = Import(TABLE_ID, TABLE, DESC, is_table=True)


class Environment:
    """A table, a view over it that is refreshed at times, and a worker that may die."""

    def __init__(self, schedule: RefreshSchedule, scratch: Path) -> None:
        self.schedule = schedule
        self.as_of = schedule.next_at(Timestamp(1))
        derived = Derived((IMPORT,), self.as_of, VIEW_ID, by_time=True, refresh=schedule)
        self.view = Import(VIEW_ID, VIEW, DESC, is_table=False, derived=derived)
        self._scratch = scratch
        self._lives = 0
        self.model: dict[int, Counter[str]] = {0: Counter()}

    async def open(self) -> None:
        store = MemoryStore()
        consensus = store.consensus(await store.raise_epoch())
        self.client = PersistClient(consensus, MemoryBlob(), cache_bytes=0)
        self.txns = Txns(self.client, ShardId("txns"))
        self.storage = Storage(self.client, self.txns)
        await self.txns.ensure()
        owner = hold_owner(VIEW_ID)
        hold = existing(partial(set_hold, owner=owner, hold_ts=self.as_of))
        await self.client.append_all([], also=[register_table(TABLE), ShardChange(TABLE, hold)])
        await self.client.create_shard(VIEW, writer=VIEW_ID, since=self.as_of, since_lag=2)
        lag = existing(partial(set_since_lag, since_lag=2))
        await self.client.machine.apply_each([ShardChange(TABLE, lag)])
        await self.restart()

    async def restart(self) -> None:
        """A new process, which knows what is stored and nothing else."""
        self._lives += 1
        engine = DriverEngine(Evaluator(self._scratch / str(self._lives)))
        self.worker = Worker(self.client, self.storage, engine)
        await self.worker.set_dataflows(
            {
                VIEW_ID: DataflowDescription(
                    VIEW_ID,
                    ClusterId("c"),
                    (IMPORT,),
                    Get(TABLE_ID, DESC.types),
                    ShardExport(VIEW, DESC, refresh=self.schedule),
                    self.as_of,
                )
            }
        )

    async def write(self, changes: Counter[str], at: int) -> None:
        """No changes: time goes on."""
        rows = [((text,), diff) for text, diff in changes.items()]
        writes = {TABLE: TableWrite(DESC, rows)} if rows else {}
        assert isinstance(await self.txns.commit(writes, at=Timestamp(at)), Committed)
        after = Counter(self.model[max(self.model)])
        for text, diff in changes.items():
            after[text] += diff
        self.model[at] = +after

    async def rounds(self, count: int = 4) -> None:
        """So many, and what is built in the background is waited for."""
        for _ in range(count):
            await self.worker.round()
            for dataflow in self.worker.dataflows():
                if dataflow.building is not None:
                    await asyncio.wait([dataflow.building.task])

    async def merge_history(self) -> None:
        """As upkeep does when all leases ran out: what no view holds for good is merged."""
        moves = [change for d in self.worker.dataflows() for change in hold_changes(d)]
        await self.client.machine.apply_each(together(moves))

        def merged(state: ShardState) -> Changed:
            critical = tuple(hold for hold in state.holds if hold.expires_ms is None)
            state = msgspec.structs.replace(state, holds=critical)
            return advance_since(state, to=allowed_since(state, 0))

        merge = existing(merged)
        await self.client.machine.apply_each([ShardChange(s, merge) for s in (TABLE, VIEW)])

    def expected(self, ts: int) -> Counter[str]:
        """What the query gave at the last refresh that is not after the time."""
        refresh = self.schedule.last_before(Timestamp(ts + 1))
        assert refresh is not None
        return self.model[max(at for at in self.model if at <= refresh)]

    async def shown(self, ts: int) -> Counter[str]:
        contents = await self.storage.contents(self.view, Timestamp(ts))
        return Counter({str(row[0]): diff for row, diff in contents.rows})

    async def check(self, last: int) -> Timestamp:
        """Every time that is known is right; how far it is known."""
        upper = await self.storage.upper(self.view)
        stored = await self.client.state(VIEW)
        for ts in range(max(stored.since, self.as_of), min(upper, last + 1)):
            assert await self.shown(ts) == self.expected(ts), f"at {ts}"
        return upper


def random_schedule(rng: random.Random) -> RefreshSchedule:
    singles = tuple(Timestamp(rng.randint(1, 120)) for _ in range(rng.randint(0, 3)))
    every = tuple(
        Every(rng.choice([1, 3, 10, 25]), Timestamp(rng.randint(0, 200)))
        for _ in range(rng.randint(0 if singles else 1, 2))
    )
    return RefreshSchedule(singles, every)


@pytest.mark.parametrize("seed", range(30))
async def test_every_time_shows_the_refresh_before_it(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    env = Environment(random_schedule(rng), tmp_path)
    await env.open()
    now = 0
    while now < 140:
        now += rng.choice([1, 1, 2, 5, 30])
        held = env.model[max(env.model)]
        changes = Counter[str]()
        if rng.random() < 0.7:
            changes[rng.choice("abc")] += rng.randint(1, 2)
        for text in rng.sample(sorted(held), k=min(len(held), rng.randint(0, 1))):
            changes[text] -= 1
        await env.write(Counter({t: d for t, d in changes.items() if d}), now)
        if rng.random() < 0.5:
            await env.rounds()
        if rng.random() < 0.2:
            await env.merge_history()
        if rng.random() < 0.15:
            await env.restart()
        await env.check(now)
    await env.rounds(10)
    known = await env.check(now)
    if env.as_of <= now:
        assert known > now, "nothing is left to be waited for"
    last = env.schedule.next_at(Timestamp(now + 1)) == EMPTY_FRONTIER
    assert (known == EMPTY_FRONTIER) == (last and env.as_of <= now)


async def test_between_refreshes_nothing_is_computed(tmp_path: Path) -> None:
    env = Environment(RefreshSchedule(every=(Every(100, Timestamp(10)),)), tmp_path)
    await env.open()
    for at in (5, 10, 20, 60, 109):
        await env.write(Counter({"x": 1}), at)
        await env.rounds()
    assert [record.upper for record in env.worker.tick_records] == [11]
    assert (await env.client.state(VIEW)).upper == 11
    assert await env.shown(109) == {"x": 2}
    await env.write(Counter({"x": 1}), 110)
    await env.rounds()
    assert [record.upper for record in env.worker.tick_records] == [11, 111]
    assert await env.shown(110) == {"x": 6}
    state = await env.client.state(VIEW)
    assert [batch.rows for batch in state.batches] == [1, 1], "one change for each refresh"


async def test_inputs_are_held_until_the_refresh_that_needs_them(tmp_path: Path) -> None:
    env = Environment(RefreshSchedule(every=(Every(1_000, Timestamp(10)),)), tmp_path)
    await env.open()
    for at in (5, 10, 200, 900):
        await env.write(Counter({"x": 1}), at)
        await env.rounds()
    await env.merge_history()
    assert (await env.client.state(TABLE)).since == 10
    await env.restart()
    await env.write(Counter({"y": 1}), 1_010)
    await env.rounds()
    assert await env.shown(1_010) == {"x": 4, "y": 1}
    await env.merge_history()
    assert (await env.client.state(TABLE)).since > 10


async def test_a_finished_view_lets_go_of_everything(tmp_path: Path) -> None:
    env = Environment(RefreshSchedule(at=(Timestamp(10), Timestamp(30))), tmp_path)
    await env.open()
    for at in (5, 10, 30):
        await env.write(Counter({"x": 1}), at)
        await env.rounds()
    assert (await env.client.state(VIEW)).upper == EMPTY_FRONTIER
    dataflow = env.worker.dataflow(VIEW_ID)
    assert dataflow is not None
    assert (dataflow.placement, dataflow.stopped) == (None, None)
    (hydration,) = (await Reports(env.worker).response(1, "mz_hydration_statuses")).rows
    assert hydration[:3] == (VIEW_ID, "c", True)
    await env.merge_history()
    holds = (await env.client.state(TABLE)).holds
    assert hold_owner(VIEW_ID) not in {hold.owner for hold in holds}
    for at in (400, 900):
        await env.write(Counter({"x": 1}), at)
    await env.merge_history()
    assert (await env.client.state(TABLE)).since > 30
    await env.restart()
    await env.rounds()
    dataflow = env.worker.dataflow(VIEW_ID)
    assert dataflow is not None
    assert (dataflow.stopped, dataflow.frontier) == (None, EMPTY_FRONTIER)
    assert await env.shown(900) == {"x": 3}


async def test_a_view_is_empty_handed_before_its_first_refresh(tmp_path: Path) -> None:
    env = Environment(RefreshSchedule(at=(Timestamp(50),)), tmp_path)
    await env.open()
    await env.write(Counter({"x": 1}), 49)
    await env.rounds()
    assert await env.storage.upper(env.view) == 50
    assert not env.worker.tick_records
    await env.write(Counter(), 50)
    await env.rounds()
    assert await env.shown(50) == {"x": 1}
    assert await env.storage.upper(env.view) == EMPTY_FRONTIER


async def test_what_follows_from_it_is_never_known_in_the_future(tmp_path: Path) -> None:
    """Else its since would go there too, and nobody could read it now."""
    env = Environment(RefreshSchedule(every=(Every(1_000_000, Timestamp(10)),)), tmp_path)
    await env.open()
    await env.write(Counter({"x": 1}), 10)
    await env.rounds()
    await env.write(Counter(), 500)
    assert await env.storage.upper(env.view) == 501
    derived = Derived((env.view,), Timestamp(10), GlobalId("w"))
    above = Import(GlobalId("w"), ShardId("w"), DESC, is_table=False, derived=derived)
    await env.client.create_shard(ShardId("w"), writer=GlobalId("w"), since=MIN_TS)
    look = await env.storage.look([above])
    assert look.upper(env.view) == 501
