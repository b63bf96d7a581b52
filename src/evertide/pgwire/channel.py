"""One connection's transport: writes, back-pressure, the change to TLS, the end."""

import asyncio
import socket
import ssl
from typing import Final

# The operating system takes what fits; beyond this the producer of rows is made to wait.
_HIGH_WATER_BYTES = 64 * 1024
# How long a client that is being refused may take to read why.
_LINGER_S = 2.0
# Seconds of silence until the system asks, and between its questions; how many may go unanswered.
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


class ClientGone(Exception):
    """The client left, or reads so slowly that it counts as gone."""


class Pressure:
    """Whether the client takes what is written, and the one task that may wait until it does."""

    def __init__(self) -> None:
        self.is_full = False
        self._waiting: asyncio.Future[None] | None = None
        self._interruptible = False
        self._interruption: Exception | None = None

    def set_full(self, full: bool) -> None:
        """The transport's buffer is full, or has room again."""
        self.is_full = full
        if not full:
            self._wake(None)

    async def wait(self, timeout_s: float, *, interruptible: bool) -> None:
        """Let others run, for as long as the buffer is full."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        self._interruptible = interruptible
        if not self.is_full:
            loop.call_soon(self._wake, None)
        try:
            async with asyncio.timeout(timeout_s):
                await self._waiting
        finally:
            interruption, self._interruption = self._interruption, None
            self._waiting = None
            self._interruptible = False
        if interruption is not None:
            raise interruption

    def interrupt(self, error: Exception) -> None:
        """Make an interruptible wait raise this, even one that is over but has not returned yet."""
        if self._interruptible:
            self._interruption = error
            self._wake(None)

    def end(self) -> None:
        """Nobody will ever take anything any more."""
        self._wake(ClientGone())

    def _wake(self, error: Exception | None) -> None:
        if self._waiting is None or self._waiting.done():
            return
        if error is None:
            self._waiting.set_result(None)
        else:
            self._waiting.set_exception(error)


class Channel:
    """Owns the transport; the connection's callbacks tell it how the transport does."""

    def __init__(self, *, drain_timeout_s: float) -> None:
        self.pressure = Pressure()
        self._drain_timeout_s = drain_timeout_s
        self._transport: asyncio.Transport | None = None
        # Nothing may be written any more: we have hung up, or the client has.
        self._ended = False
        # Ends a client that does not take the rest after we have hung up.
        self._last_call: asyncio.TimerHandle | None = None
        self._lost = asyncio.Event()

    def attach(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        _notice_silent_ends(transport)

    @property
    def peer(self) -> str:
        """The address that the client comes from, without its port."""
        found = None if self._transport is None else self._transport.get_extra_info("peername")
        return str(found[0]) if isinstance(found, tuple) else ""

    def write(self, payload: bytes) -> None:
        """In order and whole; what is written to a client that left is dropped."""
        if self._transport is not None and not self._ended:
            self._transport.write(payload)

    async def write_and_drain(self, payload: bytes, *, interruptible: bool) -> None:
        """Write, then wait until the client has taken most of it."""
        self.write(payload)
        if self._ended:
            raise ClientGone
        try:
            await self.pressure.wait(self._drain_timeout_s, interruptible=interruptible)
        except TimeoutError:
            self.abort()
            raise ClientGone from None

    def set_reading(self, reading: bool) -> None:
        """Let the client send, or leave what it sends to wait in the network."""
        transport = self._transport
        if transport is None or transport.is_closing() or transport.is_reading() == reading:
            return
        if reading:
            transport.resume_reading()
        else:
            transport.pause_reading()

    async def start_tls(self, protocol: asyncio.Protocol, context: ssl.SSLContext) -> None:
        """Go on encrypted. Nothing may be read or written meanwhile."""
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        try:
            encrypted = await loop.start_tls(
                self._transport, protocol, context, server_side=True, ssl_handshake_timeout=10
            )
        except OSError as problem:  # also ssl.SSLError: the handshake failed
            raise ClientGone from problem
        if encrypted is None:
            raise ClientGone
        self.attach(encrypted)

    def close(self, *, linger: bool = False) -> None:
        """End when all is sent. Lingering keeps on reading until the client closes too.

        Without that, what the client still sends makes the network reset the connection, and the
        reset overtakes the error that says why.
        """
        transport = self._transport
        if transport is None or self._ended:
            return
        self._ended = True
        self._last_call = asyncio.get_running_loop().call_later(_LINGER_S, transport.abort)
        if linger and transport.can_write_eof():
            self.set_reading(True)
            transport.write_eof()
        else:
            transport.close()

    def abort(self) -> None:
        """End at once, whatever is still to be sent."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    def set_lost(self) -> None:
        """The transport is closed."""
        self._ended = True
        self._lost.set()
        if self._last_call is not None:
            self._last_call.cancel()
        self.pressure.end()

    async def wait_lost(self) -> None:
        """Wait until the transport is closed; after `close` that is no longer than lingering."""
        await self._lost.wait()


def _notice_silent_ends(transport: asyncio.Transport) -> None:
    """A client whose host has vanished says nothing, and a quiet subscription never asks."""
    found = transport.get_extra_info("socket")
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):  # not every system has all of them
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
