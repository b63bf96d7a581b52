"""Goal: psql's backslash commands show what is there, and none of them fails.

Method: the real psql 16 runs each of them; its output is compared with psql/commands.txt, which
`make golden ARGS=tests/wire` writes anew. psql/psql15_queries.txt holds the queries that psql 15.18
sends for the same commands, as its option -E shows them, with oids replaced by {name of the
object}: clients of either version must get an answer.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import PSQL
from tests.support.server import running_server
from tests.wire.psql.commands import DATABASE, LONG, OBJECTS, SETUP, SHOWN

FOLDER = Path(__file__).parent / "psql"
GOLDEN = FOLDER / "commands.txt"
MARK = "=== "


@dataclass(frozen=True)
class Place:
    """A database on a server of its own: roles and settings belong to all databases of one."""

    dsn: str
    connection: "psycopg.Connection[tuple]"

    def psql(self, command: str) -> str:
        """What psql shows: output, then messages."""
        ended = subprocess.run(
            [PSQL, "-X", "-P", "pager=off", self.dsn, "-c", command],
            capture_output=True,
            text=True,
            timeout=60,
        )
        lines = (ended.stdout + ended.stderr).splitlines()
        return "\n".join(line.rstrip() for line in lines).rstrip()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with running_server(tmp_path_factory.mktemp("psql") / "data") as server:
        with server.connect() as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        with server.connect(dbname=DATABASE) as connection:
            for statement in SETUP:
                connection.execute(statement)
            yield Place(server.dsn().replace("/materialize", f"/{DATABASE}"), connection)


@pytest.fixture(scope="module")
def golden(place: Place, rewrite_golden: bool) -> dict[str, str]:
    if rewrite_golden:
        shown = [f"{MARK}{command}\n{place.psql(command)}\n" for command in SHOWN]
        GOLDEN.write_text("\n".join(shown))
    blocks = GOLDEN.read_text().split(MARK)[1:]
    pairs = [block.split("\n", 1) for block in blocks]
    return {command: text.rstrip() for command, text in pairs}


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_shows_what_is_there(command: str, place: Place, golden: dict[str, str]) -> None:
    shown = place.psql(command)
    assert "ERROR" not in shown
    assert shown == golden[command]


@pytest.mark.parametrize("command", LONG)
def test_a_long_answer_is_an_answer(command: str, place: Place) -> None:
    shown = place.psql(command)
    assert "ERROR" not in shown
    assert shown


def test_a_mistake_is_the_user_s_own(place: Place) -> None:
    assert 'function "nope" does not exist' in place.psql(r"\sf nope")
    assert 'relation "nope" does not exist' in place.psql(r"\sv nope")
    assert 'more than one function named "abs"' in place.psql(r"\sf abs")


def queries_of_psql_15() -> list[tuple[str, str]]:
    """(command and number, query)."""
    found: list[tuple[str, str]] = []
    for block in (FOLDER / "psql15_queries.txt").read_text().split(MARK)[1:]:
        command, text = block.split("\n", 1)
        queries = [query.strip() for query in text.split(";\n") if query.strip()]
        found += [(f"{command} {number}", query) for number, query in enumerate(queries)]
    return found


@pytest.mark.parametrize(("label", "query"), queries_of_psql_15())
def test_psql_15_gets_an_answer(label: str, query: str, place: Place) -> None:
    for name in OBJECTS:
        if f"{{{name}}}" in query:
            row = place.connection.execute("SELECT to_regclass(%s)::oid", (name,)).fetchone()
            assert row is not None
            query = query.replace(f"{{{name}}}", str(row[0]))
    cursor = place.connection.execute(query.encode(), prepare=False)
    assert cursor.description is not None, label
