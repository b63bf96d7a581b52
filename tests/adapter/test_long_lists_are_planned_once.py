"""Goal: a statement with a long list, planned by its shape, is the statement that was sent.

Method: texts are planned by themselves and by the shape that two others have left behind. What a
shape gives is compared with the text's own plan; what is not plain must be left to that.
"""

import random
from typing import Any

import pytest

from evertide.adapter.planning import Parsed, Planner
from evertide.adapter.session import Login, open_session
from evertide.adapter.shapes import KEPT, Shapes
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan import entry
from evertide.sql.plan.plans import DeletePlan, Plan
from evertide.sql.plan.refill import same_plan, shape_of
from evertide.vocab.errors import InsufficientPrivilege, SqlError
from tests.sql.database import Database, new_database

TABLES = (
    "CREATE TABLE t (a bigint, c text, d date, n numeric(8,2), v varchar(3), f double precision,"
    " o bool);"
    "CREATE TABLE s (k int NOT NULL, w text DEFAULT 'w');"
    "CREATE SCHEMA other; CREATE TABLE other.s (k int NOT NULL, w text)"
)


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(TABLES)
    return database


def found(shapes: Shapes, database: Database, text: str) -> Plan | None:
    """What the text's shape gives."""
    taken = shape_of(parse_statement(text))
    return None if taken is None else shapes.find(taken[0], 0, taken[1])


def learned(database: Database, *texts: str) -> Shapes:
    shapes = Shapes()
    for text in texts:
        taken = shape_of(parse_statement(text))
        assert taken is not None, text
        assert shapes.find(taken[0], 0, taken[1]) is None
        shapes.learn(taken[0], 0, taken[1], database.snapshot, database.plan(text))
    return shapes


CELLS = {
    "i": lambda draw: draw.choice([str(draw.randint(-9, 9)), str(2**40), "NULL"]),
    "t": lambda draw: draw.choice(["'a'", "'it''s'", "''", "NULL", "'é'"]),
    "d": lambda draw: f"'20{draw.randint(10, 30)}-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}'",
    "n": lambda draw: draw.choice(["1.25", "-7", "0", "0.005", "NULL", "12345.678"]),
    "v": lambda draw: draw.choice(["'x'", "'xyz'"]),
    "f": lambda draw: draw.choice(["1", "2.5", "-0.0", "1e3"]),
    "o": lambda draw: draw.choice(["true", "false", "NULL"]),
}
SHAPES = [
    ("INSERT INTO t VALUES {}", "itdnvfo"),
    ("INSERT INTO t (o, a, v, c, n, d, f) VALUES {}", "oivtndf"),
    ("insert into public.t values {}", "itdnvfo"),
    ("DELETE FROM t WHERE a IN {}", "i"),
    ("DELETE FROM t AS x WHERE c IN {}", "v"),
    ("DELETE FROM t WHERE d IN {}", "d"),
]


def drawn(shape: str, kinds: str, draw: random.Random, rows: int) -> str:
    if shape.startswith("DELETE"):
        listed = ", ".join(CELLS[kinds](draw) for _ in range(rows))
        return shape.format(f"({listed})")
    made = (", ".join(CELLS[kind](draw) for kind in kinds) for _ in range(rows))
    return shape.format(", ".join(f"({row})" for row in made))


@pytest.mark.parametrize(("shape", "kinds"), SHAPES)
def test_the_same_plan_for_every_list(database: Database, shape: str, kinds: str) -> None:
    """Among them some of so many rows that they are planned as columns."""
    draw = random.Random(shape)
    plain = [drawn(shape, kinds, draw, rows) for rows in (33, 40, 35, 50, 60, 300, 34)]
    shapes = learned(database, *plain[:2])
    used = 0
    for text in [*plain, *(drawn(shape, kinds, draw, 36) for _ in range(30))]:
        by_shape = found(shapes, database, text)
        if by_shape is not None:
            used += 1
            assert same_plan(by_shape, database.plan(text)), text[:200]
    assert used > 10, "a shape that is never used proves nothing"


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        # Beyond the type: an error that names its place.
        (["INSERT INTO s VALUES (1, 'a'), (2, 'b')"] * 2,
         "INSERT INTO s VALUES (1, 'a'), (3e9, 'b')"),
        (["INSERT INTO t VALUES (1, 'a', '2020-01-01', 1, 'x', 1, true), "
          "(1, 'a', '2020-01-01', 1, 'x', 1, true)"] * 2,
         "INSERT INTO t VALUES (1, 'a', '2020-01-01', 1, 'long', 1, true), "
         "(1, 'a', '2020-01-01', 1, 'x', 1, true)"),
        # Another width is another shape.
        (["INSERT INTO s VALUES (1, 'a'), (2, 'b')"] * 2, "INSERT INTO s VALUES (1), (2)"),
        (["INSERT INTO s VALUES (1, 'a'), (2, 'b')"] * 2,
         "INSERT INTO s VALUES (1, 'a', 2), (2, 'b', 3)"),
        # Columns that are left out have values of their own.
        (["INSERT INTO s (k) VALUES (1), (2)"] * 2, "INSERT INTO s (k) VALUES (3), (4)"),
        (["INSERT INTO s (w, k) VALUES ('a', 1), ('b', 2)"] * 2,
         "INSERT INTO s (k, w) VALUES (1, 'a'), (2, 'b')"),
    ],
)  # fmt: skip
def test_what_is_not_the_same_is_planned_by_itself(
    database: Database, texts: list[str], text: str
) -> None:
    assert found(learned(database, *texts), database, text) is None


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM t WHERE a NOT IN ({})",
        "DELETE FROM t WHERE a IN ({}) AND c = 'x'",
        "DELETE FROM t WHERE a IN ({}) RETURNING a",
        "DELETE FROM t USING s WHERE a IN ({})",
        "UPDATE t SET c = 'x' WHERE a IN ({})",
        "SELECT * FROM t WHERE a IN ({})",
    ],
)
def test_other_statements_have_no_shape(text: str) -> None:
    long = ", ".join(map(str, range(60)))
    assert shape_of(parse_statement(text.format(long))) is None


