"""Keys of tables are not enforced, so they are refused until the system allows them."""

import pytest

from evertide.sql.plan.plans import CreateTablePlan
from evertide.vocab.errors import FeatureNotSupported, SqlError
from tests.sql.database import Database, new_database

ALLOW = "ALTER SYSTEM SET unsafe_enable_table_keys = true"


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(ALLOW)
    return database


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("a int PRIMARY KEY", "PRIMARY KEY"),
        ("a int, b int, CONSTRAINT k PRIMARY KEY (a, b)", "PRIMARY KEY"),
        ("a int, UNIQUE (a)", "UNIQUE"),
    ],
)
@pytest.mark.parametrize("value", [None, "false", "off"])
def test_they_are_refused_by_name(columns: str, words: str, value: str | None) -> None:
    database = new_database()
    if value is not None:
        database.run(f"ALTER SYSTEM SET unsafe_enable_table_keys = {value}")
    with pytest.raises(FeatureNotSupported, match=f"{words} constraints are not supported"):
        database.plan(f"CREATE TABLE t ({columns})")


def test_the_columns_of_a_primary_key_are_never_null(database: Database) -> None:
    plan = database.plan("CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c int)")
    assert isinstance(plan, CreateTablePlan)
    assert [column.nullable for column in plan.desc.columns] == [False, True, True]


def test_they_are_part_of_the_definition(database: Database) -> None:
    plan = database.plan("CREATE TABLE t (a int CONSTRAINT k PRIMARY KEY, b int, UNIQUE (b, a))")
    assert isinstance(plan, CreateTablePlan)
    assert plan.create_sql == (
        "CREATE TABLE materialize.public.t (a int, b int, CONSTRAINT k PRIMARY KEY (a),"
        " UNIQUE (b, a))"
    )


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ("a int, PRIMARY KEY (b)", "42703"),
        ("a int, UNIQUE (a, a)", "42701"),
        ("a int PRIMARY KEY, b int PRIMARY KEY", "42P16"),
    ],
)
def test_mistakes_have_the_codes_of_postgresql(columns: str, code: str, database: Database) -> None:
    with pytest.raises(SqlError) as caught:
        database.plan(f"CREATE TABLE t ({columns})")
    assert caught.value.code == code
