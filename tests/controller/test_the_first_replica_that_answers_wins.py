"""Goal: a peek goes to every replica of a cluster; the first that answers is believed, the others
are told to forget it, and one that is frozen, away or refuses costs nobody anything.

Method: replicas are sockets that a test speaks for; the real client asks them.
"""

import asyncio
from pathlib import Path

import pytest

from evertide.controller import compute
from evertide.controller.compute import Unanswered
from evertide.dataflow.lookup import Lookup, point
from evertide.dataflow.protocol import CancelCommand
from tests.controller.replicas import LOOKUP, cluster_of_two


@pytest.mark.parametrize("first", [0, 1])
async def test_the_first_answer_is_taken_and_the_other_cancelled(
    first: int, tmp_path: Path
) -> None:
    async with cluster_of_two(tmp_path) as cluster:
        winner, loser = cluster.replicas[first], cluster.replicas[1 - first]
        peek = asyncio.create_task(cluster.peek())
        won, lost = await winner.asked(), await loser.asked()
        assert won.lookup == lost.lookup == LOOKUP
        await winner.answer(won.request_id, 1)
        assert [u.row for u in await asyncio.wait_for(peek, 10)] == [(1,)]
        told = await asyncio.wait_for(loser.heard.get(), 10)
        assert told == CancelCommand(lost.request_id)
        # What it says all the same is nobody's answer: neither to this peek nor to the next.
        await loser.answer(lost.request_id, 2)
        again = asyncio.create_task(cluster.peek())
        await winner.answer((await winner.asked()).request_id, 3)
        assert [u.row for u in await asyncio.wait_for(again, 10)] == [(3,)]


async def test_a_refusal_or_a_lost_connection_waits_for_the_other(tmp_path: Path) -> None:
    async with cluster_of_two(tmp_path) as cluster:
        one, other = cluster.replicas
        peek = asyncio.create_task(cluster.peek())
        await one.refuse((await one.asked()).request_id)
        await other.answer((await other.asked()).request_id, 1)
        assert [u.row for u in await asyncio.wait_for(peek, 10)] == [(1,)]
        peek = asyncio.create_task(cluster.peek())
        await other.asked()
        asked = await one.asked()
        await other.go_away()
        await one.answer(asked.request_id, 2)
        assert [u.row for u in await asyncio.wait_for(peek, 10)] == [(2,)]
        peek = asyncio.create_task(cluster.peek())
        await one.refuse((await one.asked()).request_id)
        await other.refuse((await other.asked()).request_id)
        with pytest.raises(Unanswered):
            await asyncio.wait_for(peek, 10)


async def test_a_frozen_replica_holds_nobody_up_and_fills_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked until so much lies unread that it is clear that nobody reads."""
    monkeypatch.setattr(compute, "MAX_UNSENT_BYTES", 10_000)
    async with cluster_of_two(tmp_path) as cluster:
        live, frozen = cluster.replicas
        frozen.frozen.set()
        key = b"\x01" + b"k" * 20_000
        large = Lookup((point(key),), exact=True)
        for value in range(200):
            peek = asyncio.create_task(cluster.peek(large))
            await live.answer((await live.asked()).request_id, value)
            assert [u.row for u in await asyncio.wait_for(peek, 10)] == [(value,)]
        unsent = cluster.client._connections[cluster.names[1]]._channel.unsent_bytes
        assert unsent < 100_000
