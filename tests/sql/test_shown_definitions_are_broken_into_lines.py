"""Goal: SHOW CREATE prints a definition on one line if it fits and breaks it where people would,
and what it prints creates the same thing again.

Method: definitions of every kind over a catalog in memory; every query of the corpus of statements
as a view, printed and parsed again.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from evertide.sql.parser.entry import parse_statement
from evertide.sql.shown.definitions import shown_definition
from evertide.sql.shown.full_types import with_schemas_of_types
from evertide.sql.shown.layout import LINE, WIDTH, Group, Nested, laid_out
from evertide.sql.syntax.command import SelectStatement
from evertide.sql.syntax.definition import CreateViewStatement
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.query import Query
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database

STATEMENTS = Path(__file__).with_name("statements.txt").read_text().splitlines()


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run("CREATE TABLE t (a int, b varchar(5) NOT NULL DEFAULT 'x', c timestamptz[])")
    return database


def shown(database: Database, what: str) -> str:
    ((_, text),) = database.query(f"SHOW CREATE {what}")
    assert isinstance(text, str)
    return text


def test_a_table_names_its_types_by_their_schemas(database: Database) -> None:
    assert shown(database, "TABLE t") == (
        "CREATE TABLE materialize.public.t (\n"
        "    a pg_catalog.int4,\n"
        "    b pg_catalog.varchar(5) NOT NULL DEFAULT 'x',\n"
        "    c pg_catalog.timestamptz[]\n"
        ");"
    )
    database.run("CREATE TYPE numbers AS LIST (ELEMENT TYPE = int)")
    database.run("CREATE TABLE u (a numbers, b uint2)")
    assert shown(database, "TABLE u") == (
        "CREATE TABLE materialize.public.u (a materialize.public.numbers, b mz_catalog.uint2);"
    )
    assert shown(database, "TYPE numbers") == (
        "CREATE TYPE materialize.public.numbers AS LIST (ELEMENT TYPE = pg_catalog.int4);"
    )


def test_a_view_is_broken_by_its_clauses(database: Database) -> None:
    database.run("CREATE VIEW v AS (SELECT a FROM t)")
    assert shown(database, "VIEW v") == (
        "CREATE VIEW materialize.public.v AS SELECT a FROM materialize.public.t;"
    )
    database.run(
        "CREATE VIEW w AS SELECT t.a, x.b::int FROM t JOIN t AS x ON t.a = x.a AND t.b = x.b"
        " WHERE t.a > 10 AND x.a < 1000 UNION ALL SELECT a, 1 FROM t"
    )
    assert shown(database, "VIEW w") == (
        "CREATE VIEW\n"
        "    materialize.public.w\n"
        "    AS\n"
        "        SELECT t.a, x.b::pg_catalog.int4\n"
        "        FROM materialize.public.t JOIN materialize.public.t AS x"
        " ON t.a = x.a AND t.b = x.b\n"
        "        WHERE t.a > 10 AND x.a < 1000\n"
        "        UNION ALL SELECT a, 1 FROM materialize.public.t;"
    )


def test_a_materialized_view_tells_where_and_when_it_is_computed(database: Database) -> None:
    database.run("CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
    text = shown(database, "MATERIALIZED VIEW m")
    assert text == (
        "CREATE MATERIALIZED VIEW materialize.public.m\n"
        '    IN CLUSTER "default"\n'
        "    WITH (REFRESH = ON COMMIT)\n"
        "    AS SELECT a FROM materialize.public.t;"
    )
    database.run("DROP MATERIALIZED VIEW m")
    database.run(text)
    assert shown(database, "MATERIALIZED VIEW m") == text


def test_what_is_shown_of_another_kind_is_told(database: Database) -> None:
    database.run("CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
    with pytest.raises(SqlError) as raised:
        database.plan("SHOW CREATE VIEW m")
    assert raised.value.message == "m is not a view"
    assert raised.value.hint == "Use SHOW CREATE MATERIALIZED VIEW to show a materialized view."


def test_only_what_does_not_fit_is_broken() -> None:
    inner = Group(("aaa", Nested((LINE, "bbb"))))
    assert laid_out(Group((inner, LINE, "ccc")), width=11) == "aaa bbb ccc"
    assert laid_out(Group((inner, LINE, "ccc")), width=10) == "aaa bbb\nccc"
    assert laid_out(Group((inner, LINE, "ccc")), width=6) == "aaa\n    bbb\nccc"
    # What follows a group up to the next break counts too.
    assert laid_out((inner, ";"), width=7) == "aaa\n    bbb;"


def _without_brackets(query: Query) -> Query:
    """Parentheses around a whole query, which are not shown."""
    while isinstance(query.body, Query) and query == Query(query.body):
        query = query.body
    return query


def test_what_is_shown_means_the_same() -> None:
    found = 0
    for sql in STATEMENTS:
        try:
            statement = parse_statement(sql)
        except SqlError:
            continue
        if not isinstance(statement, SelectStatement) or statement.as_of is not None:
            continue
        view = CreateViewStatement(Name(("s", "v")), statement.query)
        text = shown_definition(view)
        again = parse_statement(text)
        assert isinstance(again, CreateViewStatement)
        expected = with_schemas_of_types(replace(view, query=_without_brackets(view.query)))
        assert again == expected, text
        assert text.endswith(";")
        found += 1
        if "\n" not in text:
            assert len(text) <= WIDTH or text.count(" ") == 0
    assert found > 50


def test_values_can_be_left_out(database: Database) -> None:
    database.run("CREATE VIEW secretive AS SELECT 'hush' AS a, 12.5 AS b, t1 FROM (SELECT 1 AS t1)")
    ((name, text),) = database.query("SHOW REDACTED CREATE VIEW secretive")
    assert name == "materialize.public.secretive"
    assert isinstance(text, str)
    assert "hush" not in text
    assert "12.5" not in text
    assert text.count("'<REDACTED>'") == 3
    assert "AS t1" in text
