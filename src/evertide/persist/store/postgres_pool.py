"""A process's few connections to one PostgreSQL database, and what its errors mean."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import psycopg
from psycopg import errors
from psycopg.pq.abc import PGresult

from evertide.persist.faults import (
    Corrupt,
    Fenced,
    PersistFault,
    StoreFailing,
    StoreFull,
    StoreUnreachable,
)
from evertide.persist.store.attempts import NotReached, OutcomeUnknown
from evertide.persist.store.postgres_link import Link
from evertide.persist.store.postgres_schema import BARRED, FENCED
from evertide.persist.store.postgres_session import (
    STATEMENT_TIMEOUT_S,
    Session,
    open_session,
    prepare_schema,
    prepare_statements,
)
from evertide.vocab.ids import Epoch

_MOST_LINKS: Final = 4
# Longer than the server's own limit: this one is for servers and networks that went silent.
_ANSWER_TIMEOUT_S: Final = STATEMENT_TIMEOUT_S + 5.0

# Classes of SQLSTATE after which the same statement may well succeed: lost connections, read-only
# servers (a primary may come back), rolled back transactions, lack of resources, and operators or
# timeouts that ended it.
_PASSING: Final = ("08", "25", "40", "53", "55", "57")


class Pool:
    """Connections are opened on demand, and again after they broke."""

    def __init__(
        self, url: str, *, links: int = _MOST_LINKS, answer_timeout_s: float = _ANSWER_TIMEOUT_S
    ) -> None:
        self._url = url
        self._links = links
        self._answer_timeout_s = answer_timeout_s
        # One for each link, held from a question until its answer has been read to the end.
        self._permits = asyncio.Semaphore(links)
        self._idle: list[Link] = []
        self._prepared = False
        self._closed = False

    async def ask(self, statement: bytes, arguments: Sequence[bytes | None] = ()) -> PGresult:
        """The answer of a prepared statement.

        Raises NotReached if nothing was sent, OutcomeUnknown if it was and no answer came, and
        psycopg.Error if the server refused: then nothing of it was done.
        """
        if self._closed:
            raise StoreUnreachable("this store was closed")
        await self._permits.acquire()
        try:
            link = self._idle.pop() if self._idle else await self._open()
        except BaseException:
            self._permits.release()
            raise
        try:
            return await link.ask(statement, arguments, self._answer_timeout_s)
        except errors.ReadOnlySqlTransaction:
            link.close()  # this server has become a standby
            raise

    async def ask_again(
        self,
        statement: bytes,
        arguments: Sequence[bytes | None] = (),
        epoch: Epoch | None = None,
    ) -> PGresult:
        """The same for statements that may be repeated: without an answer they raise NotReached."""
        try:
            return await self.ask(statement, arguments)
        except OutcomeUnknown as error:
            raise NotReached(str(error)) from error
        except psycopg.Error as error:
            raise fault_of(error, epoch) from error

    async def session(self) -> Session:
        """A connection of the caller's own, to be closed by it; raises NotReached."""
        session = await open_session(self._url)
        async with _closed_on_error(session):
            if not self._prepared:
                await prepare_schema(session)
                self._prepared = True
        return session

    async def close(self) -> None:
        """Wait for the answers that are under way, then let go of all connections."""
        if self._closed:
            return
        self._closed = True
        for _ in range(self._links):
            await self._permits.acquire()
        for link in list(self._idle):
            link.close()

    async def _open(self) -> Link:
        session = await self.session()
        async with _closed_on_error(session):
            await prepare_statements(session)
        return Link(session.connection, on_free=self._freed, on_lost=self._lost)

    def _freed(self, link: Link) -> None:
        self._idle.append(link)
        self._permits.release()

    def _lost(self, link: Link) -> None:
        if link in self._idle:
            self._idle.remove(link)
        else:
            self._permits.release()


@asynccontextmanager
async def _closed_on_error(session: Session) -> AsyncIterator[None]:
    try:
        yield
    except psycopg.Error as error:
        await session.connection.close()
        raise fault_of(error) from error
    except BaseException:
        await session.connection.close()
        raise


def fault_of(error: psycopg.Error, epoch: Epoch | None = None) -> PersistFault | NotReached:
    """What a refusal by the server means to whoever asked; nothing was done in any case."""
    state, message = error.sqlstate or "", str(error).strip()
    match state:
        case "53100":
            return StoreFull(message)
        case "58030":
            return StoreFailing(message)
        case "XX001" | "XX002":
            return Corrupt(message)
    if state == FENCED and epoch is not None:
        return Fenced(epoch, Epoch(int(error.diag.message_primary or 0)))
    if not state or state == BARRED or state[:2] in _PASSING:
        return NotReached(message)
    return StoreUnreachable(message)
