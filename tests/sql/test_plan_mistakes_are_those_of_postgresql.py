"""A mistake in a query has PostgreSQL's SQLSTATE, and points at the same place."""

from collections.abc import Iterator

import psycopg
import pytest

from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database
from tests.sql.plan_corpus.mistakes import AS_POSTGRESQL
from tests.sql.plan_corpus.records import MISTAKES as RECORD_MISTAKES
from tests.sql.plan_corpus.schema import SCHEMA
from tests.sql.plan_corpus.set_returning import MISTAKES as ROWS_MISTAKES
from tests.sql.plan_corpus.windows import MISTAKES as WINDOW_MISTAKES


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(SCHEMA)
    return database


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS mistakes CASCADE")
        connection.execute("CREATE SCHEMA mistakes")
        connection.execute("SET search_path = mistakes")
        connection.execute(SCHEMA)
        yield connection


MISTAKES = [*AS_POSTGRESQL, *WINDOW_MISTAKES, *ROWS_MISTAKES, *RECORD_MISTAKES]


@pytest.mark.parametrize("marked", MISTAKES)
def test_code_and_position(marked: str, database: Database, postgres: psycopg.Connection) -> None:
    position = marked.find("§") + 1 or None
    sql = marked.replace("§", "")
    with pytest.raises(psycopg.Error) as theirs:
        postgres.execute(sql)
    diagnosis = theirs.value.diag
    pointed = diagnosis.statement_position
    assert position == (None if pointed is None else int(pointed)), diagnosis.message_primary
    with pytest.raises(SqlError) as ours:
        database.query(sql)
    assert ours.value.code == diagnosis.sqlstate, ours.value
    if position is not None:  # where PostgreSQL is silent a hint at the place does no harm
        assert ours.value.position == position, ours.value
