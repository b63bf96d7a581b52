"""Goal: a statement planned by its template is the statement that was sent.

Method: texts are planned as they are and by their templates, without a server. Whatever a template
is believed to mean is compared with the text's own plan, also for values other than those it was
learned from; where the two differ, the template must not be used.
"""

import random

import pytest

from evertide.adapter.templates import Templates
from evertide.expr.relation import Relation
from evertide.expr.scalar import Literal, Parameter, Scalar, SessionCall
from evertide.expr.transform.fold_constants import fold_constants
from evertide.expr.transform.fold_scalar import fold_scalar
from evertide.expr.transform.substitute import substitute, substitute_scalar
from evertide.sql.parser.template import template_of
from evertide.sql.plan.plans import DeletePlan, InsertPlan, Plan, UpdatePlan
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        'CREATE TABLE "odd 1 name" (a bigint);'
        "CREATE TABLE t (a bigint, b smallint, c text, d date, n numeric(8,2), v varchar(3),"
        " f double precision, o bool, i interval)"
    )
    return database


def settled(plan: Plan, literals: tuple[Literal, ...]) -> object:
    """What a plan does once its parameters are known."""
    bound: dict[Parameter | SessionCall, Scalar] = {
        Parameter(i, literal.type): literal for i, literal in enumerate(literals)
    }

    def relation(one: Relation) -> Relation:
        return fold_constants(substitute(one, bound))

    match plan:
        case UpdatePlan():
            values = [fold_scalar(substitute_scalar(s, bound)) for s in plan.assignments]
            return plan.table_id, relation(plan.selection), values
        case DeletePlan():
            return plan.table_id, relation(plan.selection)
        case InsertPlan():
            return plan
        case _:
            raise AssertionError(f"{type(plan).__name__} has no template")


def learned(database: Database, *texts: str) -> Templates:
    """Templates after these texts came."""
    templates = Templates()
    for text in texts:
        template = template_of(text)
        assert template is not None, text
        key = (template.text, template.kinds)
        if templates.find(key, template) is None:
            templates.learn(key, template, database.plan(text), database.context)
    return templates


def by_template(templates: Templates, text: str) -> object:
    """What the template of a text does; None if it is not used."""
    template = template_of(text)
    assert template is not None, text
    found = templates.find((template.text, template.kinds), template)
    return None if found is None else settled(found.plan, found.literals)


SAME = [
    ("UPDATE t SET a = {}, c = '{}' WHERE a = {}", "iti"),
    ("UPDATE t SET d = '{}', n = {} WHERE c = '{}' AND a IN ({}, {})", "ditii"),
    ("DELETE FROM t WHERE a = {}", "i"),
    ("DELETE FROM t WHERE a = {} OR (c = '{}' AND f < {})", "iti"),
    ("INSERT INTO t (a, c, d) VALUES ({}, '{}', '{}')", "itd"),
    ("INSERT INTO t VALUES ({}, {}, '{}', '{}', {}, '{}', {}, 't', '1 day')", "iitdisi"),
    ("update t set c = 'x''{}' where a >= {}", "ti"),
    ("INSERT INTO t (a, n, f) VALUES ({}, {}, {})", "inn"),
    ("UPDATE t SET n = {}, f = {} WHERE n = {} OR f <= {}", "nnnn"),
    ("DELETE FROM t WHERE n IN ({}, {}) AND f > {}", "nnn"),
]


def drawn(shape: str, kind: str, draw: random.Random) -> str:
    values = {
        "i": lambda: str(draw.randint(-200, 200)),
        "n": lambda: f"{draw.randint(-200, 200)}.{draw.choice(['0', '00', '5', '07', '555'])}",
        "t": lambda: "".join(draw.choices(["a", "''", " ", "é", "7"], k=4)),
        "s": lambda: "".join(draw.choices("xyz", k=2)),
        "d": lambda: f"20{draw.randint(10, 30)}-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}",
    }
    return shape.format(*(values[one]() for one in kind))


