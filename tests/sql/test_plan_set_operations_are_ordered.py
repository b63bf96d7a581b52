"""UNION and its kin may be ordered by what is computed from their columns, which PostgreSQL wants
to be written as a query around; columns that could be stored as declared may feed a recursion; ON
is a name where nothing else can be meant."""

import pytest

from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, 'yy'), (5, '')"
    )
    return database


PAIRS = [
    ("SELECT a FROM t UNION SELECT a - 3 FROM t", "-2 * a + 3"),
    ("SELECT a, b FROM t UNION ALL SELECT -a, b FROM t", "length(b) DESC, a % 3, a"),
    ("SELECT a FROM t EXCEPT SELECT 2", "a = 5 DESC"),
    ("SELECT a FROM t INTERSECT SELECT a FROM t", "a IN (SELECT length(b) FROM t), -a"),
]


@pytest.mark.parametrize(("body", "key"), PAIRS)
def test_by_expressions(body: str, key: str, database: Database) -> None:
    around = database.query(f"SELECT * FROM ({body}) s ORDER BY {key}")
    assert database.query(f"{body} ORDER BY {key}") == around
    assert database.query(f"{body} ORDER BY {key} LIMIT 1") == around[:1]
    assert len({row[0] for row in around}) > 1


def test_not_by_what_has_no_value_on_a_row(database: Database) -> None:
    for key, message in (
        ("sum(a)", "aggregate functions are not allowed in ORDER BY clause of a set expression"),
        ("lag(a) OVER ()", "window functions are not allowed in ORDER BY clause of a set"),
        ("c", 'column "c" does not exist'),
    ):
        with pytest.raises(SqlError, match=message):
            database.plan(f"SELECT a FROM t UNION SELECT 1 ORDER BY {key}")


def test_a_recursion_takes_what_its_columns_could_store(database: Database) -> None:
    query = "WITH MUTUALLY RECURSIVE r (n smallint, s text) AS ({}) SELECT n, s FROM r"
    assert database.query(query.format("SELECT 1::bigint, 7")) == [(1, "7")]
    with pytest.raises(SqlError, match="declared types"):
        database.plan(query.format("SELECT 'x'::text, 'y'"))


def test_what_does_not_fit_is_told_before_what_follows_from_it(database: Database) -> None:
    with pytest.raises(SqlError, match='query "r" declared types'):
        database.plan(
            "WITH MUTUALLY RECURSIVE r (n int, m int) AS (SELECT 1) SELECT missing FROM r"
        )


def test_on_is_a_column_of_show_indexes(database: Database) -> None:
    database.run("CREATE INDEX i ON t (a)")
    assert database.query("SELECT on, name FROM (SHOW INDEXES) AS s WHERE on = 't'") == [("t", "i")]
    assert database.query("SELECT s.a FROM t AS s JOIN t AS u ON s.a = u.a AND u.a = 5") == [(5,)]
