"""The files in builtin/data say what a real PostgreSQL 16 says."""

from pathlib import Path

import psycopg
import pytest

from evertide.catalog.builtin import postgres
from tests.catalog.postgres_catalog import ROW_FILTERS, relations_text, rows_text

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
    if rewrite_golden:
        path.write_text(text)
    assert path.read_text() == text
