"""Goal: the rules of taking a shard over, one by one, as a replica keeps them.

Method: two tables, a view over one of them and a view over that, in processes whose every step the
test asks for.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from evertide.expr.relation import Get, Map, Relation, Union
from evertide.persist.append import Append, Appended
from evertide.persist.state import ShardChange, existing, set_writer
from evertide.persist.store.memory import MemoryStore
from evertide.persist.txn import Committed, TableWrite, register_table
from evertide.spark import outputs
from evertide.spark.takeover.phases import Chosen, Staged, Waiting
from evertide.spark.takeover.sink import MASKED, TakeoverSink
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timeline, Timestamp
from evertide.vocab.update import Update
from tests.expr.sample import ADD, call, col
from tests.spark.hands import (
    APPLIED,
    CREATED,
    DESC,
    DISCARDED,
    FINISHED,
    STAGED,
    TYPES,
    Process,
    View,
    World,
)

T, U, M = (Get(GlobalId(name), TYPES) for name in "tum")
V = ShardId("v")


class Site:
    """`m` is t; `v` is m, and is to become m and u together."""

    def __init__(self, world: World, scratch: Path) -> None:
        self.world = world
        self.below, self.old, self.new, self.other = (
            Process(name, world, scratch) for name in "eacd"
        )
        self.processes = (self.below, self.old, self.new, self.other)

    async def write(self, table: str, at: int, *rows: tuple[int, int]) -> None:
        """Rows that come at a timestamp; none: only time passes."""
        updates = [(row, 1) for row in rows]
        writes = {ShardId(table): TableWrite(DESC, updates)} if rows else {}
        outcome = await self.below.txns.commit(writes, at=Timestamp(at))
        assert outcome == Committed(Timestamp(at))
        await self.world.oracle.apply_write(Timeline.EPOCH_MS, Timestamp(at))

    async def say(self, stage: int, *others: Process) -> None:
        """The catalog says something about v, and all or some processes hear it."""
        self.world.note("v", stage)
        for process in others or self.processes:
            await process.follow(len(self.world.log) - 1)

    async def work(self, *processes: Process, rounds: int = 4) -> None:
        for _ in range(rounds):
            for process in processes or self.processes:
                await process.work()

    @property
    def sink(self) -> TakeoverSink:
        dataflow = self.new.worker.dataflow(GlobalId("v1"))
        assert dataflow is not None
        assert isinstance(dataflow.sink, TakeoverSink)
        return dataflow.sink

    async def held(self, ts: int) -> list[object]:
        found = await self.below.client.snapshot(V, DESC, Timestamp(ts))
        return sorted((u.error or u.row for u in found for _ in range(u.diff)), key=repr)


@asynccontextmanager
async def site(
    scratch: Path,
    new: Relation | None = None,
    *,
    forward_time: bool = False,
    old_runs: bool = True,
) -> AsyncIterator[Site]:
    store = MemoryStore()
    world = World(store.consensus(await store.raise_epoch()))
    start = Timestamp(5)
    second = Union((M, U)) if new is None else new
    world.views["m"] = View("m", "below", [T, T], [start, start])
    world.views["v"] = View("v", "old", [M, second], [start, start], forward_time)
    world.log.append({"m": CREATED, "v": CREATED})
    made = Site(world, scratch)
    client = made.below.client
    await made.below.txns.ensure()
    await client.append_all([], also=[register_table(ShardId(name)) for name in "tu"])
    for name in "mv":
        writer = GlobalId(f"{name}0")
        await client.create_shard(ShardId(name), since=start, writer=writer, since_lag=1_000)
    await made.write("t", 5, (1, 1))
    await made.write("u", 6, (7, 7))
    for process in made.processes:
        await process.follow(0)
    await made.work(*(made.processes if old_runs else (made.below,)))
    try:
        yield made
    finally:
        for process in made.processes:
            await process.close()


@pytest.fixture(autouse=True)
def _uppers_that_trail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing changes, shards never say how far they are: it must be concluded."""
    monkeypatch.setattr(outputs, "STILL_SECONDS", 3_600.0)


