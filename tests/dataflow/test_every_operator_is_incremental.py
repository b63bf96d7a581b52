"""Goal: recursion alone recomputes. What EXPLAIN says of the bench's views and of each operator."""

import pytest

from bench.views.definitions import VIEWS
from bench.views.tables import TABLES
from evertide.dataflow.build import describe, maintenance, plan_or_reason
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.plans import CreateMaterializedViewPlan
from evertide.sql.views import inline_views
from tests.sql.database import Database, new_database

SCHEMA = (
    "CREATE TABLE t (a int, b int, c text, d timestamp, j jsonb);"
    "CREATE TABLE u (a int, b int, c text);"
    "CREATE TABLE v (a int, b int);"
)
OPERATORS = {
    "map": "SELECT a + 1 AS x, upper(c) AS y FROM t",
    "filter": "SELECT a FROM t WHERE b > 3",
    "flat map": "SELECT a, g FROM t, generate_series(1, b) AS g",
    "inner join": "SELECT t.c FROM t JOIN u ON t.a = u.a",
    "product": "SELECT t.a, u.b FROM t, u",
    "join of many": "SELECT t.c FROM t JOIN u ON t.a = u.a JOIN v ON u.b = v.b AND t.a = v.a",
    "self join": "SELECT x.c FROM t x JOIN t y ON x.a = y.b",
    "left join": "SELECT t.c, u.c AS e FROM t LEFT JOIN u ON t.a = u.a",
    "right join": "SELECT t.c, u.c AS e FROM t RIGHT JOIN u ON t.a = u.a AND t.b < u.b",
    "full join": "SELECT t.c, u.c AS e FROM t FULL JOIN u ON t.a = u.a",
    "semi join": "SELECT c FROM t WHERE a IN (SELECT a FROM u)",
    "anti join": "SELECT c FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
    "lateral join": "SELECT t.a, s.b FROM t, LATERAL (SELECT b FROM u WHERE u.a = t.a LIMIT 2) s",
    "sums and counts": "SELECT a, sum(b), count(*), count(c) AS n, avg(b) FROM t GROUP BY a",
    "a sum of all": "SELECT sum(b) FROM t",
    "least and greatest": "SELECT a, min(b), max(c) FROM t GROUP BY a",
    "string_agg": "SELECT a, string_agg(c, ',') FROM t GROUP BY a",
    "array_agg": "SELECT a, array_agg(b) FROM t GROUP BY a",
    "jsonb_agg": "SELECT a, jsonb_agg(j) FROM t GROUP BY a",
    "order in an aggregate": "SELECT a, array_agg(c ORDER BY b DESC) FROM t GROUP BY a",
    "distinct in an aggregate": "SELECT a, count(DISTINCT b) FROM t GROUP BY a",
    "filter of an aggregate": "SELECT a, sum(b) FILTER (WHERE b > 1) FROM t GROUP BY a",
    "having": "SELECT a FROM t GROUP BY a HAVING count(*) > 1",
    "distinct": "SELECT DISTINCT a, b FROM t",
    "distinct on": "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b DESC",
    "top k": "SELECT a FROM t ORDER BY b LIMIT 3 OFFSET 1",
    "union": "SELECT a FROM t UNION SELECT a FROM u",
    "union all": "SELECT a FROM t UNION ALL SELECT a FROM u",
    "except": "SELECT a FROM t EXCEPT SELECT a FROM u",
    "except all": "SELECT a FROM t EXCEPT ALL SELECT a FROM u",
    "intersect": "SELECT a FROM t INTERSECT SELECT a FROM u",
    "intersect all": "SELECT a FROM t INTERSECT ALL SELECT a FROM u",
    "a scalar subquery": "SELECT a, (SELECT max(b) FROM u) AS m FROM t",
    "a correlated subquery": "SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t",
    "a quantified subquery": "SELECT a FROM t WHERE b > ALL (SELECT b FROM u WHERE u.a = t.a)",
    "a filter by time": "SELECT a FROM t WHERE mz_now() < d::mz_timestamp",
    "constants": "SELECT 1 AS x UNION ALL VALUES (2), (3)",
    "a named query": "WITH q AS (SELECT a FROM t) SELECT x.a FROM q x JOIN q y ON x.a = y.a",
}


def planned(database: Database, query: str) -> DeltaPlan:
    plan = database.plan(f"CREATE MATERIALIZED VIEW kept AS {query}")
    assert isinstance(plan, CreateMaterializedViewPlan)
    found = plan_or_reason(optimize(inline_views(plan.relation, database.snapshot, ())))
    assert isinstance(found, DeltaPlan), found
    return found


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    database = new_database()
    database.run(SCHEMA)
    plan = planned(database, OPERATORS[name])
    assert maintenance(plan) == "incremental"
    assert describe(plan).startswith("incremental: every change is propagated")


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_the_bench(name: str) -> None:
    database = new_database()
    for table in TABLES.values():
        database.run(table.create)
    assert maintenance(planned(database, VIEWS[name].query)) == "incremental"


def test_recursion_recomputes_and_says_why() -> None:
    """What it reads is followed, and so is what is made of it."""
    database = new_database()
    database.run(SCHEMA)
    plan = planned(
        database,
        "WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 9) r (a int, b int) AS ("
        " SELECT a, sum(b)::int FROM t GROUP BY a UNION SELECT r.a, v.b FROM r, v WHERE r.b = v.a)"
        " SELECT a, count(*) FROM r GROUP BY a",
    )
    assert maintenance(plan) == "recomputes"
    lines = describe(plan).splitlines()
    assert lines[0].startswith("recomputes: recursion (WITH MUTUALLY RECURSIVE) is computed anew")
    kinds = [type(node).__name__ for node in plan.nodes]
    assert kinds.count("RecomputeNode") == 1
    (line,) = [line for line in lines if "recompute LetRec [r] return at recursion limit 9" in line]
    assert "[keeps all rows, and what it gave last]" in line
    at = kinds.index("RecomputeNode")
    assert "ReduceNode" in kinds[:at]
    assert "ReduceNode" in kinds[at:]
