"""Goal: a query's changes are told once and whole, however many replicas compute them, in whatever
steps, and also when one of them goes away and comes back.

Method: replicas that a test speaks for.
"""

import asyncio
from collections.abc import Callable

import pytest

from evertide.adapter.subscribe import cluster as subscribe_cluster
from evertide.adapter.subscribe.cluster import Asked, ClusterSource
from evertide.adapter.subscribe.feed import Batch
from evertide.controller.compute import OnResponse, Unanswered
from evertide.dataflow.protocol import (
    BatchResponse,
    FailedResponse,
    RefusedResponse,
    SubscribeCommand,
)
from evertide.persist.coding.inline import encode_inline
from evertide.vocab.errors import SqlError
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("a", INT4))


class Replica:
    """One subscribe on one replica, spoken for by the test."""

    def __init__(self, command: SubscribeCommand, on_response: OnResponse) -> None:
        self.command = command
        self.tell = on_response
        self.acknowledged = 0
        self.closed = False

    def acknowledge(self) -> None:
        self.acknowledged += 1

    def close(self) -> None:
        self.closed = True

    def batch(self, upper: int, *changes: tuple[int, int, int]) -> None:
        """Changes as (ts, value, diff)."""
        updates = [Update((a,), Timestamp(ts), diff) for ts, a, diff in changes]
        self.tell(BatchResponse(self.command.request_id, encode_inline(updates), upper))


class Compute:
    """Where replicas are asked; those in `away` are not there."""

    def __init__(self) -> None:
        self.replicas: dict[str, Replica] = {}
        self.asked = 0
        self.away: set[str] = set()

    async def subscribe(
        self, name: str, command: Callable[[int], SubscribeCommand], on_response: OnResponse
    ) -> Replica:
        if name in self.away:
            raise Unanswered(name)
        self.asked += 1
        self.replicas[name] = Replica(command(self.asked), on_response)
        return self.replicas[name]


class Hold:
    """Counts where history is held."""

    hold_ts = 0
    released = False

    def move(self, to: Timestamp) -> None:
        self.hold_ts = to

    def release(self) -> None:
        self.released = True


class Place:
    """A subscription of a query on two replicas, as of 5."""

    def __init__(self, *, snapshot: bool = True) -> None:
        self.compute, self.hold = Compute(), Hold()
        asked = Asked(
            catalog_ts=Timestamp(1),
            relation=b"",
            imports=(),
            desc=DESC,
            as_of=Timestamp(5),
            snapshot=snapshot,
            up_to=None,
            progress=False,
            replicas=lambda: ["one", "two"],
        )
        self.source = ClusterSource(self.compute, asked, self.hold)  # type: ignore[arg-type]

    async def replicas(self, asked: int = 2) -> tuple[Replica, Replica]:
        """Once they have been asked so often."""
        while self.compute.asked < asked:
            await asyncio.sleep(0.001)
        return self.compute.replicas["one"], self.compute.replicas["two"]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribe_cluster, "_FIRST_RETRY_S", 0.001)


def changes(batch: Batch) -> list[tuple[int, object, int]]:
    return [(update.ts, update.row[0], update.diff) for update in batch.updates]


async def test_each_time_is_told_once() -> None:
    place = Place()
    one, two = await place.replicas()
    assert (one.command.as_of, one.command.from_ts) == (5, 5)
    one.batch(6, (5, 1, 1))
    two.batch(9, (5, 1, 1), (7, 2, 1), (8, 3, 1))
    first = await place.source.next_batch()
    assert (changes(first), first.upper) == ([(5, 1, 1)], 6)
    second = await place.source.next_batch()
    assert (changes(second), second.upper) == ([(7, 2, 1), (8, 3, 1)], 9)
    one.batch(8, (7, 2, 1))
    one.batch(12, (8, 3, 1), (10, 1, -1))
    third = await place.source.next_batch()
    assert (changes(third), third.upper) == ([(10, 1, -1)], 12)
    assert place.hold.hold_ts == 11
    place.source.close()
    assert one.closed
    assert two.closed
    assert place.hold.released


async def test_a_batch_is_acknowledged_when_it_is_taken() -> None:
    place = Place()
    one, two = await place.replicas()
    one.batch(6, (5, 1, 1))
    assert one.acknowledged == 0, "nobody asked for it yet"
    await place.source.next_batch()
    assert one.acknowledged == 1
    two.batch(6, (5, 1, 1))
    waiting = asyncio.create_task(place.source.next_batch())
    while not two.acknowledged:
        await asyncio.sleep(0.001)
    assert not waiting.done(), "it told nothing new"
    waiting.cancel()
    place.source.close()


async def test_a_replica_that_comes_back_goes_on_from_here() -> None:
    place = Place(snapshot=False)
    one, two = await place.replicas()
    assert (one.command.as_of, one.command.from_ts) == (5, 6)
    one.batch(8, (6, 1, 1))
    await place.source.next_batch()
    place.compute.away = {"one"}
    one.tell(None)
    two.tell(RefusedResponse(two.command.request_id, "not now"))
    assert two.closed
    _, again = await place.replicas(asked=3)
    assert (again.command.as_of, again.command.from_ts) == (7, 8)
    place.compute.away = set()
    back, _ = await place.replicas(asked=4)
    assert (back.command.as_of, back.command.from_ts) == (7, 8)
    back.batch(10, (9, 4, 1))
    assert changes(await place.source.next_batch()) == [(9, 4, 1)]
    place.source.close()


async def test_a_failure_ends_it() -> None:
    place = Place()
    one, _ = await place.replicas()
    waiting = asyncio.create_task(place.source.next_batch())
    one.tell(FailedResponse(one.command.request_id, "54000", "too large"))
    with pytest.raises(SqlError, match="too large") as raised:
        await waiting
    assert raised.value.code == "54000"
    place.source.close()