async def test_a_staged_definition_writes_nothing_and_knows_what_it_would_change(
    tmp_path: Path,
) -> None:
    async with site(tmp_path) as one:
        before = await one.below.client.state(V)
        await one.say(STAGED)
        await one.work()
        await one.write("u", 10, (8, 8))
        await one.work()
        after = await one.below.client.state(V)
        assert (before.writer, before.batches) == (after.writer, after.batches)
        assert one.sink.phase == Staged()
        compared = one.sink.comparison
        assert compared is not None
        await one.write("t", 11, (2, 2))  # both have it
        await one.work()
        tally = compared.difference.inserted
        assert (tally.records, compared.difference.deleted.records) == (2, 0)
        assert len(compared.difference) == 2
        assert compared.new_below == compared.old_below == 12


async def test_what_was_concluded_through_a_view_below_holds(tmp_path: Path) -> None:
    """Somebody concludes that v stands still, because m does, because t does. Then v is taken, and
    t changes, so that m is no longer known as far as it was."""
    async with site(tmp_path) as one:
        await one.say(STAGED)
        await one.work()
        told: list[tuple[int, list[object]]] = []

        async def meanwhile() -> None:
            if not told:
                await one.write("t", 50)
                view = one.world.collection("v", one.world.log[0])
                known = (await one.other.storage.look([view])).upper(view)
                assert known == 51, "it is concluded"
                held = await one.other.storage.contents(view, Timestamp(50))
                told.append((50, [row for row, _ in held.rows]))
            else:
                await one.write("t", 60, (9, 9))

        one.new.client.meanwhile = meanwhile
        await one.say(APPLIED)
        await one.work(one.new)
        await one.work()
        await one.write("t", 70)
        await one.work()
        state = await one.below.client.state(V)
        assert (state.writer, state.pending) == ("v1", None)
        assert told == [(50, [(1, 1)])]
        assert await one.held(50) == [(1, 1)], "as was told"
        assert await one.held(59) == [(1, 1)]
        assert await one.held(60) == [(1, 1), (7, 7), (9, 9)], "where m changed"


async def test_the_old_version_gets_as_far_as_was_promised_first(tmp_path: Path) -> None:
    """A reader may have been told by the old version's replica what it holds at 20."""
    async with site(tmp_path) as one:
        await one.say(STAGED)
        await one.work()
        await one.write("t", 20, (2, 2))
        await one.work(one.below, one.new)
        await one.say(APPLIED)
        await one.work(one.below, one.new, rounds=8)
        assert one.sink.phase == Waiting(Timestamp(20), forward_time=False)
        assert (await one.below.client.state(V)).writer == "v0"
        await one.work(one.old)
        await one.work(one.new)
        await one.write("t", 30)
        await one.work()
        assert (await one.below.client.state(V)).writer == "v1"
        assert await one.held(20) == [(1, 1), (2, 2)]
        assert await one.held(30) == [(1, 1), (2, 2), (7, 7)]


async def test_readers_are_not_kept_waiting_by_a_view_below_that_changes_hands(
    tmp_path: Path,
) -> None:
    """Where the new contents begin could not be chosen before that one has: so nothing is taken."""
    async with site(tmp_path) as one:
        await one.say(STAGED)
        await one.work()
        below = ShardId("m")
        upper = (await one.below.client.state(below)).upper
        taken = partial(set_writer, writer=GlobalId("m9"), expected_upper=upper, pending=True)
        await one.below.client.append_all([], also=[ShardChange(below, existing(taken))])
        await one.say(APPLIED)
        await one.work(one.new)
        state = await one.below.client.state(V)
        assert (state.writer, state.pending) == ("v0", None)


async def test_time_may_jump_over_what_the_old_version_never_computed(tmp_path: Path) -> None:
    async with site(tmp_path, forward_time=True) as one:
        await one.say(STAGED)
        await one.work()
        await one.write("t", 20, (2, 2))
        await one.write("t", 25)
        await one.work(one.below, one.new)
        await one.say(APPLIED, one.new)
        for at in (30, 31):
            await one.work(one.below, one.new)
            await one.write("t", at)
        await one.work(one.below, one.new)
        state = await one.below.client.state(V)
        assert (state.writer, state.pending) == ("v1", None)
        assert await one.held(19) == [(1, 1)], "nothing had changed up to there"
        assert await one.held(20) == sorted([MASKED, (1, 1)], key=repr)
        assert await one.held(25) == sorted([MASKED, (1, 1)], key=repr)
        assert await one.held(26) == [(1, 1), (2, 2), (7, 7)]


