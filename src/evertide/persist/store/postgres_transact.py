"""Transactions of several statements under the epoch, for other tables of the same schema."""

import itertools
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

import psycopg
from psycopg.sql import SQL, Identifier

from evertide.persist.store.attempts import Attempt, ChangePort, NotReached, insist
from evertide.persist.store.postgres_pool import Pool, fault_of
from evertide.persist.store.postgres_session import Session
from evertide.vocab.ids import Epoch

T = TypeVar("T")
Work: TypeAlias = Callable[[psycopg.AsyncConnection], Awaitable[T]]


async def transact(
    pool: Pool, port: ChangePort, epoch: Epoch, work: Work[T], patience_s: float
) -> T:
    """What `work` returned, once it is committed.

    It counts as an attempt like any other change: should the answer to COMMIT be lost, the store is
    asked what became of it.
    """
    writer, numbers = uuid.uuid4().hex, itertools.count(1)

    async def once() -> T:
        attempt = Attempt(writer, next(numbers))
        session = await pool.session()
        try:
            value = await _run(session, attempt, epoch, work)
            if await _commit(session.connection):
                return value
        finally:
            await session.connection.close()
        if await insist(lambda: port.settle(attempt), patience_s) is None:
            raise NotReached("the connection was lost before the commit")
        return value

    return await insist(once, patience_s)


async def _run(session: Session, attempt: Attempt, epoch: Epoch, work: Work[T]) -> T:
    connection = session.connection
    try:
        await connection.execute(SQL("SET search_path = {}").format(Identifier(session.schema)))
        await connection.execute("BEGIN")
        await connection.execute("SELECT check_epoch(%s)", (epoch,))
        value = await work(connection)
        await connection.execute(
            "SELECT keep_attempt(%s, %s, %s, '[]')", (epoch, attempt.writer, attempt.number)
        )
        return value
    except psycopg.Error as error:
        # Closing the connection, which the caller does, rolls back.
        raise fault_of(error, epoch) from error


async def _commit(connection: psycopg.AsyncConnection) -> bool:
    """False: nobody knows."""
    try:
        await connection.execute("COMMIT")
    except psycopg.Error as error:
        if error.sqlstate is None or connection.closed:
            return False
        raise fault_of(error) from error
    return True
