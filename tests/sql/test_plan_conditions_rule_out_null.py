"""A column that a condition keeps from being NULL is known to be so; no other one is."""

import pytest

from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.errors import FeatureNotSupported
from tests.sql.database import new_database


@pytest.mark.parametrize(
    ("sql", "nullable"),
    [
        ("SELECT a, b FROM t", [True, True]),
        ("SELECT a, b FROM t WHERE a IS NOT NULL", [False, True]),
        ("SELECT b, a FROM t WHERE NOT a IS NULL AND b > 1", [True, False]),
        ("SELECT a, b FROM t WHERE a IS NULL", [True, True]),
        ("SELECT a, b FROM t WHERE a IS NOT NULL OR b IS NOT NULL", [True, True]),
        ("SELECT a, b FROM t WHERE (a IS NULL) IS NOT NULL", [True, True]),
        ("SELECT a, b FROM t WHERE NOT (a IS NOT NULL)", [True, True]),
        (
            "SELECT x.a, y.b FROM t x LEFT JOIN t y ON y.b IS NOT NULL WHERE x.a IS NOT NULL",
            [False, True],
        ),
        ("SELECT a, b FROM (SELECT * FROM t WHERE b IS NOT NULL) AS s", [True, False]),
        ("SELECT count(a) FILTER (WHERE b IS NOT NULL), max(b) FROM t", [False, True]),
        (
            "SELECT s.b FROM t LEFT JOIN (SELECT b FROM t WHERE b IS NOT NULL) AS s ON s.b = t.a",
            [True],
        ),
    ],
)
def test_flags_are_true(sql: str, nullable: list[bool]) -> None:
    database = new_database()
    database.run("CREATE TABLE t (a int, b int)")
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    assert [column.nullable for column in plan.desc.columns] == nullable


def test_a_replacement_must_not_promise_more_than_its_target() -> None:
    """Earlier contents, which stay readable, may have NULLs."""
    database = new_database()
    database.run("CREATE TABLE t (a int, b int); CREATE MATERIALIZED VIEW mv AS SELECT a, b FROM t")
    staged = "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT {}, b FROM t WHERE a IS NOT NULL"
    with pytest.raises(FeatureNotSupported) as raised:
        database.plan(staged.format("a"))
    assert raised.value.detail == (
        'column "a" at position 1: nullability mismatch (target: NULL, replacement: NOT NULL)'
    )
    database.run(staged.format("nullif(a, NULL) AS a"))
