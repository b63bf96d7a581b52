"""Goal: a simulated file tells as SQLite's writer does, in every order that this one allows.

Method: one process on the simulation's event loop, and somebody outside who looks at the file.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import pytest

from evertide.persist.faults import Fenced, StoreFailing, StoreFull, StoreUnreachable
from evertide.persist.store.protocol import (
    AllSet,
    CompareAndSet,
    Head,
    SetMismatch,
    SetOutcome,
    TellingConsensus,
)
from evertide.vocab.ids import Epoch, ShardId
from tests.sim.loop import Process, SimLoop
from tests.sim.network import NO_FAULTS, Faults, Network
from tests.sim.store import SimStore
from tests.sim.writer import SimTelling

SHARD = ShardId("a")
FIRST = CompareAndSet(SHARD, None, b"1")
SECOND = CompareAndSet(SHARD, 1, b"2")


@dataclass
class Site:
    """A file, a process, and what that was told in which order."""

    loop: SimLoop
    faults: Faults = NO_FAULTS
    heard: list[object] = field(default_factory=list)
    rung: list[list[ShardId]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.process = Process("p")
        self.network = Network(self.loop, random.Random(1), self.faults)
        self.store = SimStore(
            self.network, tells=True, ring=lambda _, shard_ids, __: self.rung.append(shard_ids)
        )
        found = self.process.context.run(self.store.consensus, Epoch(0))
        assert isinstance(found, SimTelling)
        assert isinstance(found, TellingConsensus)
        self.consensus = found

    def set_each(self, *sets: CompareAndSet) -> Awaitable[SetOutcome]:
        def tell(outcome: SetOutcome) -> None:
            self.heard.append(outcome)

        return self.consensus.set_each_telling(sets, tell)

    def play(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run it in the process until nothing more can happen."""

        async def outside() -> None:
            async def inside() -> None:
                try:
                    self.heard.append(await work())
                except Exception as error:  # noqa: BLE001 - told, and looked at by the test
                    self.heard.append(type(error))

            self.loop.spawn(self.process, inside(), "work")
            await asyncio.sleep(60)

        self.loop.run_until_complete(outside())

    @property
    def value(self) -> bytes | None:
        head = self.store.head(SHARD, None)
        return head.value if isinstance(head, Head) else None


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    made = SimLoop(random.Random(1))
    yield made
    made.bury()


def test_the_writer_is_told_before_whoever_waits_and_others_too(loop: SimLoop) -> None:
    site = Site(loop)

    async def work() -> str:
        await site.set_each(FIRST)
        await site.set_each(FIRST)
        return "end"

    site.play(work)
    assert site.heard == [AllSet(), SetMismatch((SHARD,)), "end"]
    assert site.rung == [[SHARD], [SHARD]]


def test_a_change_goes_on_without_whoever_asked_for_it(loop: SimLoop) -> None:
    site = Site(loop)

    async def work() -> None:
        asked = asyncio.ensure_future(site.set_each(FIRST))
        asked.cancel()

    site.play(work)
    assert site.heard == [None, AllSet()]
    assert site.value == b"1"


def test_what_queues_up_is_done_in_order(loop: SimLoop) -> None:
    site = Site(loop)

    async def work() -> list[SetOutcome]:
        asked = [site.set_each(one) for one in (FIRST, SECOND, SECOND)]
        return [await one for one in asked]

    site.play(work)
    outcomes = [AllSet(), AllSet(), SetMismatch((SHARD,))]
    assert site.heard == [*outcomes, outcomes]
    assert site.rung == [[SHARD]], "one commit"


def test_a_generation_that_begins_meanwhile_fences_it(loop: SimLoop) -> None:
    site = Site(loop)

    async def work() -> None:
        asked = site.set_each(FIRST)
        site.store._raise_epoch()
        await asked

    site.play(work)
    assert site.heard == [Fenced]
    assert site.value is None


def test_a_process_may_die_between_a_commit_and_being_told(loop: SimLoop) -> None:
    """Nor does anything happen after its death that was on its way."""
    ends = set()
    for life in range(8):
        site = Site(loop)
        site.process.steps_to_live = life
        site.play(lambda site=site: site.set_each(FIRST))  # type: ignore[misc]
        ends.add((site.value is not None, bool(site.rung), len(site.heard)))
    alive, before, after = (True, True, 2), (False, False, 0), (True, False, 0)
    assert {alive, before, after} <= ends
    assert not [end for end in ends if end[2] and not end[0]], "nothing is told of what is not done"


@pytest.mark.parametrize(
    ("faults", "told", "done"),
    [
        (Faults(full=1.0), StoreFull, {False}),
        (Faults(refused=1.0), StoreUnreachable, {False}),
        (Faults(cut=1.0, failing=1.0), StoreFailing, {False, True}),
    ],
    ids=["full", "locked", "in doubt"],
)
def test_of_a_failure_only_whoever_waits_is_told(
    loop: SimLoop, faults: Faults, told: type[Exception], done: set[bool]
) -> None:
    found = set()
    for draw in range(8):
        site = Site(loop, faults)
        site.network._rng.seed(draw)
        site.play(lambda site=site: site.set_each(FIRST))  # type: ignore[misc]
        assert site.heard == [told]
        found.add(site.value is not None)
    assert found == done


def test_a_commit_that_ended_in_an_error_is_looked_for(loop: SimLoop) -> None:
    """So it is done once, whether it had happened or not."""
    site = Site(loop, Faults(cut=0.7))

    async def work() -> None:
        for number in range(30):
            await site.set_each(CompareAndSet(SHARD, number or None, b"%d" % number))

    site.play(work)
    assert site.heard == [*[AllSet()] * 30, None]
    assert site.value == b"29"
