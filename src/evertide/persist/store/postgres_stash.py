"""The stash of a PostgreSQL schema, as readers and openers see it."""

from collections.abc import Collection

import psycopg
from psycopg.pq.abc import PGresult
from psycopg.sql import SQL, Identifier

from evertide.persist.store.attempts import insist
from evertide.persist.store.postgres_binary import bigint, read_bigint, read_bytes, texts
from evertide.persist.store.postgres_pool import Pool, fault_of
from evertide.persist.store.postgres_session import Session, lock_schema
from evertide.persist.store.postgres_stash_sql import TABLE
from evertide.persist.store.protocol import StashPage, StashRow
from evertide.persist.store.stash import page_of, table_of
from evertide.vocab.timestamp import MIN_TS, Timestamp


class PostgresStash:
    """Every call may simply be repeated."""

    def __init__(self, pool: Pool, patience_s: float) -> None:
        self._pool = pool
        self._patience_s = patience_s

    async def ensure(self, kinds: Collection[str]) -> None:
        result = await insist(lambda: self._pool.ask_again(b"stash_kinds"), self._patience_s)
        found = {read_bytes(result, row, 0).decode() for row in range(result.ntuples)}
        missing = [table_of(kind) for kind in sorted(set(kinds) - found)]
        if missing:
            await insist(lambda: self._make(missing), self._patience_s)

    async def upper(self) -> Timestamp:
        result = await insist(lambda: self._pool.ask_again(b"stash_upper"), self._patience_s)
        return Timestamp(read_bigint(result, 0, 0))

    async def read(
        self, lower: Timestamp = MIN_TS, kinds: Collection[str] | None = None
    ) -> StashPage:
        arguments = (bigint(lower), None if kinds is None else texts(kinds))
        result = await insist(
            lambda: self._pool.ask_again(b"stash_page", arguments), self._patience_s
        )
        since, upper = read_bigint(result, 0, 3), read_bigint(result, 0, 4)
        rows = [_row(result, row) for row in range(1, result.ntuples)]
        return page_of(rows, lower, Timestamp(since), Timestamp(upper))

    async def _make(self, tables: Collection[str]) -> None:
        session = await self._pool.session()
        try:
            async with session.connection.transaction():
                await lock_schema(session)
                for table in tables:
                    await session.connection.execute(_definition(session, table))
        except psycopg.Error as error:
            raise fault_of(error) from error
        finally:
            await session.connection.close()


def _definition(session: Session, table: str) -> bytes:
    return (
        SQL(TABLE)
        .format(
            table=Identifier(session.schema, table),
            by_key=Identifier(f"key_of_{table}"),
            by_ts=Identifier(f"ts_of_{table}"),
        )
        .as_bytes(session.connection)
    )


def _row(result: PGresult, row: int) -> StashRow:
    kind, key, value = (read_bytes(result, row, column).decode() for column in range(3))
    ts, diff = read_bigint(result, row, 3), read_bigint(result, row, 4)
    return StashRow(kind, key, value, Timestamp(ts), diff)
