"""Goal: a statement that asks for too much ends with an error, and nobody else notices.

Method: one client sends what would take all memory or all time; another is served meanwhile, and
the server's memory stays where it was.
"""

import threading
import time
from pathlib import Path

import psycopg
import pytest

from tests.support.server import Server

# What one statement may add to the adapter's memory, for as long as it runs.
MOST_BYTES = 2 * 1024**3
TIMEOUT = "3s"

TOO_LARGE = [
    ("SELECT 9223372036854775807 + 1", "22003"),
    ("SELECT (-9223372036854775808) / (-1)", "22003"),
    ("SELECT 32767::int2 + 1::int2", "22003"),
    ("SELECT 9e38::numeric * 9e38::numeric", "22003"),
    ("SELECT 1e308::float8 * 10", "22003"),
    ("SELECT ('1' || repeat('0', 200000))::numeric", "22003"),
    ("SELECT (repeat('9', 100000))::int4", "22003"),
    ("SELECT 1e999999999::numeric", "22003"),
    ("SELECT repeat('x', 2000000000)", "54000"),
    ("SELECT repeat(repeat(repeat('x', 10000), 10000), 10000)", "54000"),
    ("SELECT lpad('x', 2000000000)", "54000"),
    ("SELECT chr(0)", "54000"),
    ("SELECT E'a\\000b'", "42601"),
    ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "54001"),
    ("SELECT " + "NOT " * 20_000 + "true", "54001"),
    ("SELECT " + "ARRAY[" * 5_000 + "1" + "]" * 5_000, "54001"),
    ("SELECT 1" + " + 1" * 100_000, "54001"),
    ("SELECT '" + "[" * 100_000 + "]" * 100_000 + "'::jsonb", "54001"),
    ("SELECT 'a' ~ '" + "(" * 5_000 + "a" + ")" * 5_000 + "'", "2201B"),
]
# Each would try more ways to match than there are atoms, were it tried naively.
BOMBS = [
    ("SELECT (repeat('a', 64) || 'b') ~ '^(a+)+$'", False),
    ("SELECT (repeat('a', 64) || 'b') ~ '^(a|aa)+$'", False),
    ("SELECT (repeat('a', 64) || 'b') ~ '^(a*)*$'", False),
    ("SELECT regexp_replace(repeat('a', 64) || 'b', '(a|aa)+$', 'x') LIKE '%x%'", False),
]
# Each takes longer than anyone waits.
ENDLESS = [
    "SELECT count(*) FROM generate_series(1, 10000000000000)",
    "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b",
]


def _memory(server: Server) -> int:
    """Resident bytes of all adapters."""
    found = 0
    for pid in server.pids_of("adapter"):
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        found += int(fields[1]) * 4096
    return found


@pytest.mark.parametrize(("statement", "sqlstate"), TOO_LARGE, ids=[s[:40] for s, _ in TOO_LARGE])
def test_what_is_too_large_is_refused(server: Server, statement: str, sqlstate: str) -> None:
    with server.connect() as connection:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(statement)
        assert refused.value.sqlstate == sqlstate
        assert connection.execute("SELECT 1").fetchone() == (1,), "the session goes on"


@pytest.mark.parametrize(("statement", "answer"), BOMBS)
def test_regular_expressions_are_no_bombs(server: Server, statement: str, answer: bool) -> None:
    with server.connect() as connection:
        connection.execute(f"SET statement_timeout = '{TIMEOUT}'")
        assert connection.execute(statement).fetchone() == (answer,)


@pytest.mark.parametrize("statement", ENDLESS)
def test_what_takes_too_long_is_ended(server: Server, statement: str) -> None:
    before = _memory(server)
    told: list[str | None] = []

    def ask() -> None:
        with server.connect() as connection:
            connection.execute(f"SET statement_timeout = '{TIMEOUT}'")
            try:
                connection.execute(statement)
                told.append("answered")
            except psycopg.Error as error:
                told.append(error.sqlstate)

    asking = threading.Thread(target=ask)
    asking.start()
    served = 0
    with server.connect() as other:
        while asking.is_alive():
            assert other.execute("SELECT 1").fetchone() == (1,)
            served += 1
            assert _memory(server) - before < MOST_BYTES
            time.sleep(0.05)
    asking.join()
    assert told in (["57014"], ["54000"], ["53200"]), told
    assert served > 0
