"""Goal: the README's tour does what it says. Method: run its SQL and compare what psql shows."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import running_postgres
from tests.support.s3 import create_bucket, environment_of, running_s3
from tests.support.server import Server, running_server

pytestmark = pytest.mark.wire

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(params=["local files", "postgresql and s3"])
def fresh_server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    with ExitStack() as stack:
        flags: list[str] = []
        if request.param != "local files":
            endpoint = stack.enter_context(running_s3())
            for name, value in environment_of(endpoint).items():
                monkeypatch.setenv(name, value)
            consensus = stack.enter_context(running_postgres())
            flags = ["--consensus", consensus, "--blob", f"s3://{create_bucket(endpoint)}/tour"]
        yield stack.enter_context(running_server(tmp_path / "data", flags))


def tour() -> list[tuple[str, str]]:
    """(kind, text) of the fenced blocks of the psql section, in order."""
    section = README.read_text().split("## Five minutes with psql")[1].split("\n## ")[0]
    blocks = re.findall(r"```(\w*)\n(.*?)```", section, re.S)
    start = next(i for i, (kind, _) in enumerate(blocks) if kind == "sql")
    return blocks[start:]


def shown(cursor: "psycopg.Cursor[tuple]") -> list[list[str]]:
    """Column names and rows as text."""
    names = [column.name for column in cursor.description or ()]
    rows = [["" if v is None else str(v) for v in row] for row in cursor.fetchall()]
    return [names, *rows]


def expected(block: str) -> list[list[str]]:
    """The same out of psql's picture."""
    lines = [line for line in block.splitlines() if line.strip() and not line.startswith("-")]
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def test_the_tour(fresh_server: Server) -> None:
    blocks = tour()
    compared = 0
    with fresh_server.connect() as connection:
        for (kind, text), following in zip(blocks, [*blocks[1:], ("", "")], strict=True):
            if kind != "sql":
                continue
            statements = [s for s in text.split(";") if s.strip()]
            for statement in statements[:-1]:
                connection.execute(statement.encode())
            if following[0] == "" and following[1].startswith("ERROR"):
                message = following[1].removeprefix("ERROR:").strip()
                with pytest.raises(psycopg.Error, match=re.escape(message)):
                    connection.execute(statements[-1].encode())
                compared += 1
                continue
            cursor = connection.execute(statements[-1].encode())
            if following[0] == "" and following[1]:
                assert shown(cursor) == expected(following[1]), statements[-1]
                compared += 1
    assert compared == 5


GUIDE = sorted((README.parent / "docs" / "guide").glob("*.md"))


@pytest.mark.parametrize("path", GUIDE, ids=lambda path: path.stem)
def test_the_guide_s_sql_runs(server: Server, path: Path) -> None:
    schema = f"guide_{path.stem.replace('-', '_')}"
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"SET search_path = {schema}".encode())
        for block in re.findall(r"```sql\n(.*?)```", path.read_text(), re.S):
            for statement in filter(str.strip, block.split(";")):
                connection.execute(statement.encode())
