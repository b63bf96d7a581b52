"""Goal: UPDATE and DELETE by what columns equal need no planned query, and mean the same.

Method: statements are planned without a server. What a direct read makes of rows is compared with
what the interpreter makes of the statement's own relation.
"""

from decimal import Decimal

import pytest

from evertide.adapter.reading.question import Question
from evertide.adapter.writing.direct_read import DirectRead, direct_read
from evertide.expr.compile import compile_predicates
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import Finishing, Map
from evertide.expr.scalar import Literal
from evertide.expr.transform.fold_constants import fold_constants
from evertide.expr.transform.substitute import substitute
from evertide.sql.plan.plans import DeletePlan, UpdatePlan
from evertide.vocab.datum import Datum, Row
from tests.sql.database import Database, new_database

ROWS: list[Row] = [(n, n % 4 or None, f"name {n % 3}", None) for n in range(40)]


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run("CREATE TABLE plain (a bigint NOT NULL, b int, c text, d numeric(8,2))")
    database.run("CREATE VIEW seen AS SELECT a FROM plain")
    return database


def question(database: Database, sql: str, values: tuple[Datum, ...] = ()) -> Question:
    planned = database.planned(sql, values=values or None)
    plan = planned.plan
    types = planned.parameter_types
    parameters = tuple(Literal(v, t) for v, t in zip(values, types, strict=True))
    if isinstance(plan, DeletePlan):
        return Question(plan.selection, Finishing(), parameters)
    assert isinstance(plan, UpdatePlan)
    return Question(Map(plan.selection, plan.assignments), Finishing(), parameters)


def interpreted(asked: Question) -> list[Row]:
    relation = fold_constants(substitute(asked.relation, asked.bindings))
    found = evaluate(relation, lambda _: Collection([(row, 1) for row in ROWS], []))
    return sorted((row for row, times in found.rows for _ in range(times)), key=repr)


def read_directly(found: DirectRead) -> list[Row]:
    matches = compile_predicates(found.leaf.predicates) if found.leaf.predicates else None
    rows = [row for row in ROWS if matches is None or matches(row)]
    return sorted(found.followed(rows), key=repr)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("DELETE FROM plain", ()),
        ("DELETE FROM plain WHERE a = 7", ()),
        ("DELETE FROM plain WHERE 7 = a", ()),
        ("DELETE FROM plain WHERE a = 7 AND c = 'name 1'", ()),
        ("DELETE FROM plain WHERE a IN (1, 2)", ()),
        ("DELETE FROM plain WHERE a IN (1, 2, 3, 4, 5, 6, 99)", ()),
        ("DELETE FROM plain WHERE a = $1", (9,)),
        ("DELETE FROM plain WHERE $1 = a AND c = $2", (9, "name 0")),
        ("DELETE FROM plain WHERE c = $1 AND c = 'name 2'", ("name 2",)),
        ("UPDATE plain SET c = 'x' WHERE b = 2", ()),
        ("UPDATE plain SET b = NULL, c = c, d = 1.005 WHERE a = 3", ()),
        ("UPDATE plain SET b = $2, d = $1 WHERE a = $3", (Decimal("5.125"), 6, 7)),
    ],
)
def test_a_direct_read_is_what_the_statement_means(
    sql: str, values: tuple[Datum, ...], database: Database
) -> None:
    asked = question(database, sql, values)
    found = direct_read(asked, database.snapshot)
    assert found is not None
    assert read_directly(found) == interpreted(asked)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM plain WHERE a > 7",
        "DELETE FROM plain WHERE b = NULL",
        "UPDATE plain SET a = b WHERE b = 3",
        "DELETE FROM plain WHERE a = 7 AND b / 0 = 1",
        "DELETE FROM plain WHERE c = current_user",
        "DELETE FROM plain WHERE a IN (SELECT a FROM seen)",
        "DELETE FROM plain USING seen WHERE plain.a = seen.a",
        "UPDATE plain SET b = b + 1 WHERE a = 7",
        "UPDATE plain SET c = current_user WHERE a = 7",
    ],
)
def test_what_needs_more_is_planned(sql: str, database: Database) -> None:
    assert direct_read(question(database, sql), database.snapshot) is None


def test_what_equals_null_is_planned(database: Database) -> None:
    asked = question(database, "DELETE FROM plain WHERE b = $1", (None,))
    assert direct_read(asked, database.snapshot) is None
