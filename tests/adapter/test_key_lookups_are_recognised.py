"""Which statements are lookups by the key of an index, and which are something else."""

import pytest

from evertide.adapter.reading.plans import ReadPlans
from evertide.adapter.short_way.recipe import Recipe, recipe_of
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Row
from tests.sql.database import Database, new_database

ROW: Row = (7, "x", 9, 1.5, None)


@pytest.fixture(scope="module")
def database() -> Database:
    made = new_database()
    made.run("CREATE TABLE t (a int NOT NULL, b text, c int8, f float8, n numeric)")
    made.run("CREATE INDEX t_a ON t (a)")
    made.run("CREATE INDEX t_f ON t (f)")
    made.run("CREATE INDEX t_cb ON t (c, b)")
    made.run("CREATE VIEW v AS SELECT c, a AS k FROM t")
    made.run("CREATE VIEW indexed AS SELECT a, count(*) AS n FROM t GROUP BY a")
    made.run("CREATE INDEX indexed_a ON indexed (a)")
    return made


def recognised(database: Database, sql: str) -> Recipe | None:
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    cluster = database.snapshot.cluster_named("default")
    assert cluster is not None
    read = ReadPlans().plan(plan.relation, database.snapshot, cluster.cluster_id)
    return recipe_of(plan, read.relation, database.snapshot, cluster.cluster_id)


@pytest.mark.parametrize(
    ("sql", "key", "row"),
    [
        ("SELECT c FROM t WHERE a = $1", 7, (9,)),
        ("SELECT * FROM t WHERE $1 = a", 7, ROW),
        ("SELECT b, b, a FROM t WHERE a = $1::int8", 7, ("x", "x", 7)),
        ("SELECT a FROM t WHERE c = $1 AND b = 'x'", ("x", 7), (7,)),
        ("SELECT a FROM t WHERE b = $2 AND c = $1", ("y", 7), (7,)),
        ("SELECT f FROM t WHERE a = $1 AND b = $2", (7, "y"), (1.5,)),
        ("SELECT c FROM v WHERE k = $1", 7, (9,)),
        ("SELECT k FROM (SELECT c, k FROM v) s WHERE k = $1", 7, (7,)),
    ],
)
def test_equalities_that_cover_an_index(
    database: Database, sql: str, key: object, row: Row
) -> None:
    recipe = recognised(database, sql)
    assert recipe is not None
    assert recipe.key([7, "y"]) == key
    assert recipe.rows([ROW]) == [row]


def test_nothing_equals_null(database: Database) -> None:
    recipe = recognised(database, "SELECT a FROM t WHERE c = $1 AND b = $2")
    assert recipe is not None
    assert recipe.key([1, None]) is None


def test_rows_are_cut_where_asked(database: Database) -> None:
    recipe = recognised(database, "SELECT a FROM t WHERE a = $1 LIMIT 2 OFFSET 1")
    assert recipe is not None
    assert recipe.rows([ROW] * 5) == [(7,)] * 2
    assert recipe.rows([ROW]) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t",
        "SELECT a FROM t WHERE c = $1",  # half of a key
        "SELECT a FROM t WHERE b = $1",  # no index by it
        "SELECT a FROM t WHERE a > $1",
        "SELECT a FROM t WHERE a = $1 OR a = $2",
        "SELECT a FROM t WHERE a = ANY ($1::int[])",
        "SELECT a FROM t WHERE a = $1 AND a = $2",
        "SELECT a FROM t WHERE a = $1 AND c > 3",
        "SELECT a FROM t WHERE f = $1",  # NaN and -0 are not what Python takes them for
        "SELECT a FROM t WHERE a = $1::numeric",
        "SELECT a FROM t WHERE a + 1 = $1",
        "SELECT a + 1 FROM t WHERE a = $1",
        "SELECT a FROM t WHERE a = $1 ORDER BY c",
        "SELECT count(*) FROM t WHERE a = $1",
        "SELECT DISTINCT a FROM t WHERE a = $1",
        "SELECT t.a FROM t, v WHERE t.a = $1",
        "SELECT a FROM t WHERE a = $1 AS OF 5",
        "SELECT n FROM indexed WHERE a = $1",  # nothing but the index holds it
        "SELECT 't'::regclass FROM t WHERE a = $1",
        "SELECT name FROM mz_tables WHERE id = $1",
    ],
)
def test_whatever_else_is_asked_is_not_one(database: Database, sql: str) -> None:
    assert recognised(database, sql) is None


def test_another_cluster_has_no_such_index(database: Database) -> None:
    plan = database.plan("SELECT c FROM t WHERE a = $1")
    assert isinstance(plan, SelectPlan)
    other = new_database()
    other.run("CREATE TABLE t (a int NOT NULL, b text, c int8)")
    cluster = other.snapshot.cluster_named("default")
    assert cluster is not None
    assert recipe_of(plan, plan.relation, other.snapshot, cluster.cluster_id) is None
