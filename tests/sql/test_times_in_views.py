"""Which predicates over mz_now() a view can keep, and what is said of the others."""

from decimal import Decimal

import pytest

from evertide.expr.relation import Filter
from evertide.expr.relation_walk import in_order_of_use
from evertide.expr.temporal import Stay, bound_of, compile_stay, has_temporal, is_temporal
from evertide.expr.transform.equalities import conjuncts
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.plans import CreateMaterializedViewPlan, SubscribePlan
from evertide.sql.views import inline_views
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import NUMERIC
from evertide.vocab.timestamp import EMPTY_FRONTIER
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, n numeric, ts timestamp, tz timestamptz, d date);"
        "CREATE TABLE u (a int, b bigint);"
        "CREATE VIEW fresh AS SELECT a FROM t WHERE mz_now() <= ts + INTERVAL '1 day'"
    )
    return database


KEPT = [
    ("SELECT a FROM t WHERE mz_now() <= a", ["<="]),
    ("SELECT a FROM t WHERE a <= mz_now()", [">="]),
    ("SELECT a FROM t WHERE mz_now() < ts + INTERVAL '5 minutes'", ["<"]),
    ("SELECT a FROM t WHERE tz - INTERVAL '5 minutes' > mz_now()", ["<"]),
    ("SELECT a FROM t WHERE mz_now() = n AND a > 5", ["="]),
    ("SELECT a FROM t WHERE mz_now() BETWEEN d AND ts", [">=", "<="]),
    ("SELECT a FROM t WHERE NOT mz_now() > a", ["<="]),
    ("SELECT a, count(*) FROM t GROUP BY a HAVING mz_now() > count(*)", [">"]),
    ("SELECT t.a FROM t JOIN u ON t.a = u.a AND mz_now() < t.a + u.b", ["<"]),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND mz_now() < b)", ["<"]),
    ("SELECT * FROM fresh", ["<="]),
]


@pytest.mark.parametrize(("query", "comparisons"), KEPT)
def test_bounds(query: str, comparisons: list[str], database: Database) -> None:
    created = database.plan(f"CREATE MATERIALIZED VIEW x AS {query}")
    assert isinstance(created, CreateMaterializedViewPlan)
    plan = database.plan(f"SUBSCRIBE ({query})")
    assert isinstance(plan, SubscribePlan)
    relation = optimize(inline_views(plan.relation, database.snapshot, ()))
    assert has_temporal(relation)
    found = [
        bound_of(part).comparison
        for node in in_order_of_use(relation)
        if isinstance(node, Filter)
        for part in conjuncts(node.predicates)
        if is_temporal(part)
    ]
    assert found == comparisons


@pytest.mark.parametrize(
    ("bound", "end"),
    [("4", 5), ("9223372036854775807", EMPTY_FRONTIER), ("18446744073709551614", EMPTY_FRONTIER)],
)
def test_a_row_that_stays_to_the_end_of_time(bound: str, end: int, database: Database) -> None:
    """No timestamp is left at which it could go."""
    plan = database.plan("SUBSCRIBE (SELECT n FROM t WHERE mz_now() <= n)")
    assert isinstance(plan, SubscribePlan)
    (kept,) = [n for n in in_order_of_use(optimize(plan.relation)) if isinstance(n, Filter)]
    row = tuple(Decimal(bound) if sql_type == NUMERIC else None for sql_type in kept.types)
    assert compile_stay(kept.predicates)(row) == Stay(0, end, None)


REFUSED = [
    "SELECT a FROM t WHERE mz_now() < a OR a IS NULL",
    "SELECT a FROM t WHERE mz_now() <> a",
    "SELECT a FROM t WHERE mz_now()::text = 'x'",
    "SELECT a FROM t WHERE CASE WHEN a > 1 THEN mz_now() < a END",
    "SELECT a FROM t WHERE (mz_now() < a) IS NULL",
    "SELECT a FROM t WHERE mz_now() = mz_now()",
]


@pytest.mark.parametrize("query", REFUSED)
@pytest.mark.parametrize("start", ["CREATE MATERIALIZED VIEW x AS {}", "SUBSCRIBE ({})"])
def test_other_predicates(start: str, query: str, database: Database) -> None:
    with pytest.raises(SqlError, match=r"^Unsupported temporal predicate. Note: `mz_now") as error:
        database.plan(start.format(query))
    assert error.value.code == "0A000"
    assert "Expression found: " in error.value.message
    assert error.value.position == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, mz_now() FROM t",
        "SELECT max(mz_now()) FROM t",
        "SELECT a FROM t GROUP BY a, mz_now()",
    ],
)
def test_elsewhere(query: str, database: Database) -> None:
    with pytest.raises(SqlError, match=r"^cannot materialize call to mz_now$"):
        database.plan(f"CREATE MATERIALIZED VIEW x AS {query}")


@pytest.mark.parametrize(
    ("call", "hint"),
    [("now()", "Compare mz_now()"), ("current_timestamp", "Compare mz_now()"), ("version()", "")],
)
def test_the_clock_of_statements_is_none_of_views(call: str, hint: str, database: Database) -> None:
    with pytest.raises(SqlError, match=r"^cannot materialize call to ") as raised:
        database.plan(f"CREATE MATERIALIZED VIEW x AS SELECT a FROM t WHERE {call} IS NOT NULL")
    assert (raised.value.hint or "")[: len(hint) or None] == hint
