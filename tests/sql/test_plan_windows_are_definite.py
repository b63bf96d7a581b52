"""What PostgreSQL leaves open or does not have: ties, IGNORE NULLS; and what becomes of a top-k."""

import pytest

from evertide.dataflow.build import describe
from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import TopKNode, WindowNode
from evertide.expr.relation import Project, Relation, TopK, Window
from evertide.expr.relation_walk import in_order_of_use
from evertide.expr.transform.passes import optimize
from evertide.spark.render.relation import ImportView, render_contents
from evertide.spark.render.text import TextBuilder
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database

ROWS = "INSERT INTO t VALUES (1, 'b', 7), (1, 'a', 9), (1, 'a', 9), (1, NULL, 1), (0, 'z', NULL)"


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run("CREATE TABLE t (k int, s text, v int)")
    database.run(ROWS)
    database.run("CREATE TABLE gaps (i int, v int)")
    database.run(
        "INSERT INTO gaps VALUES (1, NULL), (2, 20), (3, NULL), (4, NULL), (5, 50), (6, NULL)"
    )
    return database


def optimized(database: Database, sql: str) -> Relation:
    """As a view has it: the columns that are asked for."""
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    columns = plan.finishing.project
    return optimize(plan.relation if columns is None else Project(plan.relation, columns))


def test_the_rest_of_the_row_decides_among_equals(database: Database) -> None:
    found = database.query("SELECT s, v, row_number() OVER (ORDER BY k) FROM t ORDER BY 3")
    assert found == [("z", None, 1), ("a", 9, 2), ("a", 9, 3), ("b", 7, 4), (None, 1, 5)]


def test_so_it_does_if_it_is_not_asked_for(database: Database) -> None:
    """Dropping columns that nobody shows must not change who comes first."""
    found = database.query("SELECT lag(v) OVER (ORDER BY k) FROM t")
    assert sorted(found, key=repr) == sorted([(None,), (None,), (9,), (9,), (7,)], key=repr)
    relation = optimized(database, "SELECT lag(v) OVER (ORDER BY k) FROM t")
    (window,) = [node for node in in_order_of_use(relation) if isinstance(node, Window)]
    assert len(window.input.types) == 3
    ranks = optimized(database, "SELECT rank() OVER (ORDER BY k) FROM t")
    (window,) = [node for node in in_order_of_use(ranks) if isinstance(node, Window)]
    assert len(window.input.types) == 1, "ranks do not see who is first"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("lag(v) IGNORE NULLS", [None, None, 20, 20, 20, 50]),
        ("lag(v, 2) IGNORE NULLS", [None, None, None, None, None, 20]),
        ("lag(v, 2, -1) IGNORE NULLS", [-1, -1, -1, -1, -1, 20]),
        ("lead(v) IGNORE NULLS", [20, 50, 50, 50, None, None]),
        ("lag(v, -1) IGNORE NULLS", [20, 50, 50, 50, None, None]),
        ("lag(v, 0) IGNORE NULLS", [None, 20, None, None, 50, None]),
        ("lag(v) RESPECT NULLS", [None, None, 20, None, None, 50]),
        ("first_value(v) IGNORE NULLS", [None, 20, 20, 20, 20, 20]),
        ("last_value(v) IGNORE NULLS", [None, 20, 20, 20, 50, 50]),
        ("nth_value(v, 2) IGNORE NULLS", [None, None, None, None, 50, 50]),
    ],
)
def test_nulls_are_passed_over(database: Database, call: str, expected: list[int | None]) -> None:
    rows: list[Row] = database.query(f"SELECT i, {call} OVER (ORDER BY i) FROM gaps ORDER BY i")
    assert [value for _, value in rows] == expected


def test_arguments_may_be_parameters(database: Database) -> None:
    sql = "SELECT i, lag(i, $1, $2) OVER (ORDER BY i) FROM gaps ORDER BY i"
    assert [value for _, value in database.query(sql, 2, -7)] == [-7, -7, 1, 2, 3, 4]


def test_a_delta_plan_says_what_is_kept(database: Database) -> None:
    sql = "SELECT k, sum(v) OVER (PARTITION BY k ORDER BY s DESC ROWS 1 PRECEDING) FROM t"
    assert describe(delta_plan(optimized(database, sql)), lambda _: "t").split("\n") == [
        "incremental: every change is propagated, exact at every timestamp",
        "   0: changes of t",
        "   1: window of 0 per [#0] order by [#1 desc]  [keeps all rows, by partition]",
        "        [sum(#2) rows between 1 preceding and current row]",
        "   2: map, filter, project 1",
        "        project [#0, #3]",
    ]


def test_ignore_is_still_a_name(database: Database) -> None:
    assert database.query("SELECT max(i) ignore FROM gaps") == [(6,)]


@pytest.mark.parametrize("condition", ["n <= 2", "n < 3", "2 >= n", "n = 1", "n = 2", "n <= 0"])
def test_a_number_that_is_limited_is_a_top_k(database: Database, condition: str) -> None:
    numbered = "SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t"
    relation = optimized(database, f"SELECT s, v FROM ({numbered}) q WHERE {condition}")
    kinds = [type(node) for node in in_order_of_use(relation)]
    assert TopK in kinds
    assert Window not in kinds


def test_what_looks_further_is_no_top_k(database: Database) -> None:
    both = "row_number() OVER w AS n, count(*) OVER w AS c"
    query = f"SELECT {both} FROM t WINDOW w AS (PARTITION BY k ORDER BY v)"
    relation = optimized(database, f"SELECT * FROM ({query}) q WHERE n <= 2")
    nodes = delta_plan(relation).nodes
    assert any(isinstance(node, WindowNode) for node in nodes)
    assert not any(isinstance(node, TopKNode) for node in nodes)


@pytest.mark.parametrize(
    ("call", "python"),
    [
        ("row_number() OVER (ORDER BY v)", False),
        ("rank() OVER (PARTITION BY s ORDER BY v)", False),
        ("lag(v, 2, 0) OVER (ORDER BY v)", False),
        ("sum(v) OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", False),
        ("max(s) OVER (PARTITION BY k)", False),
        ("count(*) OVER (ORDER BY v)", False),
        ("last_value(s) OVER (ORDER BY v)", True),
        ("sum(v::numeric) OVER (ORDER BY v)", True),
        ("ntile(2) OVER (ORDER BY v)", True),
    ],
)
def test_spark_s_own_functions_are_used_where_they_mean_the_same(
    database: Database, call: str, python: bool
) -> None:
    plan = delta_plan(optimized(database, f"SELECT {call} FROM t"))
    views = {
        node.global_id: ImportView("t", may_fail=False)
        for node in plan.nodes
        if hasattr(node, "global_id")
    }
    builder = TextBuilder()
    render_contents(builder, plan, views, Timestamp(5))
    assert any(name.startswith("ev_window_") for name in builder.functions) == python