@pytest.mark.parametrize("column", ["f", "n"])
def test_a_list_that_is_told_apart_by_its_types_has_no_plan(
    database: Database, column: str
) -> None:
    """An operand whose constants are of another type than itself: what they are taken for follows
    from the list."""
    lists = [", ".join(map(str, range(count))) for count in (50, 60)]
    texts = [f"DELETE FROM t WHERE {column} IN ({one})" for one in lists]
    shapes = learned(database, *texts)
    assert found(shapes, database, texts[0]) is None


@pytest.mark.parametrize("odd", ["(1.5, 2, 3, 4)", f"(1, 2, 3, {10**20})"])
def test_a_list_of_wider_constants_leaves_no_plan_to_others(database: Database, odd: str) -> None:
    """They are compared with the column as one of their type, which no key finds."""
    shapes = learned(database, *[f"DELETE FROM t WHERE a IN {odd}"] * 2)
    assert found(shapes, database, "DELETE FROM t WHERE a IN (1, 2, 3, 4)") is None


def test_lists_are_not_kept(database: Database) -> None:
    for shape in (SHAPES[0], SHAPES[4]):
        shapes = learned(database, *[drawn(*shape, random.Random(n), 40) for n in (1, 2)])
        (kept,) = [refill for refill in shapes._refills.values() if refill is not None]
        held = [cell.cell_contents for cell in getattr(kept, "__closure__", ())]
        assert held
        assert "xyz" not in repr(held)
        assert "it's" not in repr(held)
    for number in range(2 * KEPT):
        text = f"INSERT INTO s VALUES (1, 'a'), ({number}, 'b')"
        taken = shape_of(parse_statement(text))
        assert taken is not None
        shapes.learn(taken[0], number, taken[1], database.snapshot, database.plan(text))
    assert len(shapes._refills) == KEPT


class Site:
    """A planner that counts how often it plans."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.database = new_database()
        self.database.run(TABLES)
        environment: Any = type("Environment", (), {"experimental": False, "sink_directory": None})
        self.planner = Planner(environment())
        self.session = open_session(
            {}, {"search_path": "public"}, Login(DEFAULT_ROLE_ID, True, False)
        )
        self.planned = 0
        by_itself = entry.plan_statement

        def counted(*arguments: Any, **options: Any) -> Any:
            self.planned += 1
            return by_itself(*arguments, **options)

        monkeypatch.setattr("evertide.adapter.planning.plan_statement", counted)

    def plan(self, first: int) -> Plan:
        text = f"INSERT INTO s VALUES ({first}, 'a'), (2, 'b')"
        parsed = Parsed(parse_statement(text), text)
        request = self.planner.request(parsed, (), (), self.session, self.database.snapshot)
        assert request.plan == self.database.plan(text)
        return request.plan


def test_a_plan_is_made_again_where_names_may_mean_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The catalog's version and the session's settings belong to a shape."""
    site = Site(monkeypatch)
    for number in range(10):
        site.plan(number)
    assert site.planned == 2
    site.session.variables.set("search_path", "other")
    site.database.search_path = ("other",)
    assert site.plan(11) != site.plan(12)
    assert site.planned == 4
    site.database.run("DROP TABLE other.s; CREATE TABLE other.s (k int, w text)")
    site.plan(13)
    assert site.planned == 5


def test_a_role_without_the_right_does_not_get_another_s_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(monkeypatch)
    site.database.run("CREATE ROLE joe")
    for number in range(3):
        site.plan(number)
    joe = site.database.snapshot.role_named("joe")
    assert joe is not None
    site.session = open_session({}, {"search_path": "public"}, Login(joe.role_id, False, False))
    with pytest.raises(InsufficientPrivilege):
        site.plan(4)


def test_deletes_are_found_by_their_shape_alone(database: Database) -> None:
    texts = [f"DELETE FROM t WHERE a IN ({', '.join(map(str, range(n)))})" for n in (50, 60, 70)]
    shapes = learned(database, *texts[:2])
    plan = found(shapes, database, texts[2])
    assert isinstance(plan, DeletePlan)
    assert found(shapes, database, texts[2].replace("FROM t", "FROM s")) is None
    with pytest.raises(SqlError):
        database.plan(texts[2].replace("a IN", "b IN"))
    assert found(shapes, database, texts[2].replace("a IN", "b IN")) is None
