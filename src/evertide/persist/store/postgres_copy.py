"""A PostgreSQL store copied into memory, for those who only look: nothing is made or changed.

Schemas of every format so far are read as they are.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg.sql import SQL, Identifier

from evertide.persist.faults import Corrupt, StoreUnreachable
from evertide.persist.store.attempts import NotReached
from evertide.persist.store.memory import MemoryStore, StoreContents
from evertide.persist.store.postgres_pool import fault_of
from evertide.persist.store.postgres_schema import FORMAT
from evertide.persist.store.postgres_session import Session, open_session
from evertide.persist.store.protocol import Head, OracleRow, StashPage, StashRow
from evertide.persist.store.stash import PREFIX, page_of
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

T = TypeVar("T")

_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_STASH_TABLES = """
    SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename, %s)"""


async def copy_postgres(url: str) -> MemoryStore | None:
    """All that the schema holds at one moment; None if there is no schema, or nothing in it yet.

    Raises StoreUnreachable.
    """
    contents = await _looked(url, lambda reading: reading.contents())
    return None if contents is None or contents.epoch == 0 else MemoryStore(contents)


async def is_there(url: str) -> bool:
    """Whether there is a store; raises StoreUnreachable."""
    return await _looked(url, lambda reading: reading.exists("epoch"))


async def _looked(url: str, look: Callable[["_Reading"], Awaitable[T]]) -> T:
    try:
        session = await open_session(url)
        try:
            async with session.connection.transaction():
                await session.connection.execute(_ONE_MOMENT)
                return await look(_Reading(session))
        finally:
            await session.connection.close()
    except NotReached as error:
        raise StoreUnreachable(str(error)) from error
    except psycopg.Error as error:
        fault = fault_of(error)
        raise StoreUnreachable(str(fault)) if isinstance(fault, NotReached) else fault from error


class _Reading:
    """One transaction that reads a whole schema."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def contents(self) -> StoreContents | None:
        if not await self.exists("epoch"):
            return None
        ((found, epoch),) = await self._rows("format, epoch", "epoch")
        if int(str(found)) > FORMAT:
            raise Corrupt(
                f'schema "{self._session.schema}" has format {found}, this program knows {FORMAT}'
            )
        shards = await self._rows("shard_id, seqno, value", "shards")
        timelines = await self._rows("timeline, read_ts, write_ts", "timelines")
        notes = await self._rows("name, text", "notes")
        return StoreContents(
            epoch=Epoch(int(str(epoch))),
            heads={ShardId(shard): Head(seqno, bytes(value)) for shard, seqno, value in shards},
            timelines={Timeline(name): OracleRow(read, write) for name, read, write in timelines},
            notes={str(name): str(text) for name, text in notes},
            stash=await self._stash(),
        )

    async def _stash(self) -> StashPage:
        if not await self.exists("stash"):
            return StashPage([], MIN_TS, MIN_TS)
        ((since, upper),) = await self._rows("since, upper", "stash")
        cursor = await self._session.connection.execute(
            _STASH_TABLES, (self._session.schema, PREFIX)
        )
        rows: list[StashRow] = []
        for (table,) in await cursor.fetchall():
            kind = str(table).removeprefix(PREFIX)
            for key, value, ts, diff in await self._rows("key, value, ts, diff", str(table)):
                rows.append(StashRow(kind, key, value, Timestamp(ts), diff))
        return page_of(rows, MIN_TS, Timestamp(since), Timestamp(upper))

    async def exists(self, table: str) -> bool:
        quoted = Identifier(self._session.schema, table).as_string(self._session.connection)
        cursor = await self._session.connection.execute("SELECT to_regclass(%s)", (quoted,))
        return await cursor.fetchone() != (None,)

    async def _rows(self, columns: str, table: str) -> list[tuple[Any, ...]]:
        query = SQL("SELECT {columns} FROM {table}").format(
            columns=SQL(", ").join(Identifier(column) for column in columns.split(", ")),
            table=Identifier(self._session.schema, table),
        )
        return await (await self._session.connection.execute(query)).fetchall()
