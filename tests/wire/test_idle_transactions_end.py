"""Goal: a client that says nothing in an open transaction does not hold history back for ever."""

import select

import psycopg
import pytest

from tests.support.server import Server


@pytest.mark.parametrize("failed", [False, True])
def test_an_idle_transaction_is_ended(server: Server, failed: bool) -> None:
    with server.connect() as connection:
        connection.execute("SET idle_in_transaction_session_timeout = '300ms'")
        connection.execute("BEGIN")
        if failed:
            with pytest.raises(psycopg.errors.DivisionByZero):
                connection.execute("SELECT 1 / 0")
        told, _, _ = select.select([connection.fileno()], [], [], 60)
        assert told
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            connection.execute("SELECT 1")


def test_neither_work_nor_rest_between_transactions_is_idle(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("SET idle_in_transaction_session_timeout = '200ms'")
        connection.execute("BEGIN")
        connection.execute("SELECT 1")
        connection.execute("COMMIT")
        assert connection.execute("SELECT pg_sleep(0.5)").fetchone() is not None
        connection.execute("BEGIN")
        connection.execute("SELECT pg_sleep(0.5)")
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        connection.execute("SELECT pg_sleep(0.5)")
        connection.execute("COMMIT")
