"""Goal: however a stream of messages is cut on its way, each is handed over once, whole and in
order, and whoever listens learns that it ended and why.

Method: a real socket; the other end writes pieces of random lengths.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import msgspec
import pytest

from evertide.dataflow import channel as channel_module
from evertide.dataflow.channel import Channel, FrameTooLarge


class Note(msgspec.Struct):
    """A message of any length."""

    number: int
    body: bytes


class Listener:
    """A channel that pushes, and the other end of its socket."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, other: socket.socket
    ) -> None:
        self.channel: Channel[Note] = Channel(reader, writer, msgspec.msgpack.Decoder(Note))
        self.other = other
        self.taken: list[Note] = []
        self.ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.channel.push(self.taken.append, self.ended.set_result)

    async def write(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.other, data)

    async def ends(self) -> Exception | None:
        async with asyncio.timeout(30):
            return await self.ended


@asynccontextmanager
async def listening(*, gone: bool = False) -> AsyncIterator[Listener]:
    """`gone`: the other end is, before anybody listens."""
    ours, other = socket.socketpair()
    other.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=ours)
    if gone:
        other.close()
        assert await reader.read() == b""
    made = Listener(reader, writer, other)
    yield made
    made.channel.close()
    other.close()


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    async with listening() as made:
        yield made


def framed(note: Note) -> bytes:
    body = msgspec.msgpack.encode(note)
    return struct.pack("!I", len(body)) + body


@pytest.mark.parametrize("seed", range(10))
async def test_pieces_of_any_length(listener: Listener, seed: int) -> None:
    draw = Random(seed)
    notes = [Note(n, draw.randbytes(draw.choice([0, 1, 30, 3_000, 400_000]))) for n in range(30)]
    stream = b"".join(map(framed, notes))
    at = 0
    while at < len(stream):
        length = draw.choice([1, 3, 5, 100, 10_000, 1_000_000])
        await listener.write(stream[at : at + length])
        at += length
        if draw.random() < 0.3:
            await asyncio.sleep(0)
    listener.other.close()
    assert await listener.ends() is None
    assert listener.taken == notes


async def test_what_cannot_be_read_ends_it(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "MAX_MESSAGE_BYTES", 100)
    await listener.write(framed(Note(1, b"")) + framed(Note(2, bytes(101))) + framed(Note(3, b"")))
    assert isinstance(await listener.ends(), FrameTooLarge)
    assert [note.number for note in listener.taken] == [1]


async def test_what_is_no_message_ends_it(listener: Listener) -> None:
    await listener.write(struct.pack("!I", 3) + b"\x01\x02\x03" + framed(Note(3, b"")))
    assert isinstance(await listener.ends(), msgspec.DecodeError)
    assert listener.taken == []


async def test_a_message_that_was_cut_off_is_none(listener: Listener) -> None:
    await listener.write(framed(Note(1, b"x")) + framed(Note(2, bytes(1_000)))[:-1])
    listener.other.close()
    assert await listener.ends() is None
    assert [note.number for note in listener.taken] == [1]


async def test_an_end_before_anybody_listened_is_told() -> None:
    async with listening(gone=True) as listener:
        assert await listener.ends() is None


async def test_a_sender_still_waits_for_a_slow_reader(listener: Listener) -> None:
    sending = asyncio.create_task(listener.channel.send(Note(1, bytes(8_000_000))))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not sending.done()
    received = 0
    while received < 8_000_000:
        received += len(await asyncio.get_running_loop().sock_recv(listener.other, 1_000_000))
    async with asyncio.timeout(30):
        await sending
