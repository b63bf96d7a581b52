"""Goal: a view has the old definition's contents up to one timestamp and the new one's from there
on, whoever dies, lags or races; and nobody is ever told anything else.

Method: random views, and a view below that changes hands too; processes that see the catalog late
and die; readers that conclude what a shard does not say yet, or are told it by a replica. All that
any of them was told is compared with what the shards hold in the end, at every timestamp, and that
with the definitions.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from evertide.expr.interpret import Collection
from evertide.persist.store.memory import MemoryStore
from evertide.persist.txn import register_table
from evertide.spark import outputs
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timeline, Timestamp, step_back, step_forward
from tests.spark.hands import (
    APPLIED,
    CLUSTERS,
    CREATED,
    DESC,
    DISCARDED,
    FINISHED,
    STAGED,
    TABLES,
    TYPES,
    Held,
    Process,
    View,
    World,
    commit,
    history,
    random_relation,
)
from tests.spark.histories import Contents, contents, output_at
from tests.support.seeds import seeds

# From here on the views hold something.
FIRST = 5


@dataclass
class Run:
    """One random history."""

    world: World
    processes: dict[str, Process]
    rng: Random
    # (view, timestamp, contents) that somebody was told.
    told: list[tuple[str, Timestamp, Contents]] = field(default_factory=list)

    # Who is in the middle of something, and can do nothing else.
    busy: set[str] = field(default_factory=set)

    @property
    def any_process(self) -> Process:
        return self.rng.choice([p for p in self.processes.values() if p.name not in self.busy])

    async def meanwhile(self, name: str) -> None:
        """What the others do while one of them is taking a shard."""
        self.busy.add(name)
        for _ in range(self.rng.choice([0, 0, 3, 10])):
            await self.act()
        self.busy.discard(name)

    async def rivals(self, name: str) -> bool:
        """Other replicas of new versions that come first, with a timestamp of their own choice."""
        self.busy.add(name)
        for other in self.rng.sample(CLUSTERS["new"], len(CLUSTERS["new"])):
            if other not in self.busy and self.rng.random() < 0.7:
                await self.work(self.processes[other])
        self.busy.discard(name)
        return self.rng.random() < 0.6

    async def work(self, process: Process) -> None:
        self.busy.add(process.name)
        await process.work()
        self.busy.discard(process.name)

    async def look(self) -> None:
        """Read as far as anything can be known, by what the reader has seen of the catalog."""
        reader, name = self.any_process, self.rng.choice(["m", "v", "d"])
        view = self.world.collection(name, self.world.log[reader.seen])
        as_of = step_back((await reader.storage.look([view])).upper(view))
        if as_of >= FIRST:
            held = await reader.storage.contents(view, as_of)
            found = Collection(list(held.rows), list(held.errors))
            self.told.append((name, as_of, contents(found, TYPES)))

    async def look_ahead(self) -> None:
        """Ask a replica for what the shard lacks; the catalog must not have switched since."""
        name = self.rng.choice(["m", "v"])
        view = self.world.views[name]
        as_of = await self.world.oracle.read_ts(Timeline.EPOCH_MS)
        if self.world.log[-1][name] not in (CREATED, STAGED, DISCARDED):
            return
        replica = self.any_process
        dataflow = replica.worker.dataflow(view.version(0))
        durable = step_back((await replica.client.state(view.shard_id)).upper)
        if dataflow is None or dataflow.frontier <= as_of or not FIRST <= durable < as_of:
            return
        assert dataflow.sink is not None
        found = dataflow.sink.changes(step_forward(durable), step_forward(as_of))
        if found is not None:
            held = await replica.client.snapshot(view.shard_id, DESC, durable)
            self.told.append((name, as_of, output_at([*held, *found], TYPES, as_of)))

    async def catalog(self) -> None:
        """A statement about a view, or a look at what others have said."""
        name = self.rng.choice(["m", "v"])
        view, stage = self.world.views[name], self.world.log[-1][name]
        state = await self.any_process.client.state(view.shard_id)
        if stage == CREATED and state.upper > FIRST:
            view.as_ofs[1] = await self.world.oracle.read_ts(Timeline.EPOCH_MS)
            self.world.note(name, STAGED)
        elif stage == STAGED:
            self.world.note(name, APPLIED if self.rng.random() < 0.9 else DISCARDED)
        elif stage == APPLIED and (state.writer, state.pending) == (view.version(1), None):
            self.world.note(name, FINISHED)

    async def follow(self) -> None:
        process, last = self.any_process, len(self.world.log) - 1
        if process.seen < last:
            await process.follow(self.rng.randrange(process.seen + 1, last + 1))

    async def act(self) -> None:
        """Something happens."""
        if len(self.busy) > 2:
            return
        draw = self.rng.random()
        if draw < 0.20:
            await commit(self.world, self.any_process, self.rng, empty=self.rng.random() < 0.4)
        elif draw < 0.55:
            process = self.any_process
            if not process.has_chosen or self.rng.random() < 0.3:
                await self.work(process)  # else it is slow when others could overtake it
        elif draw < 0.75:
            await self.look()
        elif draw < 0.85:
            await self.look_ahead()
        elif draw < 0.90:
            await self.catalog()
        elif draw < 0.97:
            await self.follow()
        else:
            await self.any_process.die()

    async def settle(self) -> None:
        """Everybody learns all and lives; what was begun comes to its end."""
        self.world.dies = None
        for process in self.processes.values():
            process.client.dies = None
        for _ in range(100):
            for process in self.processes.values():
                if process.seen < len(self.world.log) - 1:
                    await process.follow(len(self.world.log) - 1)
                await process.work()
            await commit(self.world, self.processes["a"], self.rng, empty=self.rng.random() < 0.5)
            await self.look()
            left = [n for n, stage in self.world.log[-1].items() if stage == APPLIED]
            if not left:
                break
            await self.catalog()
        assert not left, f"{left} never changed hands"
        last = await self.processes["a"].txns.upper()
        uppers = [0]
        for _ in range(100):
            for process in self.processes.values():
                await process.work()
            views = [self.world.collection(name, self.world.log[-1]) for name in "mvd"]
            look = await self.processes["a"].storage.look(views)
            uppers = [look.upper(view) for view in views]
            if min(uppers) >= last:
                return
            await commit(self.world, self.processes["a"], self.rng)
        raise AssertionError(f"some view does not go on: {uppers}, not {last}")


@asynccontextmanager
async def running(seed: int, scratch: Path) -> AsyncIterator[Run]:
    rng = Random(seed)
    store = MemoryStore()
    world = World(store.consensus(await store.raise_epoch()))
    start = Timestamp(FIRST)
    for name, cluster, inputs in (("m", "below", "tu"), ("v", "old", "tum"), ("d", "below", "v")):
        relations = [random_relation(rng, inputs) for _ in range(2)]
        world.views[name] = View(name, cluster, relations, [start, start])
    world.log.append(dict.fromkeys("mvd", CREATED))
    processes = {name: Process(name, world, scratch) for name in "abcde"}
    first = processes["a"]
    await first.txns.ensure()
    tables = [register_table(ShardId(name)) for name in TABLES]
    await first.client.append_all([], also=tables)
    for name in "mvd":
        writer = world.views[name].version(0)
        lag = 1_000_000
        await first.client.create_shard(ShardId(name), since=start, writer=writer, since_lag=lag)
    while await first.txns.upper() <= FIRST:
        await commit(world, first, rng)
    for process in processes.values():
        await process.follow(0)
    run = Run(world, processes, rng)
    world.meanwhile = run.meanwhile
    world.rivals = run.rivals
    world.dies = lambda: rng.random() < 0.02
    for process in processes.values():
        await process.die()
    try:
        yield run
    finally:
        for process in processes.values():
            await process.close()


async def check(run: Run) -> int:
    """How many views changed hands: every one of them at one timestamp, and as all were told."""
    held, stages = Held(dict(run.world.written)), run.world.log[-1]
    for name in "mvd":
        updates, upper = await history(run.processes["a"], ShardId(name), Timestamp(FIRST))
        held.updates[name] = updates
        for view, as_of, found in run.told:
            if view == name:
                decided = contents(held.at(name, as_of), TYPES)
                assert found == decided, f"{name} at {as_of} was told otherwise"
        versions = iter((0, 1) if stages[name] == FINISHED else (0,))
        version = next(versions)
        for ts in range(FIRST, upper):
            found = contents(held.at(name, ts), TYPES)
            if found != run.world.expected(name, version, held, ts):
                version = next(versions, -1)
                assert version >= 0, f"{name} at {ts} is not what it is defined as"
                assert found == run.world.expected(name, version, held, ts), f"{name} at {ts}"
    return sum(stage == FINISHED for stage in stages.values())


async def run_seed(seed: int, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """With shards that say at once how far a view is, and with shards that never do."""
    monkeypatch.setattr(outputs, "STILL_SECONDS", (0.0, 3_600.0)[seed % 2])
    async with running(seed, scratch) as run:
        for _ in range(260):
            await run.act()
        await run.settle()
        return await check(run)


# In the last two, the replica that chose an earlier timestamp is first, and dies.
@seeds([*range(24), 2_011, 2_034], deep=range(1_000, 1_400), fresh=100)
async def test_what_anybody_was_told_is_what_was_decided(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run_seed(seed, tmp_path, monkeypatch)


async def test_views_do_change_hands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing above would have been looked at."""
    assert sum([await run_seed(seed, tmp_path / str(seed), monkeypatch) for seed in (0, 1)]) > 1
