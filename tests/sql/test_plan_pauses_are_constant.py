"""pg_sleep waits for a number of seconds that is known when the statement is planned."""

import pytest

from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run("CREATE TABLE t (a int, b text)")
    return database


def test_it_is_planned(database: Database) -> None:
    for call in (
        "pg_sleep(1 + 1)",
        "pg_sleep('0.5')",
        "mz_unsafe.mz_sleep(2)",
        "pg_sleep(NULL)",
        "pg_sleep(-1)",
    ):
        assert isinstance(database.plan(f"SELECT {call}"), SelectPlan)


REFUSED = [
    ("SELECT §pg_sleep(a) FROM t", "0A000", "needs a constant"),
    ("SELECT §pg_sleep($1)", "0A000", "needs a constant"),
    ("SELECT §pg_sleep('infinity')", "22023", "cannot sleep for Infinity seconds"),
    ("SELECT §pg_sleep('NaN')", "22023", "cannot sleep for NaN seconds"),
    ("SELECT §pg_sleep('1e300')", "22023", "cannot sleep for 1e+300 seconds"),
    ("SELECT §mz_unsafe.mz_sleep(-1)", "22023", "cannot sleep for -1 seconds"),
    ("SELECT §pg_sleep()", "42883", "needs a number of seconds"),
    ("SELECT 1 WHERE §pg_sleep(1) = ''", "0A000", "in SELECT lists only"),
    ("INSERT INTO t VALUES (1, §pg_sleep(1))", "0A000", "in SELECT lists only"),
    ("UPDATE t SET b = §pg_sleep(1)", "0A000", "in SELECT lists only"),
    ("CREATE TABLE x (a text DEFAULT §pg_sleep(1))", "0A000", "in SELECT lists only"),
    ("CREATE MATERIALIZED VIEW x AS SELECT §pg_sleep(1)", "0A000", "cannot materialize call"),
]


@pytest.mark.parametrize(("marked", "code", "message"), REFUSED)
def test_refusals(marked: str, code: str, message: str, database: Database) -> None:
    with pytest.raises(SqlError) as refused:
        database.plan(marked.replace("§", ""))
    assert (refused.value.code, refused.value.position) == (code, marked.index("§") + 1)
    assert message in refused.value.message
