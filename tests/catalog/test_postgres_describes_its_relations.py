"""The files in builtin/data say what a real PostgreSQL 16 says."""

import json
from pathlib import Path

import psycopg
import pytest

from evertide.catalog.builtin import postgres
from tests.catalog.postgres_catalog import (
    FIRST_OID_OF_USERS,
    ROW_FILTERS,
    relations_text,
    rows_text,
    stable,
)

DIRECTORY = Path(postgres.__file__).parent / "data"


@pytest.mark.parametrize("name", ["relations", *ROW_FILTERS])
def test_the_file_is_what_the_server_says(
    name: str, postgres_dsn: str, rewrite_golden: bool
) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        if name == "relations":
            text = relations_text(connection)
        else:
            text = rows_text(connection, name)
    path = DIRECTORY / f"{name}.json"
    if rewrite_golden and stable(name, text) != stable(name, path.read_text()):
        path.write_text(text)
    assert stable(name, path.read_text()) == stable(name, text)


def test_oids_of_relations_are_told_apart() -> None:
    oids = [oid for _, _, oid, *_ in json.loads((DIRECTORY / "relations.json").read_text())]
    assert len(set(oids)) == len(oids)
    assert max(oids) < FIRST_OID_OF_USERS


def test_only_what_initdb_hands_out_is_left_open() -> None:
    """Method: the file as another host, and as another PostgreSQL, would have it."""
    text = (DIRECTORY / "relations.json").read_text()
    known = stable("relations", text)
    assert stable("relations", text.replace(", 127", ", 128")) == known
    assert stable("relations", text.replace(", 1259,", ", 1260,")) != known
    assert stable("relations", text.replace('"relname"', '"name"')) != known
