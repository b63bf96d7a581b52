"""Goal: what may pass ends no subscription: its reader gets every change once, later.

Method: engines, reads and holds that fail a few times, some after the work was done; at the end
the test is told what it would have been told anyway.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from evertide.persist import trouble
from evertide.persist.faults import BlobMissing, Corrupt, StoreFailing, StoreFull
from evertide.spark.engine import EngineFailing
from evertide.spark.watch import JobFailed
from evertide.vocab.ids import GlobalId
from tests.spark.subscribed import Place, Reader, end, opened

DATAFLOW = GlobalId("t1")
OF_ENGINES = (EngineFailing("OSError: no space left"), JobFailed("a job"), OSError("no space left"))
OF_STORES = (
    StoreFull("no space left"),
    StoreFailing("an I/O error"),
    Corrupt("not what was written"),
    BlobMissing("part"),
)


class Failing:
    """Calls that fail for as long as there are faults left, before or after they are done."""

    def __init__(self, call: Callable[..., Awaitable[Any]], *, after: bool = False) -> None:
        self.faults: list[Exception] = []
        self.count = 0
        self._call = call
        self._after = after

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and not self._after:
            raise fault
        done = await self._call(*args, **kwargs)
        if fault is not None:
            raise fault
        return done


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setattr(trouble, "_FIRST_PAUSE_S", 0.02)
    async with opened(tmp_path) as made:
        yield made


def failing(owner: Any, name: str, patch: pytest.MonkeyPatch, *, after: bool = False) -> Failing:
    made = Failing(getattr(owner, name), after=after)
    patch.setattr(owner, name, made)
    return made


async def test_an_engine_that_failed_is_given_its_state_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = place.worker.engine
    ticks = failing(engine, "tick", monkeypatch, after=True)
    drops = failing(engine, "drop", monkeypatch)
    ticks.faults, drops.faults = list(OF_ENGINES), [OSError("no space left")]
    serving, begun = place.subscribe(), place.now
    assert await place.reader.next() == (Counter({(begun, 1): 1, (begun, 2): 1}), begun + 1)
    ticks.faults = list(OF_ENGINES)
    place.acknowledge()
    at = await place.write((7, 1), (1, -2))
    assert await place.reader.next() == (Counter({(at, 7): 1, (at, 1): -1}), at + 1)
    assert (ticks.faults, drops.faults) == ([], [])
    await end(serving)


async def test_a_store_that_failed_is_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    creates = failing(place.worker.engine, "create", monkeypatch)
    holds = failing(place.storage, "hold", monkeypatch)
    snapshots = failing(place.storage.columns, "snapshot", monkeypatch)
    updates = failing(place.storage.columns, "updates", monkeypatch)
    holds.faults, snapshots.faults, updates.faults = list(OF_STORES), list(OF_STORES), []
    serving, begun = place.subscribe(), place.now
    assert await place.reader.next() == (Counter({(begun, 1): 1, (begun, 2): 1}), begun + 1)
    updates.faults = list(OF_STORES)
    place.acknowledge()
    at = await place.write((7, 1))
    assert await place.reader.next() == (Counter({(at, 7): 1}), at + 1)
    assert (holds.faults, snapshots.faults, updates.faults) == ([], [], [])
    assert creates.count == 1, "a read that failed harms no state"
    await end(serving)


async def test_what_could_not_be_dropped_is_dropped_at_the_end(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "_FIRST_PAUSE_S", 600.0)
    engine = place.worker.engine
    assert engine is not None
    ticks = failing(engine, "tick", monkeypatch, after=True)
    drops = failing(engine, "drop", monkeypatch)
    ticks.faults, drops.faults = [OSError("no space left")], [OSError("no space left")]
    serving = place.subscribe()
    async with asyncio.timeout(30):
        while drops.faults:
            await asyncio.sleep(0.01)
    assert await engine.sizes(DATAFLOW)
    await end(serving)
    assert not await engine.sizes(DATAFLOW)


async def test_many_that_fail_together_are_told_of_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = failing(place.worker.engine, "tick", monkeypatch)
    ticks.faults = [OSError("no space left") for _ in range(6)]
    readers = [Reader() for _ in range(3)]
    with capture_logs() as told:
        serving = [place.subscribe(reader) for reader in readers]
        for reader in readers:
            await reader.next()
    events = [one["event"] for one in told]
    assert events.count("computing subscriptions failed, trying again") == 1
    assert events[-1] == "computing subscriptions went on"
    for one in serving:
        await end(one)


async def test_a_bug_ends_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = failing(place.worker.engine, "tick", monkeypatch)
    ticks.faults = [AssertionError("a bug")]
    with pytest.raises(AssertionError, match="a bug"):
        await asyncio.wait_for(place.subscribe(), 30)
    assert len(place.subscribes) == 0
