"""Changes of shards pushed between processes of many hosts, by PostgreSQL's LISTEN and NOTIFY.

Publishing is a transaction of its own, after the change: a transaction that notifies takes a lock
of the whole database while it commits, so inside the change it would make all commits of all
environments wait for each other, and a full queue of notifications would refuse them. What changes
while one message is on its way goes out together with the next.

A message is a JSON list of shard ids, or null for "everything may have changed".
"""

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Final

import msgspec
import psycopg
import structlog
from psycopg.pq import PGnotify
from psycopg.sql import SQL, Identifier, Literal

from evertide.persist.faults import StoreUnreachable
from evertide.persist.push.notify import LocalNotifier, OnChange, Pending
from evertide.persist.store.attempts import NotReached, OutcomeUnknown
from evertide.persist.store.postgres_link import Link
from evertide.persist.store.postgres_session import Session, open_session
from evertide.vocab.ids import ShardId

# PostgreSQL's own limit is 8000.
_LARGEST_MESSAGE: Final = 7900
_EVERYTHING: Final = b"null"
_ANSWER_TIMEOUT_S: Final = 15.0
_FIRST_RETRY_S: Final = 0.02
_LONGEST_RETRY_S: Final = 1.0

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[str] | None)
_log = structlog.get_logger()


class PostgresNotifier:
    """The notifier of a process whose shards lie in PostgreSQL. Connects again after a loss."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._subscribers = LocalNotifier()
        self._unsent = Pending()
        # Set when there is something to send, or nothing to send it with any more.
        self._wake = asyncio.Event()
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, and keep trying to, in the background."""
        self._task = asyncio.create_task(self._stay_connected())

    async def close(self) -> None:
        """Let go of the server."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._link is not None:
            self._link.close()

    def publish(self, shard_ids: Collection[ShardId]) -> None:
        """Tell the other processes; without a connection, once there is one again."""
        self._unsent.add(shard_ids)
        self._wake.set()

    def subscribe(self, on_change: OnChange) -> Callable[[], None]:
        """Call back for changes made by other processes."""
        return self._subscribers.subscribe(on_change)

    async def _stay_connected(self) -> None:
        retry_s, told = _FIRST_RETRY_S, False
        while True:
            try:
                session = await open_session(self._url)
                await _listen(session)
            except (NotReached, StoreUnreachable) as error:
                if not told:
                    _log.warning("no connection for notifications", reason=str(error))
                told = True
                await asyncio.sleep(retry_s)
                retry_s = min(retry_s * 2, _LONGEST_RETRY_S)
                continue
            if told:
                _log.info("notifications are back")
            retry_s, told = _FIRST_RETRY_S, False
            self._link = Link(
                session.connection,
                on_free=lambda _: None,
                on_lost=self._lost,
                on_notify=self._heard,
            )
            # Whatever was said while nobody listened here is lost.
            self._subscribers.tell(None)
            await self._send(self._link)

    async def _send(self, link: Link) -> None:
        """Send what is to be sent, until the connection is lost."""
        while self._link is link:
            if not self._unsent:
                self._wake.clear()
                await self._wake.wait()
                continue
            shard_ids = self._unsent.take()
            try:
                for message in _messages(shard_ids):
                    await link.ask(b"publish", (message,), _ANSWER_TIMEOUT_S)
            except OutcomeUnknown:
                self._unsent.add(shard_ids)
            except psycopg.Error as error:
                # Others find out by looking: a hint is not worth more than a line.
                _log.warning("a notification was refused", reason=str(error))

    def _heard(self, notify: PGnotify) -> None:
        if self._link is None or notify.be_pid == self._link.backend_pid:
            return
        try:
            shard_ids = _decoder.decode(notify.extra)
        except msgspec.DecodeError:
            shard_ids = None
        self._subscribers.tell(None if shard_ids is None else [*map(ShardId, shard_ids)])

    def _lost(self, link: Link) -> None:  # noqa: ARG002 - there is only one
        self._link = None
        self._wake.set()


async def _listen(session: Session) -> None:
    """From now on this session hears, and can say, what concerns its schema."""
    channel = channel_of(session.schema)
    try:
        # Hints need not survive a crash, so nobody waits for the disk on their account.
        await session.connection.execute("SET synchronous_commit = off")
        await session.connection.execute(SQL("LISTEN {}").format(Identifier(channel)))
        await session.connection.execute(
            SQL("PREPARE publish(text) AS SELECT pg_notify({}, $1)").format(Literal(channel))
        )
    except psycopg.Error as error:
        await session.connection.close()
        raise NotReached(str(error)) from error
    except BaseException:
        await session.connection.close()
        raise


def channel_of(schema: str) -> str:
    """Environments that share a database do not wake one another.

    A digest, because names of channels are short.
    """
    return "evertide_" + hashlib.sha256(schema.encode()).hexdigest()[:32]


def _messages(shard_ids: Collection[ShardId] | None) -> Iterator[bytes]:
    """As few as hold all the ids."""
    if shard_ids is None:
        yield _EVERYTHING
        return
    batch: list[bytes] = []
    size = 0
    for encoded in map(_encoder.encode, sorted(shard_ids)):
        if len(encoded) + 2 > _LARGEST_MESSAGE:
            yield _EVERYTHING
            return
        if size + len(encoded) + 2 > _LARGEST_MESSAGE:
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 0
        batch.append(encoded)
        size += len(encoded) + 1
    if batch:
        yield b"[" + b",".join(batch) + b"]"
