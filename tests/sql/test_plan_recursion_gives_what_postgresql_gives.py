"""WITH MUTUALLY RECURSIVE: PostgreSQL's rows where WITH RECURSIVE says the same, and the rest."""

from collections.abc import Iterator
from random import Random

import psycopg
import pytest

from evertide.sql.plan.plans import CreateMaterializedViewPlan, SelectPlan
from evertide.vocab.errors import (
    DatatypeMismatch,
    DuplicateAlias,
    FeatureNotSupported,
    InvalidParameterValue,
    SqlError,
    SqlSyntaxError,
    UndefinedTable,
)
from evertide.vocab.sql_type import DATE, INT8, NUMERIC
from tests.sql.database import Database, new_database

EDGES = "CREATE TABLE edges (a int, b int)"
# Columns with types, and the two halves of the recursion; {r} is its name.
SAID_IN_BOTH = {
    "closure": (
        "(a int, b int)",
        "SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges e ON r.b = e.a",
        "SELECT * FROM r",
    ),
    "within three steps": (
        "(a int, b int, n int)",
        "SELECT a, b, 1 FROM edges UNION ALL"
        " SELECT r.a, e.b, r.n + 1 FROM r JOIN edges e ON r.b = e.a WHERE r.n < 3",
        "SELECT a, b, count(*), min(n) FROM r GROUP BY a, b",
    ),
    "from one point": (
        "(p int)",
        "SELECT 0 UNION SELECT b FROM r JOIN edges ON a = p",
        "SELECT p, (SELECT count(*) FROM edges WHERE a = p) FROM r",
    ),
    "no way back": (
        "(a int, b int)",
        "SELECT a, b FROM edges WHERE a < b UNION"
        " SELECT r.a, e.b FROM r JOIN edges e ON r.b = e.a AND e.a < e.b",
        "SELECT * FROM r WHERE NOT EXISTS (SELECT 1 FROM edges e WHERE e.a = r.b AND e.b = r.a)",
    ),
    "a count": (
        "(n int)",
        "VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 60",
        "SELECT count(*), sum(n), min(n), max(n) FROM r",
    ),
    "numbers of fibonacci": (
        "(n int, a numeric, b numeric)",
        "SELECT 1, 0::numeric, 1::numeric UNION ALL SELECT n + 1, b, a + b FROM r WHERE n < 90",
        "SELECT n, a::bigint FROM r",
    ),
}


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(EDGES)
    return database


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS recursion CASCADE")
        connection.execute("CREATE SCHEMA recursion")
        connection.execute("SET search_path = recursion")
        connection.execute(EDGES)
        yield connection


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", SAID_IN_BOTH)
def test_rows(name: str, seed: int, database: Database, postgres: psycopg.Connection) -> None:
    rng = Random(seed)
    points = rng.choice([3, 6, 10])
    pairs = [(rng.randrange(points), rng.randrange(points)) for _ in range(rng.randrange(1, 14))]
    insert = f"INSERT INTO edges VALUES {', '.join(map(str, pairs))}"
    columns, query, rest = SAID_IN_BOTH[name]
    postgres.execute("TRUNCATE edges")
    postgres.execute(insert)
    database.run(insert)
    names = ", ".join(part.split()[0] for part in columns.strip("()").split(","))
    expected = postgres.execute(f"WITH RECURSIVE r ({names}) AS ({query}) {rest}").fetchall()
    found = database.query(f"WITH MUTUALLY RECURSIVE r {columns} AS ({query}) {rest}")
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_queries_see_one_another(database: Database) -> None:
    """Even numbers follow odd ones, and the other way round."""
    found = database.query(
        "WITH MUTUALLY RECURSIVE"
        " even (n int) AS (VALUES (0) UNION ALL SELECT n + 1 FROM odd WHERE n < 20),"
        " odd (n int) AS (SELECT n + 1 FROM even)"
        " SELECT (SELECT count(*) FROM even), (SELECT sum(n) FROM odd)"
    )
    assert found == [(11, 121)]


def test_one_within_another(database: Database) -> None:
    """Points, and from each of them those that can be reached."""
    database.run("INSERT INTO edges VALUES (1, 2), (2, 3), (5, 1)")
    found = database.query(
        "WITH MUTUALLY RECURSIVE p (x int) AS ("
        " SELECT 1 UNION SELECT x FROM ("
        "  WITH MUTUALLY RECURSIVE q (y int) AS (SELECT x FROM p UNION"
        "   SELECT b FROM q, edges WHERE a = y) SELECT y AS x FROM q) s)"
        " SELECT x FROM p ORDER BY x"
    )
    assert found == [(1,), (2,), (3,)]


def test_it_sees_the_row_around(database: Database) -> None:
    database.run("INSERT INTO edges VALUES (1, 2), (2, 3), (3, 1), (7, 8)")
    found = database.query(
        "SELECT s.p, (WITH MUTUALLY RECURSIVE r (x int) AS (SELECT s.p UNION"
        " SELECT b FROM r, edges WHERE a = x) SELECT count(*) FROM r)"
        " FROM (VALUES (1), (3), (7), (9)) AS s (p) ORDER BY s.p"
    )
    assert found == [(1, 3), (3, 3), (7, 2), (9, 1)]


def test_through_a_view_more_than_once(database: Database) -> None:
    database.run("INSERT INTO edges VALUES (1, 2), (2, 3)")
    database.run(
        "CREATE VIEW ways AS WITH MUTUALLY RECURSIVE r (a int, b int) AS (SELECT a, b FROM edges"
        " UNION SELECT r.a, e.b FROM r, edges e WHERE r.b = e.a) SELECT a, b FROM r"
    )
    found = database.query(
        "WITH MUTUALLY RECURSIVE r (a int, b int) AS (SELECT a, b FROM ways UNION"
        " SELECT x.a, y.b FROM r x JOIN ways y ON x.b = y.a) SELECT count(*) FROM r, ways"
    )
    assert found == [(9,)]