async def test_time_may_jump_to_where_the_new_version_begins(tmp_path: Path) -> None:
    """Which is beyond all that the old one has computed, and it computes no more."""
    async with site(tmp_path, forward_time=True) as one:
        await one.write("t", 20, (2, 2))
        await one.write("u", 25, (8, 8))
        await one.work(one.below)
        one.world.views["v"].as_ofs[1] = Timestamp(25)
        await one.say(STAGED)
        await one.work(one.below, one.new)
        assert one.sink.comparison is None, "there is nothing to compare with"
        await one.say(APPLIED, one.new)
        for at in (30, 31):
            await one.work(one.below, one.new)
            await one.write("t", at)
        await one.work(one.below, one.new)
        await one.write("u", 40, (9, 9))
        await one.work(one.below, one.new)
        state = await one.below.client.state(V)
        assert (state.writer, state.pending) == ("v1", None)
        assert await one.held(19) == [(1, 1)], "nothing had changed up to there"
        for masked in (20, 25):
            assert await one.held(masked) == sorted([MASKED, (1, 1)], key=repr)
        assert await one.held(26) == [(1, 1), (2, 2), (7, 7), (8, 8)]
        assert await one.held(40) == [(1, 1), (2, 2), (7, 7), (8, 8), (9, 9)]


async def test_time_may_jump_over_all_of_a_version_that_never_ran(tmp_path: Path) -> None:
    async with site(tmp_path, forward_time=True, old_runs=False) as one:
        await one.say(STAGED)
        await one.work(one.below, one.new)
        await one.say(APPLIED, one.new)
        for at in (30, 31):
            await one.work(one.below, one.new)
            await one.write("t", at)
        await one.work(one.below, one.new)
        state = await one.below.client.state(V)
        assert (state.writer, state.pending) == ("v1", None)
        assert await one.held(5) == await one.held(6) == [MASKED]
        assert await one.held(7) == [(1, 1), (7, 7)]


async def test_who_comes_second_still_has_what_the_first_did_not_write(tmp_path: Path) -> None:
    """Two replicas choose where the new contents begin. The one that chose the earlier timestamp
    is first, and dies at once; the other writes all that came after that."""
    async with site(tmp_path) as one:
        await one.say(STAGED)
        await one.work()
        await one.say(APPLIED, one.new, one.other)
        await one.work(one.new, rounds=1)
        assert one.sink.phase == Chosen(Timestamp(7), Timestamp(7), Timestamp(7))
        await one.write("u", 9, (9, 9))
        await one.write("t", 12, (2, 2))
        await one.work(one.below)
        uppers: list[int] = []

        async def be_first() -> bool:
            await one.work(one.new, rounds=1)
            uppers.append((await one.below.client.state(V)).upper)
            return False

        async def die() -> bool:
            return True

        one.new.client.rivals, one.other.client.rivals = die, be_first
        await one.work(one.other)
        assert uppers == [8], "the first one has brought the contents over, and no more"
        for process in (one.new, one.other):
            dataflow = process.worker.dataflow(GlobalId("v1"))
            assert dataflow is not None
            assert dataflow.stopped is None
        assert await one.held(6) == [(1, 1)]
        assert await one.held(8) == [(1, 1), (7, 7)]
        assert await one.held(9) == [(1, 1), (7, 7), (9, 9)]
        assert await one.held(12) == [(1, 1), (2, 2), (7, 7), (9, 9)]


