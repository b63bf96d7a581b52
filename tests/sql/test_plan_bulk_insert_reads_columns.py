"""A long INSERT of constants is read column by column: fast, and with the same meaning."""

import random
from decimal import Decimal

import pytest

from evertide.adapter.reading.selection import to_rows
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.entry import plan_statement
from evertide.sql.plan.literal_rows import literal_column
from evertide.sql.plan.plans import InsertPlan, LiteralColumns, SelectPlan
from evertide.sql.syntax.command import InsertStatement
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import (
    BOOL,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    Kind,
    SqlType,
)
from tests.sql.database import Database, new_database

COUNT = 100_000


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b text, c numeric(10,2));"
        "CREATE TABLE d (a int, b text DEFAULT 'dflt', n timestamptz DEFAULT now(), c int)"
    )
    return database


def plan_insert(database: Database, sql: str) -> InsertPlan:
    plan = database.plan(sql)
    assert isinstance(plan, InsertPlan)
    return plan


def test_a_hundred_thousand_rows_become_columns(database: Database) -> None:
    rows = ", ".join(f"({i}, 'name {i}', {i % 9973 / 100:.2f})" for i in range(COUNT))
    statement = parse_statement(f"INSERT INTO t VALUES {rows}")
    assert isinstance(statement, InsertStatement)
    assert statement.source is not None
    assert isinstance(statement.source.body, LiteralValues)
    planned = plan_statement(statement, database.context)
    assert isinstance(planned.plan, InsertPlan)
    source = planned.plan.source
    assert isinstance(source, LiteralColumns)
    assert source.table.num_rows == COUNT
    found = to_rows(source.table.slice(101, 1), source.types)
    assert found == [(101, "name 101", Decimal("1.01"))]


TYPES = [INT2, INT4, INT8, NUMERIC, FLOAT8, TEXT, SqlType(Kind.NUMERIC, precision=12, scale=3),
         SqlType(Kind.VARCHAR, length=30)]  # fmt: skip


@pytest.mark.parametrize("sql_type", TYPES, ids=str)
def test_cells_mean_what_they_mean_alone(sql_type: SqlType, database: Database) -> None:
    """Each constant through the grammar and an ordinary cast gives the same value."""
    generator = random.Random(7)
    texts = [
        generator.choice(["", "-"]) + generator.choice(["{:.0f}", "{:.2f}", "{:.4f}", "{:.2e}"])
        .format(generator.uniform(0, 30_000)) for _ in range(60)
    ]  # fmt: skip
    texts += ["0", "-0", "0.0", ".5", "7.", "00012"]
    found = literal_column("n" * len(texts), texts, sql_type, at=0)
    database.run("DROP TABLE IF EXISTS alone")
    database.run(f"CREATE TABLE alone (i int, v {sql_type})")
    for i, text in enumerate(texts):
        database.run(f"INSERT INTO alone VALUES ({i}, {text})")
    alone = [value for _, value in database.query("SELECT * FROM alone ORDER BY i")]
    assert [repr(value) for value in found] == [repr(value) for value in alone]


def test_kinds_may_be_mixed() -> None:
    def column(kinds: str, texts: list[str], sql_type: SqlType) -> list[Datum]:
        return list(literal_column(kinds, texts, sql_type, at=0))

    assert column("tf0s", ["", "", "", "yes"], BOOL) == [True, False, None, True]
    assert column("ns0n", ["1", "2", "", "3.5"], INT4) == [1, 2, None, 4]
    assert column("nts", ["1.50", "", "x"], TEXT) == ["1.5", "true", "x"]
    assert column("s0", ["1970-01-02", ""], DATE) == [1, None]


def rows(cell: str, count: int = 40) -> str:
    return ", ".join([cell] * count)


def test_defaults_stand_beside_constants(database: Database) -> None:
    plan = plan_insert(database, f"INSERT INTO d (c) VALUES {rows('(7)')}")
    assert isinstance(plan.source, SelectPlan), "now() is not known yet"
    assert plan.source.relation.types == plan.source.desc.types
    database.run(f"INSERT INTO d (c, a) VALUES {rows('(7, 8)')}")
    assert database.query("SELECT DISTINCT a, b, n IS NULL, c FROM d") == [(8, "dflt", False, 7)]


def test_a_bulk_list_is_a_query_too(database: Database) -> None:
    plan = database.plan(f"VALUES {rows('(1, NULL)')}, (2.5, true)")
    assert isinstance(plan, SelectPlan)
    assert plan.desc.types == (NUMERIC, BOOL)
    assert database.query(f"SELECT count(*), sum(column1) FROM (VALUES {rows('(2)')}) v") == [
        (40, 80)
    ]


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("('x', 'y', 1)", "22P02"),
        ("(3000000000, 'y', 1)", "22003"),
        ("(true, 'y', 1)", "42804"),
        ("(1, 'y', true)", "42804"),
        ("(1, 'y', 123456789012)", "22003"),
        ("(1, 'y', 1, 2)", "42601"),
    ],
)
def test_mistakes_are_found(cell: str, code: str, database: Database) -> None:
    with pytest.raises(SqlError) as error:
        database.query(f"INSERT INTO t VALUES {rows(cell)}")
    assert error.value.code == code
