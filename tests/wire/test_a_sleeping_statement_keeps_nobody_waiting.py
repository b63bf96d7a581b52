"""Goal: pg_sleep delays its own statement alone, which can be ended; writes with it wait too."""

import threading

import psycopg
import pytest

from tests.support.server import Server, eventually


def test_it_can_be_ended_and_others_go_on(server: Server) -> None:
    with server.connect() as sleeper, server.connect() as other:
        ended: list[psycopg.Error] = []

        def sleep() -> None:
            try:
                sleeper.execute("SELECT pg_sleep(600)")
            except psycopg.Error as error:
                ended.append(error)

        thread = threading.Thread(target=sleep)
        thread.start()
        try:
            for _ in range(20):
                assert other.execute("SELECT 1").fetchone() == (1,)
            assert not ended

            def cancelled() -> bool:
                sleeper.cancel_safe()
                return bool(ended)

            eventually(cancelled, seconds=60, pause=0.1)
        finally:
            thread.join(60)
        assert isinstance(ended[0], psycopg.errors.QueryCanceled)
        assert sleeper.execute("SELECT pg_sleep(0), pg_sleep(NULL)").fetchone() == ("", None)


def test_a_time_limit_ends_reads_and_writes(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE slept (a text)")
        connection.execute("SET statement_timeout = '200ms'")
        for statement in ("SELECT pg_sleep(600)", "INSERT INTO slept SELECT pg_sleep(600)"):
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(statement)
        connection.execute("SET statement_timeout = '60s'")
        connection.execute("INSERT INTO slept SELECT mz_unsafe.mz_sleep(0.01)")
        assert connection.execute("SELECT a FROM slept").fetchall() == [("",)]


def test_time_has_passed_afterwards(server: Server) -> None:
    """By the server's own clock."""
    with server.connect() as connection:
        connection.execute("CREATE TABLE moments (at timestamptz)")
        connection.execute("INSERT INTO moments VALUES (now())")
        connection.execute("SELECT pg_sleep(0.3)")
        found = connection.execute("SELECT now() - at >= '300 ms' FROM moments").fetchone()
        assert found == (True,)