@pytest.mark.parametrize("when", ["before it is taken", "while it is taken"])
async def test_a_view_that_is_complete_keeps_what_it_holds(tmp_path: Path, when: str) -> None:
    """Readers know its contents for all times. It changes hands all the same, and nobody waits."""
    async with site(tmp_path) as one:
        await one.say(STAGED)
        await one.work()
        below = ShardId("m")

        async def complete() -> None:
            upper = (await one.below.client.state(below)).upper
            if upper != EMPTY_FRONTIER:
                last = Append(below, DESC, [], upper, EMPTY_FRONTIER, GlobalId("m0"))
                assert isinstance(await one.below.client.append_all([last]), Appended)

        if when == "before it is taken":
            await complete()
        else:
            one.new.client.meanwhile = complete
        await one.say(APPLIED, one.new, one.other)
        await one.work(one.new, one.other)
        state = await one.below.client.state(V)
        assert (state.writer, state.pending, state.upper) == ("v1", None, EMPTY_FRONTIER)
        assert await one.held(1_000) == [(1, 1)]
        await one.say(FINISHED)
        await one.write("u", 50, (4, 4))
        await one.work()
        for replica in (one.new, one.other):
            running = replica.worker.dataflow(GlobalId("v1"))
            assert running is not None
            assert running.stopped is None
            assert not isinstance(running.sink, TakeoverSink)
        assert await one.held(1_000) == [(1, 1)]


async def test_a_version_that_never_learns_is_barred(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        await one.say(STAGED)
        await one.work()
        await one.say(APPLIED, one.new, one.other)
        await one.write("t", 30)
        await one.work(one.below, one.new)
        await one.write("t", 40, (3, 3))
        await one.work(one.below, one.old)
        dataflow = one.old.worker.dataflow(GlobalId("v0"))
        assert dataflow is not None
        assert dataflow.stopped == "WriterMismatch"
        await one.work()
        assert await one.held(40) == [(1, 1), (3, 3), (7, 7)]
        await one.say(FINISHED)
        await one.write("u", 50, (4, 4))
        await one.work()
        for replica in (one.new, one.other):
            running = replica.worker.dataflow(GlobalId("v1"))
            assert running is not None
            assert not isinstance(running.sink, TakeoverSink), "an ordinary view by now"
        assert await one.held(50) == [(1, 1), (3, 3), (4, 4), (7, 7)]


async def test_a_discarded_one_leaves_nothing_behind(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        before = await one.below.client.state(V)
        await one.say(STAGED)
        await one.work()
        sink = one.sink
        assert sink.comparison is not None
        hold = sink.comparison.hold
        assert hold._shard_ids == (V,)
        await one.say(DISCARDED)
        await one.work()
        assert one.new.worker.dataflows() == []
        assert not list(hold._shard_ids), "the view's history is let go of"
        assert sink.comparison is None
        after = await one.below.client.state(V)
        assert (before.writer, before.batches, before.pending) == (
            after.writer,
            after.batches,
            after.pending,
        )


async def test_a_view_gets_more_columns(tmp_path: Path) -> None:
    """Rows that an older version stored have NULL there; readers of the older one see its own."""
    wide = relation_desc(("a", INT8), ("b", INT8), ("c", INT8))
    relation = Map(M, (call(ADD, col(0), col(1)),))
    async with site(tmp_path, relation) as one:
        one.world.views["v"].descs[1] = wide
        await one.say(STAGED)
        await one.work()
        compared = one.sink.comparison
        assert compared is not None
        assert compared.difference.updates(Timestamp(9)) == [
            Update((1, 1, 2), Timestamp(9), 1),
            Update((1, 1, None), Timestamp(9), -1),
        ]
        await one.say(APPLIED)
        await one.write("t", 30)
        await one.work()
        await one.write("t", 31, (2, 3))
        await one.work()
        client = one.below.client
        rows = {
            desc.arity: {
                ts: sorted(u.row for u in await client.snapshot(V, desc, Timestamp(ts)))
                for ts in (6, 31)
            }
            for desc in (DESC, wide)
        }
        assert rows[3] == {6: [(1, 1, None)], 31: [(1, 1, 2), (2, 3, 5)]}
        assert rows[2] == {6: [(1, 1)], 31: [(1, 1), (2, 3)]}
        updates = await client.read_updates(V, DESC, Timestamp(7), Timestamp(32))
        assert sum(u.diff for u in updates if u.row == (1, 1)) == 0, "for them it did not change"
