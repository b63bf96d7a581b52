"""Which columns of its inputs a plan looks at: no fewer, and no more where it picks some."""

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.read_columns import read_columns
from evertide.expr.transform.passes import optimize_at_leisure
from evertide.sql.plan.plans import SelectPlan
from tests.sql.database import new_database


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT b FROM t", {"t": {1}}),
        ("SELECT b + 1 FROM t WHERE d = 'x'", {"t": {1, 3}}),
        ("SELECT b, count(*) FROM t GROUP BY b", {"t": {1}}),
        ("SELECT count(*) FROM t", {"t": set()}),
        (
            "SELECT t.c, u.b FROM t JOIN u ON t.a = u.a WHERE u.d = 'x'",
            {"t": {0, 2}, "u": {0, 1, 3}},
        ),
        ("SELECT b FROM t UNION ALL SELECT c FROM t", {"t": {1, 2}}),
        ("SELECT x.b, y.d FROM t x JOIN t y ON x.a = y.a", {"t": {0, 1, 3}}),
        ("SELECT * FROM t", {"t": {0, 1, 2, 3}}),
        ("SELECT * FROM t WHERE b = 1", {"t": {0, 1, 2, 3}}),
        ("SELECT DISTINCT * FROM t", {"t": {0, 1, 2, 3}}),
        ("SELECT a FROM t EXCEPT SELECT b FROM u", {"t": {0}, "u": {1}}),
    ],
)
def test_columns_that_are_read(query: str, expected: dict[str, set[int]]) -> None:
    made = new_database()
    for name in "tu":
        made.run(f"CREATE TABLE {name} (a int, b int, c int, d text)")
    plan = made.plan(f"SELECT * FROM ({query}) q")
    assert isinstance(plan, SelectPlan)
    names = {item.global_id: item.name for item in made.snapshot.items.values()}
    found = read_columns(delta_plan(optimize_at_leisure(plan.relation)))
    assert {names[g]: set(columns) for g, columns in found.items()} == expected
