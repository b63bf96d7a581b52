"""DECLARE, FETCH and CLOSE: a query's rows handed out in pieces within one transaction."""

from collections.abc import Sequence

from evertide.adapter.client import CommandResponse, RowsResponse
from evertide.adapter.session import Cursor, Session
from evertide.sql.plan.plans import ClosePlan, FetchPlan
from evertide.vocab.datum import Row
from evertide.vocab.errors import DuplicateCursor, NoActiveTransaction, UndefinedPortal
from evertide.vocab.relation_desc import RelationDesc


def run_declare(
    name: str, desc: RelationDesc, rows: Sequence[Row], session: Session
) -> CommandResponse:
    """Keep the rows for FETCH until the transaction ends."""
    if session.transaction is None or not session.transaction.explicit:
        raise NoActiveTransaction("DECLARE CURSOR can only be used in transaction blocks")
    if name in session.cursors:
        raise DuplicateCursor(f'cursor "{name}" already exists')
    session.cursors[name] = Cursor(desc, rows)
    return CommandResponse("DECLARE CURSOR")


def run_fetch(plan: FetchPlan, session: Session) -> RowsResponse:
    """The next rows."""
    cursor = _cursor(plan.name, session)
    end = len(cursor.rows) if plan.count is None else cursor.fetched + plan.count
    rows = cursor.rows[cursor.fetched : end]
    cursor.fetched += len(rows)
    return RowsResponse(cursor.desc, rows, tag="FETCH")


def run_close(plan: ClosePlan, session: Session) -> CommandResponse:
    """Forget one cursor, or all."""
    if plan.name is None:
        session.cursors.clear()
        return CommandResponse("CLOSE CURSOR ALL")
    _cursor(plan.name, session)
    del session.cursors[plan.name]
    return CommandResponse("CLOSE CURSOR")


def _cursor(name: str, session: Session) -> Cursor:
    cursor = session.cursors.get(name)
    if cursor is None:
        raise UndefinedPortal(f'cursor "{name}" does not exist')
    return cursor
