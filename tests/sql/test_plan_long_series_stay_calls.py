"""A statement is planned while others wait: it works out few rows then, whatever it asks for."""

import pytest

from evertide.expr.relation import Constant, FlatMap, Relation
from evertide.expr.relation_walk import in_order_of_use
from evertide.expr.transform.fold_constants import MOST_FLAT_ROWS
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.known_rows import MOST_ROWS
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.errors import SqlError
from tests.sql.database import new_database

MANY = MOST_ROWS + 1


def relation_of(sql: str) -> Relation:
    plan = new_database().plan(sql)
    assert isinstance(plan, SelectPlan)
    return plan.relation


def constant_rows(relation: Relation) -> int:
    return sum(len(n.rows) for n in in_order_of_use(relation) if isinstance(n, Constant))


def calls(relation: Relation) -> int:
    return sum(isinstance(node, FlatMap) for node in in_order_of_use(relation))


@pytest.mark.parametrize("form", ["SELECT generate_series(1, {})",
                                  "SELECT * FROM generate_series(1, {})"])  # fmt: skip
def test_few_rows_are_worked_out(form: str) -> None:
    relation = relation_of(form.format(MOST_ROWS))
    assert calls(relation) == 0
    assert constant_rows(optimize(relation)) == MOST_ROWS


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT generate_series(1, {MANY})", MANY),
        (f"SELECT generate_series(1, {MANY}), generate_series(1, 2)", MANY),
        (f"SELECT * FROM generate_series(1, {MANY})", MANY),
        (f"SELECT * FROM generate_series(1, {MANY}) WITH ORDINALITY", MANY),
        (f"SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(1, {MANY}))", MANY),
        (f"SELECT n + 1 FROM generate_series(1, {MANY}) AS g (n) WHERE n > 10", MANY - 10),
    ],
)
def test_many_rows_are_left_for_when_the_query_runs(sql: str, expected: int) -> None:
    relation = relation_of(sql)
    assert calls(relation) == 1
    assert constant_rows(relation) <= 1
    optimized = optimize(relation)
    assert calls(optimized) == 1
    assert constant_rows(optimized) <= 1
    assert len(new_database().query(sql)) == expected


def test_the_limit_is_for_the_whole_statement() -> None:
    part = f"SELECT generate_series(1, {MOST_ROWS // 2})"
    relation = relation_of(" UNION ALL ".join([part] * 9))
    assert calls(relation) == 7
    assert constant_rows(relation) <= MOST_ROWS + 7
    nested = relation_of(f"SELECT ({part} LIMIT 1), ({part} LIMIT 1), ({part} LIMIT 1)")
    assert calls(nested) == 1


def test_calls_over_constants_are_worked_out_up_to_a_limit() -> None:
    """What planning leaves, the optimiser does not make up for without bounds."""
    few = "SELECT generate_series(1, a) FROM (VALUES (2), (3)) AS v (a)"
    assert calls(optimize(relation_of(few))) == 0
    many = few.replace("(3)", f"({MOST_FLAT_ROWS})")
    assert calls(optimize(relation_of(many))) == 1
    parts = [few.replace("(3)", f"({3000 + i})") for i in range(9)]
    optimized = optimize(relation_of(" UNION ALL ".join(parts)))
    assert constant_rows(optimized) < 3 * MOST_FLAT_ROWS
    assert calls(optimized) >= 3
    assert len(new_database().query(many)) == MOST_FLAT_ROWS + 2


def test_a_mistake_in_a_series_is_told_when_it_is_planned() -> None:
    with pytest.raises(SqlError, match="step size cannot equal zero"):
        relation_of("SELECT * FROM generate_series(1, 1000000, 0)")
