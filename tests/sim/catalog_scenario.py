"""One seed played over the catalog: adapters race each other, die, and are fenced."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from structlog.testing import capture_logs

from evertide.catalog.durable.place import CatalogKind
from evertide.catalog.objects import AuditEvent
from evertide.catalog.snapshot import Snapshot
from evertide.persist.faults import StoreFailing, StoreFull
from evertide.vocab.timestamp import step_back
from tests.sim import troubles
from tests.sim.cast import Cast, Part
from tests.sim.catalog_checks import check_catalog
from tests.sim.catalog_clients import CatalogHistory, SqlClient
from tests.sim.catalog_kept import KeptCatalog, kept_as
from tests.sim.loop import SimLoop
from tests.sim.node import CATALOG, Node
from tests.sim.run import SeedFailed, check_nothing_broke, determinism
from tests.sim.scenario import CATCH_UP_S, Scenario
from tests.sim.shape import KIB, Shape, Work, draw_shape
from tests.sim.upkeep import compact_some

NO_WORK = Work(
    writers=0, counters=0, readers=0, ddls=0, historians=0, followers=0,
    feeders=0, compactors=0, sweepers=0, droppers=0, replacers=0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Played:
    """What a seed came to. Equal seeds have equal digests."""

    digest: int
    steps: int
    changes: int
    refused: int
    looked: int
    followed: int
    generations: int


def draw_catalog_shape(seed: int) -> Shape:
    """Processes, faults and troubles as for storage; the work is another one."""
    shape = draw_shape(seed)
    return replace(
        shape,
        duration_s=min(shape.duration_s, 0.6),
        processes=max(2, shape.processes),
        tables=1,
        views=0,
        pause_s=min(shape.pause_s, 0.05),
        work=NO_WORK,
        # Rows of a catalog are few: pieces of them would be many, and show nothing new.
        limits=replace(shape.limits, part_bytes=16 * KIB),
    )


def kind_of(shape: Shape) -> CatalogKind:
    """Where the catalog of this scenario is kept."""
    return list(CatalogKind)[shape.seed % len(CatalogKind)]


class CatalogLoop(SimLoop):
    """A subscription that is thrown away at the end asks for a step that never comes."""

    def _check_closed(self) -> None:
        pass


class CatalogCast(Cast):
    """Who works in which process."""

    def __init__(self, shape: Shape, parts: Callable[[int, Node], list[Part]]) -> None:
        super().__init__(shape, None, (), (), (), asyncio.Event())  # type: ignore[arg-type]
        self._parts = parts

    def parts(self, slot: int, node: Node) -> list[Part]:
        return self._parts(slot, node)


class CatalogScenario(Scenario):
    """All that happens to a catalog, and what is known about it afterwards."""

    def __init__(self, shape: Shape, loop: SimLoop) -> None:
        super().__init__(shape, loop)
        self._cast = CatalogCast(shape, self._parts)
        self._clients = 0
        self.kept = KeptCatalog(kind_of(shape), self.place)
        self.told = CatalogHistory(loop)
        self.last: Snapshot | None = None
        self.events: list[AuditEvent] = []

    def _parts(self, slot: int, node: Node) -> list[Part]:
        """Some who change and one who looks in each process; one who uses what others made."""
        clients = [self._client(node) for _ in range(4)]
        first, second, third, fourth = clients
        work: list[tuple[str, float, Callable[[], Awaitable[None]]]] = [
            ("change", 1.0, first.change),
            ("change", 1.0, second.change),
            ("look", 2.0, third.look),
            ("make", 2.0, third.make),
            ("use", 2.0, fourth.use),
        ]
        if slot == 0 and self.kept.kind is not CatalogKind.STASH:
            work.append(("compact", 2.0, self._compact(node)))
        parts = [
            Part(name, partial(self._repeat, statement, self._pauses(pauses)), finite=True)
            for name, pauses, statement in work
        ]
        return [*parts, Part("follow", partial(self._keep_following, fourth), finite=False)]

    def _client(self, node: Node) -> SqlClient:
        self._clients += 1
        return SqlClient(
            node, self.told, random.Random(f"{self.shape.seed} client {self._clients}")
        )

    def _compact(self, node: Node) -> Callable[[], Awaitable[None]]:
        part_bytes = self.shape.limits.part_bytes
        client = self._cast.client(node)
        return partial(compact_some, client, shard_ids=[CATALOG], part_bytes=part_bytes)

    def _pauses(self, times: float) -> Iterator[float]:
        """Seconds between statements, so many times as long as usual."""
        self._clients += 1
        rng = random.Random(f"{self.shape.seed} pauses {self._clients}")
        while True:
            yield rng.expovariate(1 / (self.shape.pause_s * times))

    async def _repeat(
        self, statement: Callable[[], Awaitable[None]], pauses: Iterator[float]
    ) -> None:
        """A full or failing store concerns the statement that met it, and no other."""
        while True:
            await asyncio.sleep(next(pauses))
            if self._cast.closing.is_set():
                return
            try:
                await statement()
            except (StoreFull, StoreFailing) as fault:
                self.loop.note(f"told: {fault}")

    async def _keep_following(self, client: SqlClient) -> None:
        while True:
            try:
                await client.follow()
            except (StoreFull, StoreFailing) as fault:
                self.loop.note(f"told: {fault}")
            await asyncio.sleep(0.1)

    async def _catch_up(self) -> None:
        """Who follows the catalog in a process that lives must reach its end."""
        await super()._catch_up()
        names = {running.node.process.name for running in self.slots.values()}
        end = self.kept.upper()

        def behind() -> list[str]:
            return [
                one.process
                for one in self.told.followed
                if one.process in names and one.upper < end
            ]

        await self._within(CATCH_UP_S, behind, "do not follow the catalog to its end")

    async def _audit(self, node: Node) -> bool:
        """Somebody new finds what the others left, as a snapshot and as a log."""
        catalog = await node.catalog()
        self.last = await catalog.current()
        self.events = await catalog.audit_events(step_back(self.last.upper))
        return True


def play_catalog(shape: Shape) -> Played:
    """Play a scenario and check everything; raises SeedFailed."""
    loop = CatalogLoop(random.Random(f"loop {shape.seed}"), in_order=shape.in_order)
    kind = kind_of(shape)
    with determinism(loop, shape), kept_as(kind), capture_logs() as logs:
        try:
            scenario = CatalogScenario(shape, loop)
            loop.run_until_complete(troubles.play(scenario))
            check_nothing_broke(loop, logs)
            assert scenario.last is not None
            told, last, events = scenario.told, scenario.last, scenario.events
            accounts = check_catalog(scenario.kept, told, last, events)
        except Exception as failure:
            raise SeedFailed(shape, failure, loop) from failure
        finally:
            loop.bury()
    return Played(
        digest=loop.digest,
        steps=loop.moment,
        changes=len(accounts.changes),
        refused=len(told.ledger.told) - len(accounts.changes),
        looked=len(told.ledger.looked),
        followed=len(told.followed),
        generations=scenario.place.store.epoch,
    )
