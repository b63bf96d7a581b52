"""A stream that a name stands for: FETCH loses nothing of it, and it ends with its name."""

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from evertide.adapter.client import Portal, Prepared, SharedNames, StreamResponse
from evertide.adapter.cursor import run_close, run_declare, run_fetch
from evertide.adapter.savepoints import run_savepoint
from evertide.adapter.session import Login, Session, open_session
from evertide.adapter.transaction import Span, Transaction
from evertide.pgwire.messages import Bind, Target
from evertide.pgwire.portals import Names
from evertide.sql.plan.plans import ClosePlan, FetchPlan, SavepointPlan
from evertide.sql.syntax.command import SavepointAction
from evertide.vocab.datum import Row
from evertide.vocab.errors import DivisionByZero, SqlError
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4

DESC = relation_desc(("a", INT4))


class Stream:
    """Rows in pieces, then an error, again and again."""

    ready = False

    def __init__(self, *pieces: Sequence[Row]) -> None:
        self.pieces = list(pieces)
        self.closed = False

    async def take(self, most: int | None) -> Sequence[Row] | None:
        await asyncio.sleep(0)
        if not self.pieces:
            raise DivisionByZero("division by zero")
        return self.pieces.pop(0)[:most]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def session() -> Session:
    made = open_session({}, {}, Login())
    made.transaction = Transaction(Span.BLOCK)
    return made


def declared(session: Session, name: str, *pieces: Sequence[Row]) -> Stream:
    stream = Stream(*pieces)
    run_declare(name, StreamResponse(DESC, stream), session)
    return stream


@pytest.mark.parametrize("count", [None, 10])
async def test_rows_that_came_before_an_error_are_told_before_it(
    session: Session, count: int | None
) -> None:
    declared(session, "c", [(1,)], [(2,)])
    fetch = FetchPlan("c", count, timeout_ms=10_000)
    assert (await run_fetch(fetch, session)).rows == [(1,), (2,)]
    for _ in range(2):
        with pytest.raises(SqlError, match="division by zero"):
            await run_fetch(fetch, session)


async def test_an_error_that_has_failed_the_block_is_told_at_once(session: Session) -> None:
    """Nobody could ask for it later."""
    declared(session, "c", [(1,)])
    assert session.transaction is not None
    session.transaction.failed = True
    with pytest.raises(SqlError, match="division by zero"):
        await run_fetch(FetchPlan("c", None, timeout_ms=10_000), session)


def test_closing_a_cursor_ends_its_stream(session: Session) -> None:
    one, other, third = (declared(session, name) for name in "cde")
    run_close(ClosePlan("c"), session)
    assert [one.closed, other.closed] == [True, False]
    run_close(ClosePlan(None), session)
    assert [other.closed, third.closed] == [True, True]


def test_going_back_to_a_savepoint_ends_what_was_declared_since(session: Session) -> None:
    before = declared(session, "before")
    run_savepoint(SavepointPlan(SavepointAction.SET, "s"), session)
    since = declared(session, "since")
    run_savepoint(SavepointPlan(SavepointAction.ROLL_BACK, "s"), session)
    assert list(session.cursors) == ["before"]
    assert [before.closed, since.closed] == [False, True]


class Shared:
    """All that binding asks of a session."""

    def check_described(self, prepared: Prepared) -> None:
        pass


def _bind_again(names: Names) -> None:
    names.bind(Bind("", "", (), (), ()), cast(SharedNames, Shared()))


@pytest.mark.parametrize(
    "end",
    [_bind_again, Names.forget_unnamed, lambda names: names.close(Target.PORTAL, "")],
    ids=["bind", "query", "close"],
)
def test_a_portal_s_stream_ends_with_it(end: Callable[[Names], None]) -> None:
    names = Names()
    prepared = Prepared("SUBSCRIBE t", None, result=DESC)
    one, other = Stream(), Stream()
    names.statements[""] = prepared
    names.portals[""] = Portal(prepared, response=StreamResponse(DESC, one))
    names.portals["other"] = Portal(prepared, response=StreamResponse(DESC, other))
    end(names)
    assert [one.closed, other.closed] == [True, False]
    names.forget_portals()
    assert other.closed
    assert not names.portals
