"""Goal: SQL behaves as the golden files say. `make golden` rewrites them; review reads the diff.

A file is a list of records separated by blank lines:

    statement ok            the statement must work
    statement error 42P01 unknown catalog item 'x'
                            it must fail with this SQLSTATE, and a message that holds this text
    query                   its rows follow after ----, one line each, columns parted by two blanks
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from tests.support.server import Server

FILES = sorted(Path(__file__).parent.glob("*.slt"))
Connection = psycopg.Connection[tuple]


@dataclass(frozen=True)
class Record:
    """One statement and what is expected of it."""

    head: str
    sql: str
    rows: tuple[str, ...] = ()

    def text(self) -> str:
        if self.head != "query":
            return f"{self.head}\n{self.sql}"
        return "\n".join([self.head, self.sql, "----", *self.rows])


def parse(text: str) -> list[Record | str]:
    """Records; comments stay as they are."""
    found: list[Record | str] = []
    for block in text.strip().split("\n\n"):
        head, _, body = block.partition("\n")
        if head.startswith("#"):
            found.append(block)
            continue
        sql, _, rows = body.partition("\n----")
        found.append(Record(head, sql.strip(), tuple(rows.strip("\n").split("\n")) if rows else ()))
    return found


def shown(rows: Sequence[tuple]) -> tuple[str, ...]:
    return tuple("  ".join("NULL" if v is None else str(v) for v in row) for row in rows)


def run(record: Record, connection: Connection) -> Record:
    """The record as it came out: equal to the one that went in, or the test fails."""
    kind, _, wanted = record.head.partition(" ")
    if kind == "query":
        cursor = connection.execute(record.sql.encode())
        return replace(record, rows=shown(cursor.fetchall()))
    try:
        connection.execute(record.sql.encode())
    except psycopg.Error as error:
        if wanted == "ok":
            raise AssertionError(f"{record.sql}\n{error}") from error
        message = error.diag.message_primary or ""
        _, sqlstate, text = [*wanted.split(" ", 2), "", ""][:3]
        if sqlstate == error.sqlstate and text in message:
            return record
        return replace(record, head=f"statement error {error.sqlstate} {message}")
    return replace(record, head="statement ok")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_file(server: Server, path: Path, rewrite_golden: bool) -> None:
    expected = parse(path.read_text())
    schema = f"golden_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"SET search_path = {schema}".encode())
        found = [r if isinstance(r, str) else run(r, connection) for r in expected]
    if rewrite_golden:
        texts = [r if isinstance(r, str) else r.text() for r in found]
        path.write_text("\n\n".join(texts) + "\n")
    else:
        assert found == expected


def test_there_are_golden_files() -> None:
    assert len(FILES) >= 3
