"""Goal: a query over much data runs on one replica, whose result is taken batch by batch, whole or
with an error; a replica that cannot compute it costs no more than the time to ask the next.

Method: replicas are sockets that a test speaks for; the real client asks them. What a replica hears
comes in order, so that what it was not sent is known from what comes next.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evertide.controller import compute
from evertide.controller.compute import RunningSelect, Unanswered
from evertide.dataflow.protocol import (
    AcknowledgeCommand,
    BatchResponse,
    CancelCommand,
    FailedResponse,
    PeekIndexCommand,
    RefusedResponse,
    ResultResponse,
    SelectCommand,
)
from evertide.vocab.errors import SqlError
from tests.controller.replicas import Cluster, Replica, cluster_of_two

PATIENCE_S = 10


def command(request_id: int) -> SelectCommand:
    return SelectCommand(request_id, 1, b"relation", ("u1",), 7, ((0, True, False),), 5)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster_of_two(tmp_path) as made:
        yield made


def start(cluster: Cluster) -> "asyncio.Task[RunningSelect]":
    return asyncio.create_task(cluster.client.select(cluster.names, command))


async def computed(cluster: Cluster, batches: int) -> tuple[RunningSelect, Replica, int]:
    """A result of so many batches, of which the first is told."""
    one, _ = cluster.replicas
    running = start(cluster)
    request_id = (await one.hears(SelectCommand)).request_id
    await one.tell(ResultResponse(request_id, batches, 10 * batches, 100))
    if batches:
        await one.tell(BatchResponse(request_id, b"0", 0))
    return await asyncio.wait_for(running, PATIENCE_S), one, request_id


async def no_more_heard(cluster: Cluster, replica: Replica) -> None:
    """What it hears next is what is sent next."""
    peek = asyncio.create_task(cluster.peek())
    asked = await replica.hears(PeekIndexCommand)
    await replica.answer(asked.request_id, 1)
    await asyncio.wait_for(peek, PATIENCE_S)


async def test_only_one_is_asked_and_the_other_has_peace(cluster: Cluster) -> None:
    one, other = cluster.replicas
    running = start(cluster)
    asked = await one.hears(SelectCommand)
    assert asked == command(asked.request_id)
    await one.tell(ResultResponse(asked.request_id, 0, 0, 0))
    announced = await (await asyncio.wait_for(running, PATIENCE_S)).wait_for_result()
    assert announced == ResultResponse(asked.request_id, 0, 0, 0)
    assert other.heard.empty()
    assert cluster.names[1] not in cluster.client._connections


async def test_who_is_connected_is_asked_first_and_of_those_who_has_least_to_do(
    cluster: Cluster,
) -> None:
    one, other = cluster.replicas
    assert await cluster.client.answers(cluster.names[1])
    running = [start(cluster)]
    await other.hears(SelectCommand)
    assert await cluster.client.answers(cluster.names[0])
    for next_one in (one, one, other):
        running.append(start(cluster))
        await next_one.hears(SelectCommand)
    for task in running:
        task.cancel()
    await asyncio.wait(running)


async def test_the_next_is_asked_where_one_refuses_or_goes_away(cluster: Cluster) -> None:
    one, other = cluster.replicas
    running = start(cluster)
    await one.refuse((await one.hears(SelectCommand)).request_id)
    request_id = (await other.hears(SelectCommand)).request_id
    await other.tell(ResultResponse(request_id, 0, 0, 0))
    await (await asyncio.wait_for(running, PATIENCE_S)).next_batch()
    running = start(cluster)
    await one.hears(CancelCommand)  # what it has refused, it need not remember
    await one.hears(SelectCommand)
    await one.go_away()
    assert isinstance(await other.hears(CancelCommand), CancelCommand)
    await other.refuse((await other.hears(SelectCommand)).request_id)
    with pytest.raises(Unanswered, match="not here"):
        await asyncio.wait_for(running, PATIENCE_S)


async def test_where_nobody_is_nobody_answers(cluster: Cluster) -> None:
    with pytest.raises(Unanswered):
        await cluster.client.select([], command)
    with pytest.raises(Unanswered, match="nowhere is not there"):
        await cluster.client.select(["nowhere"], command)


async def test_who_does_not_listen_is_not_asked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = cluster.replicas
    assert await cluster.client.answers(cluster.names[0])
    monkeypatch.setattr(compute, "MAX_UNSENT_BYTES", -1)
    connecting = start(cluster)
    with pytest.raises(Unanswered, match="does not listen"):
        await asyncio.wait_for(connecting, PATIENCE_S)
    assert one.heard.empty()
    assert other.heard.empty()


async def test_an_error_of_the_query_is_told_with_its_hint(cluster: Cluster) -> None:
    one, other = cluster.replicas
    running = start(cluster)
    request_id = (await one.hears(SelectCommand)).request_id
    await one.tell(FailedResponse(request_id, "53200", "out of memory", "A larger size helps."))
    with pytest.raises(SqlError, match="out of memory") as caught:
        await asyncio.wait_for(running, PATIENCE_S)
    assert (caught.value.code, caught.value.hint) == ("53200", "A larger size helps.")
    assert other.heard.empty()


async def test_whoever_stops_waiting_ends_the_job(cluster: Cluster) -> None:
    one, other = cluster.replicas
    running = start(cluster)
    request_id = (await one.hears(SelectCommand)).request_id
    running.cancel()
    assert await one.hears(CancelCommand) == CancelCommand(request_id)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert other.heard.empty()


async def test_a_batch_is_asked_for_when_the_one_before_is_taken(cluster: Cluster) -> None:
    running, one, request_id = await computed(cluster, 3)
    await no_more_heard(cluster, one)
    assert await running.next_batch() == b"0"
    assert await one.hears(AcknowledgeCommand) == AcknowledgeCommand(request_id)
    await one.tell(BatchResponse(request_id, b"1", 0))
    await no_more_heard(cluster, one)
    assert await running.next_batch() == b"1"
    await one.hears(AcknowledgeCommand)
    await one.tell(BatchResponse(request_id, b"2", 0))
    assert await running.next_batch() == b"2"
    assert await one.hears(CancelCommand) == CancelCommand(request_id)  # nothing is left to keep
    for _ in range(2):
        assert await running.next_batch() is None
    await no_more_heard(cluster, one)


async def test_a_wait_for_a_batch_that_is_cancelled_loses_none(cluster: Cluster) -> None:
    running, one, request_id = await computed(cluster, 2)
    assert await running.next_batch() == b"0"
    waiting = asyncio.create_task(running.next_batch())
    await one.hears(AcknowledgeCommand)
    await one.tell(BatchResponse(request_id, b"1", 0))
    waiting.cancel()
    await asyncio.wait([waiting])
    assert await asyncio.wait_for(running.next_batch(), PATIENCE_S) == b"1"


async def test_a_replica_that_goes_away_takes_its_result_with_it(cluster: Cluster) -> None:
    running, one, _ = await computed(cluster, 2)
    assert await running.next_batch() == b"0"
    await one.go_away()
    for _ in range(2):
        with pytest.raises(SqlError, match="went away") as caught:
            await asyncio.wait_for(running.next_batch(), PATIENCE_S)
        assert (caught.value.code, caught.value.hint) == ("58030", "Run the query again.")


async def test_what_has_come_by_then_is_told_before(cluster: Cluster) -> None:
    running, one, _ = await computed(cluster, 2)
    await one.go_away()
    while not cluster.client._connections[cluster.names[0]].closed:
        await asyncio.sleep(0)
    assert await running.next_batch() == b"0"
    with pytest.raises(SqlError, match="went away"):
        await asyncio.wait_for(running.next_batch(), PATIENCE_S)


async def test_a_replica_that_has_told_all_may_go(cluster: Cluster) -> None:
    running, one, _ = await computed(cluster, 1)
    assert await running.next_batch() == b"0"
    await one.go_away()
    while not cluster.client._connections[cluster.names[0]].closed:
        await asyncio.sleep(0)
    assert await running.next_batch() is None


@pytest.mark.parametrize(
    ("last", "code"),
    [(FailedResponse(0, "53100", "no room", "Make some."), "53100"),
     (RefusedResponse(0, "lost it"), "58030")],
)  # fmt: skip
async def test_a_result_that_cannot_be_read_to_its_end_is_an_error(
    cluster: Cluster, last: FailedResponse | RefusedResponse, code: str
) -> None:
    running, one, request_id = await computed(cluster, 2)
    assert await running.next_batch() == b"0"
    match last:
        case FailedResponse(code=sqlstate, message=message, hint=hint):
            await one.tell(FailedResponse(request_id, sqlstate, message, hint))
        case RefusedResponse(reason=reason):
            await one.tell(RefusedResponse(request_id, reason))
    with pytest.raises(SqlError) as caught:
        await asyncio.wait_for(running.next_batch(), PATIENCE_S)
    assert caught.value.code == code
    assert caught.value.hint is not None


async def test_who_closes_it_lets_the_replica_forget(cluster: Cluster) -> None:
    running, one, request_id = await computed(cluster, 2)
    for _ in range(2):
        running.close()
    assert await one.hears(CancelCommand) == CancelCommand(request_id)
    await no_more_heard(cluster, one)
