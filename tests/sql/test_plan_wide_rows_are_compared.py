"""Rows of any width are compared in order, and what that takes is not as deep as they are wide."""

from collections.abc import Sequence
from random import Random

import pytest

from evertide.expr.codec import decode_relation, encode_relation
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Relation
from evertide.expr.relation_walk import in_order_of_use, scalars_of
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import children
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.plans import SelectPlan
from tests.sql.database import Database, new_database

OPERATORS = ("<", "<=", ">", ">=")
WIDEST = 600


def expected(left: Sequence[int | None], operator: str, right: Sequence[int | None]) -> bool | None:
    """The first pair that is not equal decides, and is not known where it has a NULL."""
    for one, other in zip(left, right, strict=True):
        if one is None or other is None:
            return None
        if one != other:
            return one < other if operator.startswith("<") else one > other
    return operator.endswith("=")


def row(values: Sequence[int | None]) -> str:
    return f"({', '.join('NULL::int' if value is None else str(value) for value in values)})"


def depth(scalar: Scalar) -> int:
    return 1 + max((depth(part) for part in children(scalar)), default=0)


def table(width: int) -> Database:
    database = new_database()
    database.run(f"CREATE TABLE t ({', '.join(f'a{i} int, b{i} int' for i in range(width))})")
    return database


def comparison(width: int, operator: str) -> str:
    left, right = (", ".join(f"{side}{i}" for i in range(width)) for side in "ab")
    return f"({left}) {operator} ({right})"


def relation_of(database: Database, sql: str) -> Relation:
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    return optimize(plan.relation)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("width", [2, 7, 8, 9, 17, 40])
def test_the_first_fields_that_differ_decide(width: int, operator: str) -> None:
    random = Random(f"{width} {operator}")
    database = new_database()
    for _ in range(40):
        left: list[int | None] = [random.randrange(3) for _ in range(width)]
        right = list(left)
        for _ in range(random.randrange(3)):
            right[random.randrange(width)] = random.choice([None, 0, 1, 2])
        found = database.query(f"SELECT {row(left)} {operator} {row(right)}")
        assert found == [(expected(left, operator, right),)], (left, right)


@pytest.mark.parametrize("operator", OPERATORS)
def test_wide_rows_make_no_deep_expression(operator: str) -> None:
    database = table(WIDEST)
    relation = relation_of(database, f"SELECT {comparison(WIDEST, operator)} FROM t")
    scalars = [scalar for node in in_order_of_use(relation) for scalar in scalars_of(node)]
    assert max(map(depth, scalars)) < 60
    assert decode_relation(encode_relation(relation), by_signature) == relation


def test_wide_rows_of_a_table_are_compared() -> None:
    database = table(WIDEST)
    names = ", ".join(f"a{i}, b{i}" for i in range(WIDEST))
    equal = ", ".join(["1, 1"] * (WIDEST - 1))
    database.run(f"INSERT INTO t ({names}) VALUES ({equal}, 1, 2), ({equal}, 2, 1)")
    found = database.query(f"SELECT a{WIDEST - 1} FROM t WHERE {comparison(WIDEST, '<')}")
    assert found == [(1,)]
