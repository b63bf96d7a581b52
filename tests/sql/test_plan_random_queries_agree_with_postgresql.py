"""Random queries give PostgreSQL's rows and types, and no NULL where none was announced."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.types.string import TextLoader

from evertide.expr.text_input import parse_text
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Row
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database
from tests.sql.plan_corpus.schema import ROWS, SCHEMA
from tests.sql.random_queries import QueryMaker
from tests.support.seeds import seeds

PER_SEED = 50


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(SCHEMA)
    database.run(ROWS)
    return database


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS random CASCADE")
        connection.execute("CREATE SCHEMA random")
        connection.execute("SET search_path = random")
        connection.execute("SET statement_timeout = '2s'")
        connection.execute(SCHEMA)
        connection.execute(ROWS)
        for info in list(connection.adapters.types):
            for oid in (info.oid, info.array_oid):
                connection.adapters.register_loader(oid, TextLoader)
        yield connection


@pytest.mark.parametrize("correlated", [False, True])
@seeds(range(5), deep=range(1_000, 1_100), fresh=50)
def test_of_many_seeds(
    seed: int, correlated: bool, database: Database, postgres: psycopg.Connection
) -> None:
    compare_many(QueryMaker(seed, correlated=correlated), database, postgres)


def compare_many(maker: QueryMaker, database: Database, postgres: psycopg.Connection) -> None:
    for _ in range(PER_SEED):
        compare(maker.query(), database, postgres)


def compare(sql: str, database: Database, postgres: psycopg.Connection) -> None:
    """Where one system finds an error in the data, the other may not have looked."""
    try:
        cursor = postgres.execute(sql)
    except psycopg.errors.QueryCanceled:
        return
    except psycopg.errors.DataError:
        return
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    try:
        found = database.query(sql)
    except SqlError as error:
        if error.code.startswith("22"):
            return
        raise
    described = [column.type_code for column in cursor.description or ()]
    assert [column.type.oid for column in plan.desc.columns] == described, sql
    expected: list[Row] = [
        tuple(
            None if text is None else parse_text(sql_type, text)
            for text, sql_type in zip(row, plan.desc.types, strict=True)
        )
        for row in cursor.fetchall()
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr), sql
    for i, column in enumerate(plan.desc.columns):
        assert column.nullable or all(row[i] is not None for row in found), (sql, column)
