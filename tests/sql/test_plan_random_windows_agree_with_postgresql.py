"""Random window functions give PostgreSQL's rows and types, and NULL only where announced."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.types.string import TextLoader

from tests.sql.database import new_database
from tests.sql.random_window_queries import SCHEMA, WindowQueries
from tests.sql.test_plan_random_queries_agree_with_postgresql import compare
from tests.support.seeds import seeds

PER_SEED = 30


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(SCHEMA.replace("CREATE TABLE", "CREATE TEMPORARY TABLE"))
        for info in list(connection.adapters.types):
            for oid in (info.oid, info.array_oid):
                connection.adapters.register_loader(oid, TextLoader)
        yield connection


def compare_many(seed: int, postgres: psycopg.Connection) -> None:
    maker = WindowQueries(seed)
    rows = maker.rows()
    database = new_database()
    database.run(SCHEMA)
    database.run(rows)
    postgres.execute("TRUNCATE w")
    postgres.execute(rows)
    for _ in range(PER_SEED):
        compare(maker.query(), database, postgres)


@seeds(range(20), deep=range(1_000, 1_200), fresh=100)
def test_of_many_seeds(seed: int, postgres: psycopg.Connection) -> None:
    compare_many(seed, postgres)
