"""Framed messages over a local socket: a four-byte length, then msgpack."""

import asyncio
import struct
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

    async def send(self, message: msgspec.Struct) -> None:
        """Queue one message; waits while the peer reads too slowly."""
        self.send_soon(message)
        await self._writer.drain()

    def send_soon(self, message: msgspec.Struct) -> None:
        """Queue one message without waiting: for small ones of which only few can be on the way."""
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
