"""DECLARE, FETCH and CLOSE: a query's rows handed out in pieces within one transaction."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from evertide.adapter.client import (
    CommandResponse,
    Portal,
    Prepared,
    RowsResponse,
    RowStream,
    StreamResponse,
)
from evertide.adapter.session import Session
from evertide.sql.plan.plans import ClosePlan, FetchPlan
from evertide.vocab.datum import Row
from evertide.vocab.errors import (
    DuplicateCursor,
    NoActiveTransaction,
    ObjectNotInPrerequisiteState,
    SqlError,
    UndefinedPortal,
)


def check_declare(name: str, session: Session) -> None:
    """Refuse before the work of finding the rows."""
    if session.transaction is None or not session.transaction.goes_on:
        raise NoActiveTransaction("DECLARE CURSOR can only be used in transaction blocks")
    if name in session.cursors:
        raise DuplicateCursor(f'cursor "{name}" already exists')


def run_declare(
    name: str, response: RowsResponse | StreamResponse, session: Session
) -> CommandResponse:
    """Keep the rows for FETCH until the transaction ends."""
    declared = Prepared("", None, result=response.desc)
    session.cursors[name] = Portal(declared, formats=(0,) * response.desc.arity, response=response)
    return CommandResponse("DECLARE CURSOR")


async def run_fetch(plan: FetchPlan, session: Session) -> RowsResponse | StreamResponse:
    """The next rows."""
    cursor = find_cursor(plan.name, session)
    match cursor.response:
        case StreamResponse(layout=None, is_query=True) as stream:
            rows = CursorRows(stream.rows, plan.count)
            return replace(stream, rows=rows, tag="FETCH")
        case StreamResponse(layout=None) as stream:
            found = await _fetch_stream(plan, stream.rows, session)
            return RowsResponse(stream.desc, found, tag="FETCH")
        case RowsResponse(desc=desc):
            return RowsResponse(desc, cursor.take_rows(plan.count), tag="FETCH")
        case _:
            raise ObjectNotInPrerequisiteState(f'portal "{plan.name}" cannot be run')


class CursorRows:
    """The next rows of a cursor's stream, exactly so many or, if it ends before, the rest.

    Implements adapter/client.py's RowStream. The cursor goes on after it: what is not taken of it
    is there for the next one.
    """

    def __init__(self, rows: RowStream, count: int | None) -> None:
        """`count` None: all there are."""
        self._rows = rows
        self._left = count

    async def take(self, most: int | None) -> Sequence[Row] | None:
        if self._left is None:
            return await self._rows.take(most)
        if not self._left:
            return None
        taken = await self._rows.take(self._left if most is None else min(most, self._left))
        self._left = 0 if taken is None else self._left - len(taken)
        return taken

    @property
    def ready(self) -> bool:
        return self._left != 0 and self._rows.ready

    def close(self) -> None:
        self._left = 0


async def _fetch_stream(plan: FetchPlan, rows: RowStream, session: Session) -> list[Row]:
    """Rows that come within the timeout; without one, those that are there once there are some.

    What was before an error is told before it.
    """
    found: list[Row] = []
    timeout_s = None if plan.timeout_ms is None else plan.timeout_ms / 1_000
    try:
        async with asyncio.timeout(timeout_s):
            while plan.count is None or len(found) < plan.count:
                if found and timeout_s is None and not rows.ready:
                    break
                most = None if plan.count is None else plan.count - len(found)
                taken = await rows.take(most)
                if taken is None:
                    break
                found += taken
    except TimeoutError:
        pass  # what has come is the answer
    except SqlError:
        # A stream that failed does so again when it is asked again, unless nobody may ask.
        failed = session.transaction is None or session.transaction.failed
        if failed or not found:
            raise
    return found


def run_close(plan: ClosePlan, session: Session) -> CommandResponse:
    """Forget one cursor, or all."""
    if plan.name is None:
        for cursor in session.cursors.values():
            cursor.end()
        session.cursors.clear()
        return CommandResponse("CLOSE CURSOR ALL")
    find_cursor(plan.name, session).end()
    del session.cursors[plan.name]
    return CommandResponse("CLOSE CURSOR")


def find_cursor(name: str, session: Session) -> Portal:
    cursor = session.cursors.get(name)
    if cursor is None:
        raise UndefinedPortal(f'cursor "{name}" does not exist')
    return cursor
