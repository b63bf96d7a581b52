"""Goal: a subscription's dataflow tells every change once, goes no further than its reader has
taken, and leaves nothing behind.

Method: the replica's side alone, over a table in memory and an evaluator in this process; the test
is the adapter at the other end.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evertide.dataflow.description import Derived, Import
from evertide.persist.handle import Appended
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.spark.subscribed import DESC, IMPORT, TABLE, Place, Reader, end, opened


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path) as made:
        yield made


async def test_a_view_that_changed_hands_is_known_by_its_new_definition(place: Place) -> None:
    """While its shard says nothing new, it stands still because what it follows from now does."""
    begun = Timestamp(place.now)
    shard, old, new = ShardId("v"), GlobalId("v0"), GlobalId("v1")
    await place.client.create_shard(shard, since=begun, writer=new)
    row = [Update((7,), begun, 1)]
    outcome = await place.client.compare_and_append(
        shard, DESC, row, begun, Timestamp(begun + 1), new
    )
    assert isinstance(outcome, Appended)
    stale = Import(
        GlobalId("u1"), shard, DESC, is_table=False, derived=Derived((IMPORT,), MIN_TS, old)
    )
    known = replace(stale, derived=Derived((IMPORT,), MIN_TS, new))
    serving = place.subscribe(collection=stale, progress=True)
    assert await place.reader.next() == (Counter({(begun, 7): 1}), begun + 1)
    place.acknowledge()
    at = await place.write()
    asked: list[GlobalId] = []

    def dropped(global_ids: Sequence[GlobalId]) -> None:
        asked.extend(global_ids)

    place.subscribes.look_again(dropped)
    assert asked == ["u1"]
    place.subscribes.look_again(lambda _: (known,))
    assert await place.reader.next() == (Counter(), at + 1), "concluded from what it follows from"
    await end(serving)


async def test_no_batch_before_the_last_is_taken(place: Place) -> None:
    slow, quick = place.reader, Reader()
    serving = [place.subscribe(), place.subscribe(quick)]
    begun = place.now
    assert await slow.next() == (Counter({(begun, 1): 1, (begun, 2): 1}), begun + 1)
    await quick.next()
    expected: Counter[tuple[int, object]] = Counter()
    for value in range(3, 20):
        place.acknowledge(quick)
        at = await place.write((value, 1))
        assert await quick.next() == (Counter({(at, value): 1}), at + 1)
        expected[at, value] += 1
    assert slow.batches == []
    place.acknowledge()
    assert await slow.next() == (expected, place.now + 1)
    for one in serving:
        await end(one)


async def test_changes_come_as_they_are_made(place: Place) -> None:
    serving = place.subscribe(from_ts=place.now + 1)
    assert (await place.reader.next())[0] == Counter(), "without its snapshot"
    for rows, told in (
        ([(1, -1)], {}),
        ([(1, -1), (5, 2)], {1: -1, 5: 1}),
        ([(5, -1), (1, 1)], {1: 1}),
    ):
        place.acknowledge()
        at = await place.write(*rows)
        if told:
            found, upper = await place.reader.next()
            assert {k: v for k, v in found.items() if v} == {(at, k): v for k, v in told.items()}
            assert upper == at + 1
        else:
            assert (await place.reader.next())[0] == Counter()
    await end(serving)


async def test_it_moves_to_another_engine_without_a_gap(place: Place) -> None:
    serving = place.subscribe()
    await place.reader.next()
    place.worker.use_engine(place.engine("second"))
    place.acknowledge()
    at = await place.write((7, 1), (1, -2))
    found, upper = await place.reader.next()
    assert found == Counter({(at, 7): 1, (at, 1): -1})
    assert upper == at + 1
    await end(serving)


async def test_it_ends_where_asked_and_leaves_nothing(place: Place) -> None:
    begun, last = place.now, place.now + 15
    serving = place.subscribe(up_to=last)
    await place.reader.next()
    place.acknowledge()
    await place.write((7, 1))
    assert (await place.reader.next())[1] == begun + 11
    place.acknowledge()
    await place.write((8, 1))
    found, upper = await place.reader.next()
    assert (found, upper) == (Counter(), last)
    place.acknowledge()
    await asyncio.wait_for(serving, 30)
    assert len(place.subscribes) == 0
    await place.client.leases.look_after()
    place.now += 60_000
    at = await place.write((9, 1))
    await place.client.leases.look_after()
    holds = (await place.client.state(TABLE)).holds
    assert {hold.hold_ts for hold in holds} <= {at}


async def test_it_ends_when_its_input_does(place: Place) -> None:
    """Also when that happens soon after it was told of progress."""
    begun, shard, writer = Timestamp(place.now), ShardId("v"), GlobalId("u1")
    await place.client.create_shard(shard, since=begun, writer=writer)

    async def reach(lower: int, upper: Timestamp, *rows: Update) -> None:
        outcome = await place.client.compare_and_append(
            shard, DESC, rows, Timestamp(lower), upper, writer
        )
        assert isinstance(outcome, Appended)

    await reach(begun, Timestamp(begun + 1), Update((7,), begun, 1))
    view = Import(writer, shard, DESC, is_table=False)
    serving = place.subscribe(collection=view)
    assert await place.reader.next() == (Counter({(begun, 7): 1}), begun + 1)
    place.acknowledge()
    await reach(begun + 1, Timestamp(begun + 5))
    assert await place.reader.next() == (Counter(), begun + 5)
    place.acknowledge()
    await reach(begun + 5, EMPTY_FRONTIER)
    assert await place.reader.next() == (Counter(), EMPTY_FRONTIER)
    place.acknowledge()
    await asyncio.wait_for(serving, 30)
    assert len(place.subscribes) == 0


async def test_a_cancelled_one_leaves_nothing(place: Place) -> None:
    serving = place.subscribe()
    await place.reader.next()
    await end(serving)
    assert len(place.subscribes) == 0
