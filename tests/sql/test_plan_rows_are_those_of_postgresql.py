"""Every query of the corpus gives PostgreSQL's rows, under its column names and types."""

from collections.abc import Iterator, Sequence

import psycopg
import pytest
from psycopg.types.string import TextLoader

from evertide.expr.text_input import parse_text
from evertide.expr.text_output import format_text
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Datum, Row
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import Kind, SqlType
from tests.sql.database import Database, new_database
from tests.sql.plan_corpus.queries import CORPUS
from tests.sql.plan_corpus.schema import ROWS, SCHEMA

QUERIES = [pytest.param(sql, id=f"{k} {i}") for k, v in CORPUS.items() for i, sql in enumerate(v)]


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(SCHEMA)
    database.run(ROWS)
    return database


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection that gives every value as text."""
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS corpus CASCADE")
        connection.execute("CREATE SCHEMA corpus")
        connection.execute("SET search_path = corpus")
        connection.execute("SET timezone = 'UTC'")
        connection.execute(SCHEMA)
        connection.execute(ROWS)
        for info in list(connection.adapters.types):
            for oid in (info.oid, info.array_oid):
                connection.adapters.register_loader(oid, TextLoader)
        yield connection


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_names_and_types(sql: str, database: Database, postgres: psycopg.Connection) -> None:
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    cursor = postgres.execute(sql)
    described = [(column.name, column.type_code) for column in cursor.description or ()]
    assert [(column.name, column.type.oid) for column in plan.desc.columns] == described
    assert plan.desc.types == _types(plan)
    expected = _parsed(cursor.fetchall(), plan.desc)
    found = _shown(database.query(sql), plan.desc)
    if "ORDER BY" in sql:
        assert found == expected
    else:
        assert sorted(found, key=repr) == sorted(expected, key=repr)


def _types(plan: SelectPlan) -> tuple[object, ...]:
    """What the relation itself says of the output columns, but for modifiers."""
    project = plan.finishing.project
    types = plan.relation.types
    return tuple(types) if project is None else tuple(types[column] for column in project)


def _read(sql_type: SqlType, text: str) -> Datum:
    """A row has no input form, so its text is compared."""
    return text if sql_type.kind is Kind.RECORD else parse_text(sql_type, text)


def _shown(rows: Sequence[Row], desc: RelationDesc) -> list[Row]:
    """Rows as values in their output form."""
    odd = [sql_type.kind is Kind.RECORD for sql_type in desc.types]
    return [
        tuple(
            format_text(sql_type, datum) if is_row and datum is not None else datum
            for datum, sql_type, is_row in zip(row, desc.types, odd, strict=True)
        )
        for row in rows
    ]


def _parsed(rows: Sequence[Sequence[str | None]], desc: RelationDesc) -> list[Row]:
    return [
        tuple(
            None if text is None else _read(sql_type, text)
            for text, sql_type in zip(row, desc.types, strict=True)
        )
        for row in rows
    ]
