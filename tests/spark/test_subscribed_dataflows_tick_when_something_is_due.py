"""Goal: a subscription takes no more of the task that it shares than its changes need.

Method: ticks are counted and measured while time passes, and after a backlog has gathered.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from evertide.expr.relation import Filter, Get
from evertide.expr.scalar import Call, ColumnRef
from evertide.expr.temporal import MZ_NOW
from evertide.spark import subscribe
from evertide.vocab.sql_type import BOOL, INT4, MZ_TIMESTAMP
from tests.spark.random_plans import TIME_COMPARISONS, TO_TIME
from tests.spark.subscribed import DESC, IMPORT, Place, end, opened

BEFORE = TIME_COMPARISONS[0]
# Rows are there until the time that they name.
UNTIL = Filter(
    Get(IMPORT.global_id, DESC.types),
    (Call(BEFORE, (MZ_NOW, Call(TO_TIME, (ColumnRef(0, INT4),), MZ_TIMESTAMP)), BOOL),),
)


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setattr(subscribe, "_PROGRESS_S", 600.0)
    async with opened(tmp_path) as made:
        yield made


def spans(place: Place, patch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The times of all ticks from now on."""
    engine = place.worker.engine
    assert engine is not None
    found: list[tuple[int, int]] = []
    tick = engine.tick

    async def noted(dataflow_id: Any, inputs: Any, lower: Any, upper: Any) -> Any:
        found.append((lower, upper))
        return await tick(dataflow_id, inputs, lower, upper)

    patch.setattr(engine, "tick", noted)
    return found


@pytest.mark.parametrize("progress", [False, True])
async def test_time_alone_makes_no_tick_before_something_is_due(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, progress: bool
) -> None:
    begun = await place.write((75, 1))
    ticks = spans(place, monkeypatch)
    serving = place.subscribe(relation=UNTIL, progress=progress)
    assert await place.reader.next() == (Counter({(begun, 75): 1}), begun + 1)
    place.acknowledge()
    at = await place.write()
    assert await place.reader.next() == (Counter(), at + 1), "progress, which it is told at first"
    place.acknowledge()
    while place.now < 70:
        at = await place.write()
        if progress:
            assert await place.reader.next() == (Counter(), at + 1)
            place.acknowledge()
        else:
            await asyncio.sleep(0.2)
            assert place.reader.batches == []
    assert ticks == [(begun, begun + 1)]
    await place.write()
    assert await place.reader.next() == (Counter({(75, 75): -1}), 81)
    assert ticks[1:] == [(71, 81)]
    await end(serving)


async def test_a_backlog_is_taken_in_by_stretches(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribe, "TICK_ROWS", 2)
    serving = place.subscribe()
    await place.reader.next()
    ticks = spans(place, monkeypatch)
    written = {(await place.write((value, 1)), value): 1 for value in range(11, 17)}
    found: Counter[tuple[int, object]] = Counter()
    sizes, upper = [], 0
    while upper <= place.now:
        place.acknowledge()
        changes, upper = await place.reader.next()
        found += changes
        sizes.append(len(changes))
    assert found == Counter(written)
    assert sizes == [2, 2, 2]
    assert [start for start, _ in ticks[1:]] == [end for _, end in ticks[:-1]]
    await end(serving)
