"""INSERT, UPDATE and DELETE leave the table, and return the rows, that PostgreSQL does."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.types.string import TextLoader

from evertide.expr.text_input import parse_text
from evertide.sql.plan.plans import DeletePlan, InsertPlan, UpdatePlan
from evertide.vocab.datum import Row
from evertide.vocab.relation_desc import RelationDesc
from tests.sql.database import new_database
from tests.sql.plan_corpus.schema import ROWS, SCHEMA
from tests.sql.plan_corpus.writes import WRITES

# NOT NULL is the adapter's to check, so the tables here have none.
NULLABLE = SCHEMA.replace(" NOT NULL", "")


@pytest.fixture
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("CREATE SCHEMA writes")
        connection.execute("SET search_path = writes")
        connection.execute(NULLABLE)
        connection.execute(ROWS)
        for info in list(connection.adapters.types):
            connection.adapters.register_loader(info.oid, TextLoader)
        yield connection
        connection.rollback()


@pytest.mark.parametrize("sql", WRITES)
def test_table_and_returned_rows(sql: str, postgres: psycopg.Connection) -> None:
    database = new_database()
    database.run(NULLABLE)
    database.run(ROWS)
    plan = database.plan(sql)
    assert isinstance(plan, InsertPlan | UpdatePlan | DeletePlan)
    returned = database.query(sql)
    cursor = postgres.execute(sql)
    if plan.returning is not None:
        names = [column.name for column in cursor.description or ()]
        assert list(plan.returning.desc.names) == names
        assert _sorted(returned) == _parsed(cursor, plan.returning.desc)
    contents = postgres.execute("SELECT * FROM customers")
    desc = database.snapshot.items[plan.table_id].desc
    assert _sorted(database.rows[plan.table_id]) == _parsed(contents, desc)


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


def _parsed(cursor: psycopg.Cursor, desc: RelationDesc) -> list[Row]:
    return _sorted(
        [
            tuple(
                None if text is None else parse_text(sql_type, text)
                for text, sql_type in zip(row, desc.types, strict=True)
            )
            for row in cursor.fetchall()
        ]
    )
