"""Framed messages over a local socket: a four-byte length, then msgpack."""

import asyncio
import struct
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from evertide.dataflow.protocol import MAX_MESSAGE_BYTES
from evertide.persist.push.write_now import write_now

Incoming = TypeVar("Incoming")

_LENGTH = struct.Struct("!I")


class FrameTooLarge(Exception):
    """A peer announced a message beyond the limit."""


class Channel(Generic[Incoming]):
    """One connection. Decodes what comes in to one union of message types; bad bytes end it."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        decoder: msgspec.msgpack.Decoder[Incoming],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = decoder
        self._encoder = msgspec.msgpack.Encoder()

    async def receive(self) -> Incoming | None:
        """The next message; None at the end."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            if length > MAX_MESSAGE_BYTES:
                raise FrameTooLarge(f"a message of {length} bytes was announced")
            return self._decoder.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def push(
        self, take: Callable[[Incoming], None], ended: Callable[[Exception | None], None]
    ) -> None:
        """From now on hand messages over as they come, without a task that waits for them: the
        loop has one turn less between a message and whoever waits for it.

        Nothing may have come by now but the end. `ended` is called once, with what could not be
        read if that was the reason.
        """
        transport = self._writer.transport
        if self._reader.at_eof() or transport.is_closing():
            # Whoever takes over now would not be told what the stream knows already.
            transport.close()
            asyncio.get_running_loop().call_soon(ended, None)
            return
        transport.set_protocol(_Pushing(transport, self._decoder, take, ended))

    async def send(self, message: msgspec.Struct) -> None:
        """Queue one message; waits while the peer reads too slowly.

        Raises ConnectionError, FrameTooLarge.
        """
        if self._writer.transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        self.send_soon(message)
        await self._writer.drain()

    def send_soon(self, message: msgspec.Struct) -> None:
        """Queue one message without waiting: for small ones of which only few can be on the way.

        One that is closing takes none, and whoever listens to it learns that it ended.
        """
        body = self._encoder.encode(message)
        if len(body) > MAX_MESSAGE_BYTES:
            raise FrameTooLarge(f"a message of {len(body)} bytes is too large to send")
        write_now(self._writer.transport, _LENGTH.pack(len(body)) + body)

    @property
    def unsent_bytes(self) -> int:
        """How much is queued: a peer that reads nothing lets it grow."""
        return self._writer.transport.get_write_buffer_size()

    def close(self) -> None:
        """End the connection without waiting."""
        self._writer.close()


class _Pushing(asyncio.Protocol, Generic[Incoming]):
    """Cuts what comes into messages; all else is left to the protocol that was there before."""

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        decoder: msgspec.msgpack.Decoder[Incoming],
        take: Callable[[Incoming], None],
        ended: Callable[[Exception | None], None],
    ) -> None:
        before = transport.get_protocol()
        assert isinstance(before, asyncio.Protocol), "a stream's"
        self._before = before
        self._transport = transport
        self._decoder = decoder
        self._take = take
        self._ended = ended
        self._unread = bytearray()
        # So many bytes are needed to go on.
        self._needed = _LENGTH.size
        self._fault: Exception | None = None

    def data_received(self, data: bytes) -> None:
        if self._fault is not None:
            return
        if self._unread:
            self._unread += data
            if len(self._unread) < self._needed:
                return
            data, self._unread = bytes(self._unread), bytearray()
        try:
            start = self._hand_over(data)
        except (FrameTooLarge, msgspec.DecodeError) as fault:
            self._fault = fault
            self._transport.close()
        else:
            if start < len(data):
                self._unread += memoryview(data)[start:]

    def _hand_over(self, data: bytes) -> int:
        """All that is there whole; gives where the rest begins."""
        start, size = 0, _LENGTH.size
        while len(data) - start >= size:
            (length,) = _LENGTH.unpack_from(data, start)
            if length > MAX_MESSAGE_BYTES:
                raise FrameTooLarge(f"a message of {length} bytes was announced")
            end = start + size + length
            if end > len(data):
                self._needed = end - start
                return start
            self._take(self._decoder.decode(memoryview(data)[start + size : end]))
            start = end
        self._needed = size
        return start

    def connection_lost(self, exc: Exception | None) -> None:
        self._before.connection_lost(exc)
        self._ended(self._fault)

    def pause_writing(self) -> None:
        self._before.pause_writing()

    def resume_writing(self) -> None:
        self._before.resume_writing()
