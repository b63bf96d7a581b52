"""Messages that a client has sent and that have not been handled yet."""

import asyncio
from collections import deque

from evertide.pgwire.channel import Channel
from evertide.pgwire.codec import Decoder
from evertide.pgwire.messages import BrokenStream, FrontendMessage, Sync
from evertide.vocab.errors import ProtocolViolation

# A client may send ahead this much; then it has to wait until all of it has been handled.
MAX_QUEUED_MESSAGES = 1_000
MAX_QUEUED_BYTES = 1024 * 1024
# A client without a session has to wait for answers anyway. It may send some messages behind its
# first one; who sends more is refused, because what has been read already is kept in any case.
MAX_STRANGER_MESSAGES = 100
MAX_STRANGER_BYTES = 32 * 1024


class Inbox:
    """A bounded queue with one consumer: the task that owns the connection."""

    def __init__(self, channel: Channel, decoder: Decoder) -> None:
        self._channel = channel
        self._decoder = decoder
        self._messages: deque[FrontendMessage] = deque()
        self._queued_bytes = 0
        self._closed = False
        self._arrival: asyncio.Future[None] | None = None
        self._interruptible = False
        self._interruption: Exception | None = None

    def feed(self, received: bytes) -> None:
        """Take what came from the network; too much of it stops the reading."""
        if self._closed:
            return
        stranger = not self._decoder.is_let_in
        if stranger and self._queued_bytes + len(received) > MAX_STRANGER_BYTES:
            self._refuse()
            return
        self._messages.extend(self._decoder.feed(received))
        if stranger and len(self._messages) > MAX_STRANGER_MESSAGES:
            self._refuse()
            return
        if not self._messages:
            return
        self._queued_bytes += len(received)
        if len(self._messages) > MAX_QUEUED_MESSAGES or self._queued_bytes > MAX_QUEUED_BYTES:
            self._channel.set_reading(False)
        self._wake()

    async def next_message(self, *, interruptible: bool = False) -> FrontendMessage | None:
        """The next message in order; None when there will be no more.

        `interruptible`: a statement waits for it, so `interrupt` raises its error here.
        """
        self._interruptible = interruptible
        if not interruptible:
            self._interruption = None
        while not self._closed:
            if self._interruption is not None:
                error, self._interruption = self._interruption, None
                raise error
            if self._messages:
                return self._messages.popleft()
            self._queued_bytes = 0
            self._channel.set_reading(True)
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        return None

    @property
    def is_synced(self) -> bool:
        """Whether the next message is a Sync, and has come."""
        return bool(self._messages) and isinstance(self._messages[0], Sync)

    @property
    def is_idle(self) -> bool:
        """Whether all that came was handled, and the next byte begins something new."""
        waiting = self._arrival is not None and not self._arrival.done()
        return waiting and not self._interruptible and self._decoder.is_between_messages

    def interrupt(self, error: Exception) -> None:
        """End a statement that waits for messages, now or when it next does so."""
        if self._interruptible:
            self._interruption = error
            self._wake()

    def close(self) -> None:
        """No more messages; those still queued are dropped."""
        self._closed = True
        self._messages.clear()
        self._wake()

    def expect_startup(self) -> bool:
        """See Decoder.expect_startup."""
        return self._decoder.expect_startup()

    def let_in(self) -> None:
        """See Decoder.let_in."""
        self._decoder.let_in()

    def _refuse(self) -> None:
        """A stranger sent more than may be kept of it; nothing of it is."""
        self._channel.set_reading(False)
        error = ProtocolViolation("too much was sent before the session began")
        self._messages.clear()
        self._messages.append(BrokenStream(error))
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