@pytest.mark.parametrize(("shape", "kind"), SAME)
def test_the_same_for_all_values(database: Database, shape: str, kind: str) -> None:
    draw = random.Random(f"{shape}")
    templates = learned(database, *(drawn(shape, kind, draw) for _ in range(2)))
    for _ in range(50):
        text = drawn(shape, kind, draw)
        found = by_template(templates, text)
        assert found is not None, text
        assert found == settled(database.plan(text), ()), text


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        # A number of eight bytes is another kind of constant.
        (["DELETE FROM t WHERE a = 1"] * 2, "DELETE FROM t WHERE a = 3000000000"),
        # Not a smallint, and no error either: nothing equals it.
        (["DELETE FROM t WHERE b = 1"] * 2, "DELETE FROM t WHERE b = 70000"),
        # Too long: an error with a position.
        (["UPDATE t SET v = 'a'", "UPDATE t SET v = 'b'"], "UPDATE t SET v = 'long'"),
        # smallint + integer is an integer, which smallint + parameter is not.
        (["UPDATE t SET a = b + 1", "UPDATE t SET a = b + 2"], "UPDATE t SET a = b + 3"),
        (["UPDATE t SET n = 1.5", "UPDATE t SET n = 2.5"], "UPDATE t SET n = -0.0"),
        (["UPDATE t SET f = 1.5", "UPDATE t SET f = 2.5"], "UPDATE t SET f = -0.0"),
        (["UPDATE t SET a = 1.0", "UPDATE t SET a = 2.0"], "UPDATE t SET a = 3.5"),
        (["DELETE FROM t WHERE a < 1.0", "DELETE FROM t WHERE a < 2.0"],
         "DELETE FROM t WHERE a < 3.5"),
        # Where the constant's own type counts.
        (["UPDATE t SET c = 1 || c", "UPDATE t SET c = 2 || c"], "UPDATE t SET c = 3 || c"),
    ],
)  # fmt: skip
def test_not_used_where_it_would_differ(database: Database, texts: list[str], text: str) -> None:
    found = by_template(learned(database, *texts), text)
    assert found is None or found == settled(database.plan(text), ())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "UPDATE t SET a = 1; DELETE FROM t",
        "UPDATE t SET a = 1 -- 2",
        "UPDATE t SET a = /* 1 */ 2",
        "UPDATE t SET c = $1",
        "DELETE FROM t WHERE a IN (SELECT 1)",
        "DELETE FROM t",
        "UPDATE t SET n = 99999999999999999999",
        "INSERT INTO t SELECT 1",
        r"UPDATE t SET c = 'a\b'",
    ],
)
def test_texts_without_template(text: str) -> None:
    assert template_of(text) is None


@pytest.mark.parametrize(
    ("text", "made", "values"),
    [
        ("UPDATE t SET c = E'1'", None, ()),
        ('DELETE FROM "odd 1 name" WHERE a = 5', 'DELETE FROM "odd 1 name" WHERE a = $1', ("5",)),
        ("DELETE FROM t1 WHERE a2 = -5", "DELETE FROM t1 WHERE a2 = $1", ("-5",)),
        ("DELETE FROM t WHERE f = -0", "DELETE FROM t WHERE f = $1", ("0",)),
        ("DELETE FROM t WHERE f = 007", "DELETE FROM t WHERE f = $1", ("7",)),
        ("DELETE FROM t WHERE a - 5 = 1.5", "DELETE FROM t WHERE a - $1 = $2", ("5", "1.5")),
        ("DELETE FROM t WHERE n = -0.50", "DELETE FROM t WHERE n = $1", ("-0.50",)),
        ("DELETE FROM t WHERE f = -0.00", "DELETE FROM t WHERE f = $1", ("0",)),
        ("DELETE FROM t WHERE f = 1.", None, ()),
        ("DELETE FROM t WHERE f = .5", None, ()),
        ("DELETE FROM t WHERE f = 1.5e3", None, ()),
        ("DELETE FROM t WHERE f = 1.2.3", None, ()),
        ("DELETE FROM t WHERE f = 1e5", None, ()),
        ("DELETE FROM t WHERE c = 'it''s'", "DELETE FROM t WHERE c = $1", ("it's",)),
        ("DELETE FROM t WHERE c = ''", "DELETE FROM t WHERE c = $1", ("",)),
    ],
)
def test_what_a_template_holds(text: str, made: str | None, values: tuple[str, ...]) -> None:
    found = template_of(text)
    assert (None if found is None else found.text) == made
    if found is not None:
        assert found.values == values


def test_refused_texts_are_told_by_themselves(database: Database) -> None:
    texts = ["UPDATE t SET d = '2020-01-01'", "UPDATE t SET d = '2020-01-02'"]
    templates = learned(database, *texts)
    assert by_template(templates, "UPDATE t SET d = '2020-01-03'") is not None
    assert by_template(templates, "UPDATE t SET d = 'never'") is None
    with pytest.raises(SqlError):
        database.plan("UPDATE t SET d = 'never'")


def test_interval_and_type_names_before_a_constant(database: Database) -> None:
    """A constant with its type before it is none of a template's."""
    texts = ["UPDATE t SET i = INTERVAL '1 day'", "UPDATE t SET i = INTERVAL '2 days'"]
    assert by_template(learned(database, *texts), "UPDATE t SET i = INTERVAL '3 days'") is None
