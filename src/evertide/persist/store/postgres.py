"""Shard states and timelines in one PostgreSQL schema, shared by processes of many hosts."""

import asyncio
import uuid
from functools import partial
from typing import Final, TypeVar

import psycopg
import structlog

from evertide.persist.faults import Fenced, StoreUnreachable
from evertide.persist.store.attempts import (
    PATIENCE_S,
    Attempts,
    AttemptsAtTime,
    NotReached,
    insist,
)
from evertide.persist.store.postgres_binary import TRUE, bigint, read_bigint, read_bytes
from evertide.persist.store.postgres_pool import Pool
from evertide.persist.store.postgres_port import PostgresPort
from evertide.persist.store.postgres_stash import PostgresStash
from evertide.persist.store.postgres_transact import Work, transact
from evertide.persist.store.postgres_upkeep import Upkeep
from evertide.vocab.ids import Epoch

T = TypeVar("T")

_START_TIMEOUT_S: Final = 10.0
_SET_NOTE: Final = """
    INSERT INTO notes VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET text = excluded.text"""

_log = structlog.get_logger()


class PostgresStore:
    """One schema: `evertide`, or the first of the search_path that the URL's options set.

    Made on first use. For one event loop.
    """

    def __init__(self, url: str, *, patience_s: float = PATIENCE_S) -> None:
        self._pool = Pool(url)
        self._upkeep = Upkeep(self._pool)
        self._port = PostgresPort(self._pool, self._upkeep)
        self._patience_s = patience_s

    async def prepare(self) -> None:
        """Make the schema if need be; raises StoreUnreachable soon, Corrupt for another format."""
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                await self._pool.ask_again(b"current_epoch")
        except NotReached as error:
            raise StoreUnreachable(str(error)) from error
        except TimeoutError:
            raise StoreUnreachable(f"no connection within {_START_TIMEOUT_S:g} s") from None

    async def raise_epoch(self) -> Epoch:
        token = uuid.uuid4().hex
        while True:
            expected = await self.current_epoch()
            if await insist(partial(self._raise, expected, token), self._patience_s):
                return Epoch(expected + 1)

    async def current_epoch(self) -> Epoch:
        result = await insist(lambda: self._pool.ask_again(b"current_epoch"), self._patience_s)
        return Epoch(read_bigint(result, 0, 0))

    def consensus(self, epoch: Epoch) -> Attempts:
        return Attempts(self._port, epoch, patience_s=self._patience_s)

    def oracle_rows(self, epoch: Epoch) -> AttemptsAtTime:
        return AttemptsAtTime(self._port, epoch, patience_s=self._patience_s)

    def stash(self) -> PostgresStash:
        return PostgresStash(self._pool, self._patience_s)

    async def find_note(self, name: str) -> str | None:
        arguments = (name.encode(),)
        asking = partial(self._pool.ask_again, b"find_note", arguments)
        result = await insist(asking, self._patience_s)
        return read_bytes(result, 0, 0).decode() if result.ntuples else None

    async def note(self, name: str, text: str) -> str:
        arguments = (name.encode(), text.encode())
        result = await insist(lambda: self._pool.ask_again(b"note", arguments), self._patience_s)
        return read_bytes(result, 0, 0).decode()

    async def set_note(
        self, epoch: Epoch, name: str, text: str, *, raises_epoch: bool = False
    ) -> None:
        async def work(connection: psycopg.AsyncConnection) -> None:
            await connection.execute(_SET_NOTE, (name, text))

        if not raises_epoch:
            await self._transact(epoch, work)
            return
        note, token = (name.encode(), text.encode()), uuid.uuid4().hex
        if not await insist(partial(self._raise, epoch, token, note), self._patience_s):
            raise Fenced(epoch, await self.current_epoch())

    async def _transact(self, epoch: Epoch, work: Work[T]) -> T:
        """Other tables of the same schema, changed under the epoch.

        `work` may run more than once, each time after a rollback; its search_path is the schema. It
        must not dawdle: a transaction that idles for five seconds is ended by the server.
        """
        return await transact(self._pool, self._port, epoch, work, self._patience_s)

    async def close(self) -> None:
        await self._upkeep.close()
        await self._pool.close()

    async def _raise(
        self, expected: Epoch, token: str, note: tuple[bytes, bytes] | None = None
    ) -> bool:
        """Whether the epoch after the expected one is ours. May be repeated."""
        arguments = (bigint(expected), token.encode(), *(note or (None, None)))
        result = await self._pool.ask_again(b"raise_epoch", arguments)
        raised = result.get_value(0, 0)
        if raised is None:
            _log.warning("transactions that do not end hold up the takeover", epoch=expected)
            raise NotReached("transactions under way hold up the epoch")
        return raised == TRUE
