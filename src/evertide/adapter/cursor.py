"""DECLARE, FETCH and CLOSE: a query's rows handed out in pieces within one transaction."""

import asyncio

from evertide.adapter.client import CommandResponse, RowsResponse
from evertide.adapter.session import Cursor, Session, StreamCursor
from evertide.sql.plan.plans import ClosePlan, FetchPlan
from evertide.vocab.datum import Row
from evertide.vocab.errors import DuplicateCursor, NoActiveTransaction, UndefinedPortal


def check_declare(name: str, session: Session) -> None:
    """Refuse before the work of finding the rows."""
    if session.transaction is None or not session.transaction.explicit:
        raise NoActiveTransaction("DECLARE CURSOR can only be used in transaction blocks")
    if name in session.cursors:
        raise DuplicateCursor(f'cursor "{name}" already exists')


def run_declare(name: str, cursor: Cursor | StreamCursor, session: Session) -> CommandResponse:
    """Keep the rows for FETCH until the transaction ends."""
    session.cursors[name] = cursor
    return CommandResponse("DECLARE CURSOR")


async def run_fetch(plan: FetchPlan, session: Session) -> RowsResponse:
    """The next rows."""
    cursor = _cursor(plan.name, session)
    if isinstance(cursor, StreamCursor):
        return RowsResponse(cursor.desc, await _fetch_stream(plan, cursor), tag="FETCH")
    end = len(cursor.rows) if plan.count is None else cursor.fetched + plan.count
    rows = cursor.rows[cursor.fetched : end]
    cursor.fetched += len(rows)
    return RowsResponse(cursor.desc, rows, tag="FETCH")


async def _fetch_stream(plan: FetchPlan, cursor: StreamCursor) -> list[Row]:
    """Rows that come within the timeout; without one, those that are there once there are some."""
    found: list[Row] = []
    timeout_s = None if plan.timeout_ms is None else plan.timeout_ms / 1_000
    try:
        async with asyncio.timeout(timeout_s):
            while plan.count is None or len(found) < plan.count:
                if found and timeout_s is None and not cursor.rows.ready:
                    break
                most = None if plan.count is None else plan.count - len(found)
                rows = await cursor.rows.take(most)
                if rows is None:
                    break
                found += rows
    except TimeoutError:
        pass  # what has come is the answer
    return found


def run_close(plan: ClosePlan, session: Session) -> CommandResponse:
    """Forget one cursor, or all."""
    if plan.name is None:
        for cursor in session.cursors.values():
            _end(cursor)
        session.cursors.clear()
        return CommandResponse("CLOSE CURSOR ALL")
    _end(_cursor(plan.name, session))
    del session.cursors[plan.name]
    return CommandResponse("CLOSE CURSOR")


def _end(cursor: Cursor | StreamCursor) -> None:
    if isinstance(cursor, StreamCursor):
        cursor.rows.close()


def _cursor(name: str, session: Session) -> Cursor | StreamCursor:
    cursor = session.cursors.get(name)
    if cursor is None:
        raise UndefinedPortal(f'cursor "{name}" does not exist')
    return cursor
