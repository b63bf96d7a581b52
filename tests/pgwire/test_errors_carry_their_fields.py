"""Clients learn what went wrong, where, and what to do; then they go on."""

import subprocess
from collections.abc import Sequence

import psycopg
import pytest

from evertide.adapter.client import CommandResponse, Response, RowsResponse, TransactionStatus
from evertide.vocab.datum import Datum
from evertide.vocab.errors import (
    DivisionByZero,
    Notice,
    SerializationFailure,
    UndefinedColumn,
)
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from tests.pgwire.raw import SYNC, RawClient, bind, execute, message, parse, query, tags
from tests.pgwire.scripted import RunningServer, ScriptedSession
from tests.support.postgres import PSQL

ONE = RowsResponse(relation_desc(("one", INT4)), [(1,)])


@pytest.fixture(autouse=True)
def _script(server: RunningServer) -> None:
    server.say("SELECT 1", ONE)
    error = UndefinedColumn('column "x" does not exist', detail="why", hint="how", position=8)
    server.say("SELECT x", error)
    server.say("SELECT bug", RuntimeError("a secret of the inside"))


@pytest.mark.parametrize("prepare", [None, True], ids=["simple", "extended"])
def test_every_field_arrives(server: RunningServer, prepare: bool | None) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn) as caught:
            connection.execute("SELECT x", prepare=prepare)
        told = caught.value.diag
        assert told.severity == told.severity_nonlocalized == "ERROR"
        assert told.message_primary == 'column "x" does not exist'
        assert (told.message_detail, told.message_hint) == ("why", "how")
        assert told.statement_position == "8"
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_psql_points_at_the_position(server: RunningServer) -> None:
    command = [str(PSQL), "-X", server.dsn, "-c", "SELECT x"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr
    assert "LINE 1: SELECT x\n               ^\n" in told
    assert "HINT:  how" in told


def test_a_bug_is_an_internal_error_and_the_connection_goes_on(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InternalError_) as caught:
            connection.execute("SELECT bug")
        assert caught.value.diag.message_primary == "internal error"
        assert "secret" not in str(caught.value)
        assert connection.execute("SELECT 1").fetchone() == (1,)
    logged = capsys.readouterr().out
    assert "RuntimeError" in logged, "the log holds the traceback"


def test_the_first_error_ends_a_query_of_several_statements(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        replies = client.ask(query("SELECT 1; SELECT x; SELECT 1"))
        assert tags(replies) == "TDCEZ"
        assert replies[-1].body == b"I"
        assert server.last_session.ends == [True]


def test_several_statements_are_answered_in_order(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        assert tags(client.ask(query("SELECT 1;; SELECT 1;"))) == "TDCTDCZ"
        assert server.last_session.ends == [False]


@pytest.mark.parametrize("text", ["", " ; ;"])
def test_an_empty_query_has_its_own_answer(server: RunningServer, text: str) -> None:
    with RawClient(server) as client:
        client.start()
        assert tags(client.ask(query(text))) == "IZ"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        result = connection.execute("", prepare=True).pgresult
        assert result is not None
        assert result.status == psycopg.pq.ExecStatus.EMPTY_QUERY


def test_an_error_fails_an_open_transaction(server: RunningServer) -> None:
    with psycopg.connect(server.dsn) as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("SELECT x")
        assert connection.info.transaction_status is psycopg.pq.TransactionStatus.INERROR
        connection.rollback()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_failed_commit_is_told_instead_of_success(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_to_commit(session: ScriptedSession, *, failed: bool) -> None:
        if not failed:
            raise SerializationFailure("could not serialize access")
        session.status = TransactionStatus.IDLE

    monkeypatch.setattr(ScriptedSession, "end_implicit", fail_to_commit)
    with RawClient(server) as client:
        client.start()
        replies = client.ask(query("SELECT 1"))
        assert tags(replies) == "TDEZ", "no CommandComplete"
        assert replies[2].fields["C"] == "40001"


def test_notices_and_changed_parameters_come_before_completion(server: RunningServer) -> None:
    async def set_zone(session: ScriptedSession, _parameters: Sequence[Datum]) -> Response:
        session.events.notices.append(Notice("WARNING", "01000", "mind", detail="d", hint="h"))
        session.events.parameters["TimeZone"] = "Europe/Berlin"
        return CommandResponse("SET")

    server.say("SET TimeZone = x", set_zone)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        notices: list[tuple[str | None, ...]] = []
        connection.add_notice_handler(
            lambda told: notices.append((told.severity, told.sqlstate, told.message_primary))
        )
        for prepare in (None, True):
            connection.execute("SET TimeZone = x", prepare=prepare)
            assert connection.info.parameter_status("TimeZone") == "Europe/Berlin"
    assert notices == [("WARNING", "01000", "mind")] * 2
    with RawClient(server) as client:
        client.start()
        assert tags(client.ask(query("SET TimeZone = x"))) == "NSCZ"


def test_a_function_call_is_refused_and_the_connection_goes_on(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        replies = client.ask(message(b"F", b"\0" * 10))
        assert tags(replies) == "EZ"
        assert replies[0].fields["C"] == "0A000"
        assert tags(client.ask(query("SELECT 1"))) == "TDCZ"


def test_show_and_explain_count_no_rows(server: RunningServer) -> None:
    server.say("SHOW x", RowsResponse(ONE.desc, ONE.rows, tag="SHOW"))
    server.say("INSERT RETURNING", RowsResponse(ONE.desc, ONE.rows, tag="INSERT 0"))
    with psycopg.connect(server.dsn) as connection:
        assert connection.execute("SHOW x").statusmessage == "SHOW"
        assert connection.execute("INSERT RETURNING").statusmessage == "INSERT 0 1"


def test_columns_are_told_before_a_row_fails(server: RunningServer) -> None:
    """A query that failed while it ran has columns; one that never ran has none."""
    columns = relation_desc(("one", INT4))

    async def fails(session: ScriptedSession, _: Sequence[Datum]) -> Response:
        session.events.unfinished = columns
        raise DivisionByZero("division by zero")

    server.say("FAILS", fails)
    server.say("NEVER RUNS", DivisionByZero("division by zero"))
    with RawClient(server) as client:
        client.start()
        assert tags(client.ask(query("FAILS"))) == "TEZ"
        assert tags(client.ask(query("NEVER RUNS"))) == "EZ"
        assert tags(client.ask(parse("FAILS"), bind(), execute(), SYNC)) == "12EZ"
