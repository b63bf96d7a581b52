"""One seed played: processes come and go, clients work, things go wrong, and then all is quiet."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from evertide.persist.faults import StoreFailing, StoreFull
from evertide.persist.handle import PersistClient
from evertide.persist.state import create, initial_state
from evertide.persist.txn import TableWrite
from evertide.vocab.ids import Epoch, GlobalId, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp, step_back
from tests.sim.audit import audit
from tests.sim.cast import Cast
from tests.sim.ddl import audit_catalog
from tests.sim.feed import FEED
from tests.sim.history import DESC, History, Readings, Violation
from tests.sim.loop import Process, SimLoop
from tests.sim.network import NO_FAULTS, Faults, Hub, Network
from tests.sim.node import MAX_SKEW_MS, TXNS, Generation, Node, Place
from tests.sim.shape import Shape, Tells
from tests.sim.store import SimBlob, SimStore
from tests.sim.stored import COUNTERS, DEFINITIONS, Collection, Table, View

# Without faults, whatever was begun ends within this time.
PATIENCE_S = 120.0
# A watcher that was not told looks by itself within this time.
CATCH_UP_S = 10.0


class Running:
    """One process under way, and those of its tasks that end by themselves or are ended."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.sessions: list[asyncio.Task[None]] = []
        self.committing = node.start(node.writes.run, "group commit")


