"""Goal: whoever asks a task in the moment in which its connection ends is told that the engine is
lost, whatever the event loop calls that; a view would else be set aside as if it had met a bug.

Method: a socket is closed by the event loop before whoever listens to it has had a turn. Both event
loops: that of replicas raises where the other one says nothing.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import msgspec
import pytest
import uvloop

from evertide.dataflow.channel import Channel
from evertide.spark.channel import DropRequest, Hello
from evertide.spark.engine import EngineLost
from evertide.spark.partitions.connection import Connection, Incoming
from evertide.spark.resident import ResidentEngine
from evertide.vocab.ids import GlobalId

Closed = tuple[Channel[Incoming], Connection]
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


def with_a_closed_socket(
    loop: Callable[[], asyncio.AbstractEventLoop], test: Callable[[Closed], Awaitable[None]]
) -> None:
    async def run() -> None:
        ours, other = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        channel = Channel(reader, writer, msgspec.msgpack.Decoder(Incoming))
        connection = Connection(channel, Hello(b"", 1, 0, 1))
        ResidentEngine(connection)
        channel.close()
        await writer.wait_closed()
        await test((channel, connection))
        other.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


@pytest.mark.parametrize("loop", LOOPS)
def test_who_asks_is_told_that_the_engine_is_lost(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def ask(closed: Closed) -> None:
        _, connection = closed
        with pytest.raises(EngineLost):
            await connection.ask(DropRequest(GlobalId("u1")))
        assert not connection._waiting

    with_a_closed_socket(loop, ask)


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_sent_without_waiting_is_dropped(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def send(closed: Closed) -> None:
        channel, _ = closed
        channel.send_soon(DropRequest(GlobalId("u1")))
        with pytest.raises(ConnectionError):
            await channel.send(DropRequest(GlobalId("u1")))

    with_a_closed_socket(loop, send)
