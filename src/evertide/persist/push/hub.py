"""Changes of shards pushed between processes of one host, over a Unix socket.

The supervisor runs the hub; every other process is a client of it. What a client publishes goes to
all others. A message is four bytes of length and a msgpack list of shard ids, or nil for
"everything may have changed".

A subscriber that does not keep up never holds up the others: while its socket is full, what it has
missed is kept as a set, and a set grown too large becomes nil.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

import msgspec

from evertide.persist.news import Heard, News, OnNews
from evertide.persist.push.attention import Attention
from evertide.persist.push.doorbell import Doorbell
from evertide.persist.push.notify import MOST_NAMED, LocalNotifier, OnChange, Pending
from evertide.persist.push.write_now import write_now
from evertide.vocab.ids import ShardId

_LENGTH_BYTES: Final = 4
_LARGEST_MESSAGE: Final = 1024 * 1024
_FULL_AT_BYTES: Final = 64 * 1024
_FIRST_RETRY_S: Final = 0.02
_LONGEST_RETRY_S: Final = 1.0

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[str] | None)


class HubServer:
    """Passes each client's messages to all others."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connections: set[_Connection] = set()
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen; a socket left by a hub that was killed is replaced."""
        self._path.unlink(missing_ok=True)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._connection, str(self._path))
        os.chmod(self._path, 0o600)

    async def close(self) -> None:
        """Stop listening and let go of every client."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()
        self._path.unlink(missing_ok=True)

    def _connection(self) -> "_Connection":
        connection = _Connection(
            on_message=lambda shard_ids: self._pass_on(connection, shard_ids),
            on_lost=lambda: self._connections.discard(connection),
        )
        self._connections.add(connection)
        return connection

    def _pass_on(self, sender: "_Connection", shard_ids: Collection[ShardId] | None) -> None:
        for connection in self._connections:
            if connection is not sender:
                connection.send(shard_ids)


class HubClient:
    """The notifier of a process that belongs to a hub. Finds the hub again after losing it.

    Processes tell each other directly where they can (doorbell.py); the hub reaches those that do
    not keep up.
    """

    def __init__(self, path: Path, *, direct: bool = True) -> None:
        """`direct`: tell others without the hub, and be told so; all of them must do the same."""
        self._path = path
        self._subscribers = LocalNotifier()
        self._readers: dict[object, OnNews] = {}
        self._bell = Doorbell(path.with_suffix(".b")) if direct else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: _Connection | None = None
        self._unsent = Pending()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, and keep trying to, in the background."""
        self._loop = asyncio.get_running_loop()
        if self._bell is not None:
            self._bell.start(self._subscribers.tell, self._bring)
        self._task = asyncio.create_task(self._stay_connected())

    async def close(self) -> None:
        """Let go of the hub."""
        if self._bell is not None:
            self._bell.close()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._connection is not None:
            self._connection.close()

    def publish(self, shard_ids: Collection[ShardId]) -> None:
        """Tell the other processes."""
        if self._bell is None or not self._bell.ring(shard_ids):
            self._publish_by_hub(shard_ids)

    def ring(self, shard_ids: Collection[ShardId], news: Sequence[News] = ()) -> None:
        """The same from any thread; the hub passes no news on."""
        told = self._bell is not None and self._bell.ring(shard_ids, news)
        if not told and self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and with it whoever would tell
                self._loop.call_soon_threadsafe(self._publish_by_hub, list(shard_ids))

    def _publish_by_hub(self, shard_ids: Collection[ShardId]) -> None:
        """Without a hub, once there is one again."""
        if self._connection is None:
            self._unsent.add(shard_ids)
        else:
            self._connection.send(shard_ids)

    def subscribe(self, on_change: OnChange) -> Callable[[], None]:
        """Call back for changes made by other processes."""
        end = self._subscribers.subscribe(on_change)
        if self._bell is None:
            return end
        attention = self._bell.attention
        attention.want(None)

        def unsubscribe() -> None:
            end()
            attention.unwant(None)

        return unsubscribe

    def subscribe_news(self, on_news: OnNews) -> Callable[[], None]:
        """Call back before those who wait for the shards are told."""
        token = object()
        self._readers[token] = on_news

        def end() -> None:
            self._readers.pop(token, None)

        return end

    def _bring(self, news: Sequence[Heard]) -> None:
        for on_news in list(self._readers.values()):
            on_news(news)

    def subscribe_chosen(self, on_change: OnChange) -> "ChosenShards":
        """The same for changes of shards that are chosen, and perhaps of others."""
        attention = None if self._bell is None else self._bell.attention
        return ChosenShards(attention, self._subscribers.subscribe(on_change))

    async def _stay_connected(self) -> None:
        loop = asyncio.get_running_loop()
        retry_s = _FIRST_RETRY_S
        while True:
            lost = asyncio.Event()
            try:
                _, self._connection = await loop.create_unix_connection(
                    lambda lost=lost: _Connection(  # type: ignore[misc]
                        on_message=self._subscribers.tell, on_lost=lost.set
                    ),
                    str(self._path),
                )
            except OSError:
                await asyncio.sleep(retry_s)
                retry_s = min(retry_s * 2, _LONGEST_RETRY_S)
                continue
            retry_s = _FIRST_RETRY_S
            self._greet()
            await lost.wait()
            self._connection = None

    def _greet(self) -> None:
        """Make up for the time without a hub: say what changed here, and look at everything."""
        assert self._connection is not None, "called once connected"
        if self._unsent:
            self._connection.send(self._unsent.take())
        self._subscribers.tell(None)


class ChosenShards:
    """What one subscriber wants to be told of."""

    def __init__(self, attention: Attention | None, end: Callable[[], None]) -> None:
        self._attention = attention
        self._end = end
        self._wanted: set[ShardId] = set()

    def want(self, shard_id: ShardId) -> None:
        """To be called before looking at the shard."""
        if self._attention is not None and shard_id not in self._wanted:
            self._wanted.add(shard_id)
            self._attention.want(shard_id)

    def unwant(self, shard_id: ShardId) -> None:
        """Nobody waits for it any more."""
        if self._attention is not None and shard_id in self._wanted:
            self._wanted.remove(shard_id)
            self._attention.unwant(shard_id)

    def end(self) -> None:
        """Hear of nothing any more."""
        self._end()
        for shard_id in list(self._wanted):
            self.unwant(shard_id)


class _Connection(asyncio.Protocol):
    """One end of a connection; the same on both sides."""

    def __init__(self, *, on_message: OnChange, on_lost: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._full = False
        self._pending = Pending()

    def send(self, shard_ids: Collection[ShardId] | None) -> None:
        """Now if the socket takes it, otherwise together with what else comes until it does."""
        if self._transport is None or self._full:
            self._pending.add(shard_ids)
            return
        few = shard_ids is not None and len(shard_ids) <= MOST_NAMED
        body = _encoder.encode(list(shard_ids) if shard_ids is not None and few else None)
        write_now(self._transport, len(body).to_bytes(_LENGTH_BYTES, "big") + body)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_FULL_AT_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self._on_lost()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._pending:
            self.send(self._pending.take())

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= _LENGTH_BYTES:
            end = _LENGTH_BYTES + int.from_bytes(self._received[:_LENGTH_BYTES], "big")
            if end > _LARGEST_MESSAGE:
                self.close()
                return
            if len(self._received) < end:
                return
            body = bytes(self._received[_LENGTH_BYTES:end])
            del self._received[:end]
            try:
                shard_ids = _decoder.decode(body)
            except msgspec.DecodeError:
                self.close()
                return
            self._on_message(cast("list[ShardId] | None", shard_ids))