LIMITED = "WITH MUTUALLY RECURSIVE ({}) r (n int) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r)"


def test_limits(database: Database) -> None:
    assert database.query(f"{LIMITED.format('RETURN AT RECURSION LIMIT 4')} SELECT max(n) FROM r")
    for words in ("RECURSION LIMIT 4", "ERROR AT RECURSION LIMIT 4"):
        with pytest.raises(SqlError, match="exceeded the recursion limit 4") as raised:
            database.query(f"{LIMITED.format(words)} SELECT max(n) FROM r")
        assert raised.value.code == "54000"
    found = database.query(f"{LIMITED.format('RETURN AT RECURSION LIMIT 4')} SELECT n FROM r")
    assert sorted(found) == [(1,), (2,), (3,), (4,)]


MISTAKES = [
    ("r (a int) AS (SELECT 'x'::text)", DatatypeMismatch, "declared types .integer., but"),
    ("r (a int, b int) AS (SELECT 1)", DatatypeMismatch, "query returns types .integer."),
    ("r (a int) AS (SELECT 1, 2)", DatatypeMismatch, "returns types .integer, integer."),
    ("r (a int) AS (SELECT 1), r (b int) AS (SELECT 2)", DuplicateAlias, "more than once"),
    ("r (a int) AS (SELECT a FROM nowhere)", UndefinedTable, "nowhere"),
    ("r (a) AS (SELECT 1)", SqlSyntaxError, "Expected"),
    ("r AS (SELECT 1)", SqlSyntaxError, "Expected"),
    ("(RECURSION LIMIT 0) r (a int) AS (SELECT 1)", SqlSyntaxError, "greater than 0"),
    ("(RETURN RECURSION LIMIT 1) r (a int) AS (SELECT 1)", SqlSyntaxError, "Expected AT"),
]


@pytest.mark.parametrize(("text", "error", "words"), MISTAKES)
def test_mistakes(text: str, error: type[SqlError], words: str, database: Database) -> None:
    with pytest.raises(error, match=words):
        database.query(f"WITH MUTUALLY RECURSIVE {text} SELECT * FROM r")


def test_what_converts_by_itself_may_differ_from_the_declaration(database: Database) -> None:
    text = (
        "WITH MUTUALLY RECURSIVE r (a int8, b numeric, c date) AS"
        " (SELECT 1::int2, 2, '1970-01-03') SELECT * FROM r"
    )
    plan = database.plan(text)
    assert isinstance(plan, SelectPlan)
    assert plan.desc.types == (INT8, NUMERIC, DATE)
    assert database.query(text) == [(1, 2, 2)]


RECURSIVE = (
    "WITH MUTUALLY RECURSIVE r (a int) AS (SELECT a FROM edges UNION SELECT a + 1 FROM r"
    " WHERE a < 9) SELECT a FROM r"
)


def test_a_stored_definition_keeps_names_of_the_list_and_qualifies_others(
    database: Database,
) -> None:
    plan = database.plan(
        "CREATE MATERIALIZED VIEW v AS WITH MUTUALLY RECURSIVE"
        " edges2 (a int) AS (SELECT a FROM edges UNION SELECT a FROM later),"
        " later (a int) AS (SELECT a FROM edges2) SELECT a FROM later"
    )
    assert isinstance(plan, CreateMaterializedViewPlan)
    assert (
        "WITH MUTUALLY RECURSIVE edges2 (a int) AS (SELECT a FROM materialize.public.edges UNION"
        " SELECT a FROM later), later (a int) AS (SELECT a FROM edges2)" in plan.create_sql
    )


def test_what_recomputes_can_be_refused(database: Database) -> None:
    refused = "WITH MUTUALLY RECURSIVE is not incremental"
    with pytest.raises(FeatureNotSupported, match=refused):
        database.plan(f"CREATE MATERIALIZED VIEW v WITH (REQUIRE INCREMENTAL) AS {RECURSIVE}")
    with pytest.raises(InvalidParameterValue, match="true or false"):
        database.plan("CREATE MATERIALIZED VIEW v WITH (REQUIRE INCREMENTAL = 3) AS SELECT 1")
    allowed = database.plan(
        f"CREATE MATERIALIZED VIEW v WITH (REQUIRE INCREMENTAL = false) AS {RECURSIVE}"
    )
    assert isinstance(allowed, CreateMaterializedViewPlan)
    followed = database.plan(
        "CREATE MATERIALIZED VIEW v WITH (REQUIRE INCREMENTAL) AS SELECT a FROM edges"
    )
    assert isinstance(followed, CreateMaterializedViewPlan)


def test_the_time_itself_does_not_go_round(database: Database) -> None:
    """Before the recursion and after it there may be filters by time, but none within."""
    around = (
        "WITH MUTUALLY RECURSIVE r (a int) AS (SELECT a FROM edges WHERE mz_now() < b::mz_timestamp"
        " UNION SELECT a + 1 FROM r WHERE a < 9) SELECT a FROM r WHERE mz_now() > 5::mz_timestamp"
    )
    plan = database.plan(f"CREATE MATERIALIZED VIEW v AS {around}")
    assert isinstance(plan, CreateMaterializedViewPlan)
    within = (
        "WITH MUTUALLY RECURSIVE r (a int) AS (SELECT a FROM edges UNION SELECT a + 1 FROM r"
        " WHERE mz_now() < a::mz_timestamp) SELECT a FROM r"
    )
    with pytest.raises(FeatureNotSupported, match="within a recursion"):
        database.plan(f"CREATE MATERIALIZED VIEW v AS {within}")