class Scenario:
    """All that happens, and what is known about it afterwards."""

    def __init__(self, shape: Shape, loop: SimLoop) -> None:
        self.shape = shape
        self.loop = loop
        self.history = History(loop)
        self.views: list[View] = []
        self.network = Network(loop, random.Random(f"network {shape.seed}"), NO_FAULTS)
        self._blob_network = Network(loop, random.Random(f"blob {shape.seed}"), NO_FAULTS)
        self._blob_network.cut_off = self.network.cut_off
        self.place = self._make_place()
        self.rng = random.Random(f"scenario {shape.seed}")
        self.slots: dict[int, Running] = {}
        self._generation = Generation(Epoch(0), Epoch(0))
        self._opening: asyncio.Task[None] | None = None
        self._processes = 0
        self._cast = Cast(shape, self.history, (), (), (), asyncio.Event())

    @property
    def tables(self) -> list[ShardId]:
        return [ShardId(f"t{number}") for number in range(self.shape.tables)]

    def _make_place(self) -> Place:
        apart, tells = self.shape.oracle_apart, self.shape.tells
        hub = Hub(self.network)
        return Place(
            loop=self.loop,
            store=SimStore(
                self.network,
                tells=tells is not Tells.NOBODY,
                ring=hub.publish if tells is Tells.EVERYBODY else None,
            ),
            oracle_store=SimStore(self.network) if apart else None,
            blob=SimBlob(self._blob_network),
            hub=hub,
            readings=Readings(),
            grace_s=self.shape.limits.grace_s,
            cache_bytes=self.shape.limits.cache_bytes,
        )

    async def open(self) -> None:
        """Tables and views in a first generation, then all processes; nothing goes wrong yet."""
        await self._open_generation(may_crash=False)
        await self._in_process("creator", self._create)
        collections: list[Collection] = [Table(table) for table in [*self.tables, COUNTERS]]
        if not self.shape.work.replacers:
            collections += self.views
        cast = self._cast
        cast.tables, cast.readable, cast.views = self.tables, collections, self.views
        for slot in range(self.shape.processes):
            self._start(slot)
        self.network.faults = self.shape.faults
        self._blob_network.faults = self.shape.blob_faults

    async def close(self) -> None:
        """No more faults; all that was begun ends, whoever follows reaches the end."""
        self.loop.note("calm")
        # Hints may get lost at any time: nothing depends on them.
        self.network.faults = Faults(lost_hint=self.shape.faults.lost_hint)
        self._blob_network.faults = NO_FAULTS
        self.network.cut_off.clear()
        for slot, running in list(self.slots.items()):
            running.node.process.steps_to_live = None
            if not running.node.process.alive:
                self._restart(slot, running)
        await self._finish()
        await self._catch_up()
        while not await self._in_process("auditor", self._audit):
            await self.take_over()  # fenced, by a supervisor of whom only this arrived

    async def _audit(self, node: Node) -> bool:
        client = self._cast.client(node)
        await audit(client)
        await audit_catalog(client)
        return True

    async def take_over(self) -> None:
        """A new generation, with a process in each place. The older ones are not told."""
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open_and_start())
        await asyncio.shield(self._opening)

    async def _open_and_start(self) -> None:
        await self._open_generation(may_crash=self.shape.troubles.crash_s is not None)
        for slot in list(self.slots):
            self._start(slot)

    async def _open_generation(self, *, may_crash: bool) -> None:
        """Older ones are fenced, and the oracle knows all that was written."""
        while True:
            life = self.rng.randrange(60) if may_crash and self.rng.random() < 0.3 else None
            opened = await self._in_process("supervisor", self._raise_epochs, life)
            if opened is not None:
                self._generation = opened
                self.loop.note(f"generation {opened.epoch} is open")
                return

    async def _raise_epochs(self, older: Node) -> Generation:
        place = self.place
        oracle_epoch = Epoch(0)
        if place.oracle_store is not None:
            oracle_epoch = await place.oracle_store.raise_epoch()
        nodes: dict[Epoch, Node] = {}

        def client_for(epoch: Epoch) -> PersistClient:
            nodes[epoch] = Node(place, older.process, Generation(epoch, oracle_epoch))
            return nodes[epoch].client

        durable = await older.openable(client_for).open()
        node = nodes[durable.epoch]
        await node.txns.ensure()
        upper = await node.txns.upper()
        if upper > MIN_TS:
            await node.oracle.apply_write(Timeline.EPOCH_MS, step_back(upper))
        return Generation(durable.epoch, oracle_epoch)

    async def _create(self, node: Node) -> None:
        lag = self.shape.limits.since_lag
        first = initial_state(since_lag=lag)
        fed = [FEED] if self.shape.work.feeders else []
        shards = [create(shard_id, first) for shard_id in [*self.tables, COUNTERS, *fed]]
        await node.client.append_all([], also=shards)
        node.start(node.writes.run, "group commit")
        write = TableWrite(DESC, [(("counter", 0, 0), 1)])
        as_of = await node.writes.write({COUNTERS: write}, {})
        self.views = [self._draw_view(number, as_of) for number in range(self.shape.views)]
        for view in self.views:
            await node.client.append_all([], also=view.create(lag))

    def _draw_view(self, number: int, as_of: Timestamp) -> View:
        inputs = [*self.tables, COUNTERS]
        writers = [GlobalId(f"v{number}.{version}") for version in range(3)]
        return View(
            shard_id=ShardId(f"view{number}"),
            inputs=tuple(self.rng.sample(inputs, self.rng.randint(1, min(2, len(inputs))))),
            definitions={writer: self.rng.choice(DEFINITIONS) for writer in writers},
            as_of=as_of,
        )

    def draw_skew(self) -> int:
        """How far a clock may be off."""
        if self.shape.troubles.clock_s is None:
            return 0
        return self.rng.randint(-MAX_SKEW_MS // 2, MAX_SKEW_MS // 2)

    def _start(self, slot: int) -> None:
        """Start a process in this place, whatever became of the one before."""
        process = self._new_process(f"p{slot}")
        process.skew_ms = self.draw_skew()
        node = process.context.run(Node, self.place, process, self._generation)
        running = self.slots[slot] = Running(node)
        process.on_end = lambda: self._ended(slot, running)
        for part in self._cast.parts(slot, node):
            task = node.start(part.role, part.name)
            if part.finite:
                running.sessions.append(task)

    def _ended(self, slot: int, running: Running) -> None:
        self.loop.note(f"{running.node.process.name} is gone")
        if self.slots[slot] is running:
            self.loop.call_later(self.rng.uniform(0.0, 0.3), self._restart, slot, running)

    def _restart(self, slot: int, running: Running) -> None:
        if self.slots[slot] is not running:
            return
        if not self._fenced():
            self._start(slot)
        elif self._opening is None or self._opening.done():
            # By a supervisor that died before it could start anything.
            self._opening = asyncio.create_task(self._open_and_start())

    def _fenced(self) -> bool:
        place, generation = self.place, self._generation
        oracle = place.oracle_store
        return place.store.epoch != generation.epoch or (
            oracle is not None and oracle.epoch != generation.oracle
        )

    async def _finish(self) -> None:
        """Clients go home, each after its last statement."""

        def under_way() -> list[str]:
            tasks = [task for running in self.slots.values() for task in running.sessions]
            return [task.get_name() for task in tasks if not task.done()]

        self._cast.closing.set()
        await self._within(PATIENCE_S, under_way, "statements did not end")
        # Time moves on by itself once more.
        await asyncio.sleep(1.3)

    async def _catch_up(self) -> None:
        """Nothing is written any more, so whoever follows must reach the end."""
        for running in self.slots.values():
            running.committing.cancel()
        await asyncio.sleep(0.5)
        names = {running.node.process.name for running in self.slots.values()}
        end = self.place.store.upper(TXNS)

        def behind() -> list[str]:
            shards = [view.shard_id for view in self.views]
            return [
                *(shard for shard in shards if self.place.store.upper(shard) < end),
                *(
                    f"{one.process} following {one.shard_id}"
                    for one in self.history.followed
                    if one.listening and one.process in names and one.upper < end
                ),
            ]

        await self._within(CATCH_UP_S, behind, "were not told of changes, and did not look")

    async def _within(
        self, limit_s: float, pending: Callable[[], list[str]], complaint: str
    ) -> None:
        deadline_s = self.loop.time() + limit_s
        while pending():
            if self.loop.time() > deadline_s:
                raise Violation(f"{complaint}: {', '.join(pending())}")
            await asyncio.sleep(0.25)

    async def _in_process(
        self, name: str, work: Callable[[Node], Awaitable[Any]], steps_to_live: int | None = None
    ) -> Any:
        """The result of work in a process of its own; None if it did not live to finish it."""
        process = self._new_process(name)
        process.steps_to_live = steps_to_live
        node = process.context.run(Node, self.place, process, self._generation)
        ended: asyncio.Future[Any] = self.loop.create_future()
        process.on_end = lambda: None if ended.done() else ended.set_result(None)

        async def run() -> None:
            try:
                ended.set_result(await work(node))
            except (StoreFull, StoreFailing):
                process.kill()

        node.start(run, name)
        result = await ended
        process.kill()
        return result

    def _new_process(self, name: str) -> Process:
        self._processes += 1
        return Process(f"{name}.{self._processes}")
