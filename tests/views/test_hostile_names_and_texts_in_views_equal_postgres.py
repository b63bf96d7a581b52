"""Goal: names and texts mean nothing to Spark but themselves, whatever characters they are made of.

Method: a schema, tables, columns, views and literals of such characters. Views over them, filled
and kept by Spark, hold what their queries give in PostgreSQL, after writes and after errors too.
"""

from collections import Counter

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]

# Quotes and escapes of several languages, variables, templates, comments, what normalization or
# another direction of writing would change, and names that generated texts have themselves.
HOSTILE = (
    "it's", "''", 'say "hi"', "back`tick", "back\\slash\\", "\\'", "\\u0041\\n", "${env:PATH}",
    "$$ $a$", "{{ x }} {0}", "two\nlines\r\n", "tab\t", "e\u0301 \u00e9", "\U0001f600\u200d",
    "\u202eabc \u05d0\u0628", "; DROP TABLE t; --", "/* c */", "%s %(a)s", ":p0 ?", "c0", "C0", " ",
)  # fmt: skip
SCHEMA = "'`\"\\${x};--\n"


def name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


FIRST, *_ = COLUMNS = [name(text) for text in HOSTILE]
LITERALS = [literal(text) for text in HOSTILE]
PAIRS = list(zip(COLUMNS, LITERALS, strict=True))
WIDE = name("wide " + SCHEMA)
QUERIES = {
    "it's": f"SELECT * FROM {WIDE} WHERE {' OR '.join(f'{c} = {t}' for c, t in PAIRS[::2])}",
    'a"b': f"SELECT id, {', '.join(f'{c} || {t} AS {c}' for c, t in PAIRS)} FROM {WIDE}",
    "a`b": " UNION ALL ".join(f"SELECT {t} AS n, x.{c} FROM {c} x" for c, t in PAIRS[1::4]),
    "a\\b": f"SELECT x.{COLUMNS[3]} AS {COLUMNS[4]}, count(*) AS {COLUMNS[7]},"
    f" string_agg(DISTINCT y.{COLUMNS[5]}, {LITERALS[4]}) AS {COLUMNS[8]}"
    f" FROM {WIDE} x JOIN {WIDE} y ON x.id = y.id - 1"
    f" WHERE y.{COLUMNS[2]} IN ({', '.join(LITERALS)}) GROUP BY x.{COLUMNS[3]}",
    "${x}": f"SELECT id, {FIRST} LIKE '%\\\\%' AS l, replace({FIRST}, '\\', '$0`') AS r,"
    f" position('`' in {FIRST}) AS p, length({FIRST}) AS n,"
    f" CASE {FIRST} WHEN {LITERALS[4]} THEN {LITERALS[7]} ELSE {LITERALS[10]} END AS c FROM {WIDE}",
}


def prepared() -> list[str]:
    """Tables with some rows, so that views have something to begin with."""
    listed = ", ".join(f"{column} text" for column in COLUMNS)
    return [
        f"CREATE SCHEMA {name(SCHEMA)}",
        f"SET search_path = {name(SCHEMA)}",
        f"CREATE TABLE {WIDE} (id int, {listed})",
        f"INSERT INTO {WIDE} VALUES {', '.join(wide_row(number) for number in range(12))}",
        *(f"CREATE TABLE {c} ({c} text)" for c in COLUMNS[1::4]),
        *(f"INSERT INTO {c} VALUES ({t}), ('x')" for c, t in PAIRS[1::4]),
    ]


def wide_row(number: int) -> str:
    texts = [LITERALS[(number + place) % len(LITERALS)] for place in range(len(LITERALS))]
    return f"({number}, {', '.join(texts)})"


CHANGES = (
    f"INSERT INTO {WIDE} VALUES {wide_row(12)}, {wide_row(13)}",
    f"UPDATE {WIDE} SET {FIRST} = {FIRST} || {LITERALS[4]} WHERE {COLUMNS[2]} = {LITERALS[5]}",
    f"DELETE FROM {COLUMNS[1]} WHERE {COLUMNS[1]} = {LITERALS[1]}",
)


def test_views_hold_what_postgresql_gives(engine_server: Server, postgres_dsn: str) -> None:
    with (
        engine_server.connect() as ours,
        psycopg.connect(postgres_dsn, autocommit=True) as theirs,
    ):
        ours.execute("SET statement_timeout = '240s'")
        for statement in prepared():
            ours.execute(statement.encode())
            theirs.execute(statement.encode())
        try:
            for view, query in QUERIES.items():
                ours.execute(f"CREATE MATERIALIZED VIEW {name(view)} AS {query}".encode())
            compare(ours, theirs, "at first")
            for statement in CHANGES:
                ours.execute(statement.encode())
                theirs.execute(statement.encode())
            compare(ours, theirs, "after writes")
            check_executors(ours)
            check_errors(ours, theirs)
        finally:
            theirs.execute(f"DROP SCHEMA {name(SCHEMA)} CASCADE".encode())


def compare(ours: Connection, theirs: Connection, label: str) -> None:
    for view, query in QUERIES.items():
        found = ours.execute(f"SELECT * FROM {name(view)}".encode())
        expected = theirs.execute(query.encode())
        assert found.description is not None
        assert expected.description is not None
        assert [c.name for c in found.description] == [c.name for c in expected.description]
        assert Counter(found.fetchall()) == Counter(expected.fetchall()), f"{view}, {label}"


def check_executors(ours: Connection) -> None:
    """Whoever kept these views, it was not the server's own process."""
    found = ours.execute(
        "SELECT DISTINCT o.name, r.executor FROM mz_internal.mz_tick_records r JOIN mz_objects o ON"
        " o.id = r.object_id JOIN mz_schemas s ON s.id = o.schema_id WHERE s.name = %s",
        (SCHEMA,),
    ).fetchall()
    assert {view for view, _ in found} == QUERIES.keys()
    assert {executor for _, executor in found} in ({"resident"}, {"job"})


def check_errors(ours: Connection, theirs: Connection) -> None:
    """A text that is told as part of an error is told as it is."""
    query = f"SELECT {COLUMNS[1]}::int AS a FROM {COLUMNS[1]} WHERE {COLUMNS[1]} <> 'x'"
    text = "'\"`\\${x}{{\n\u202e\U0001f600;--"
    for connection in (ours, theirs):
        connection.execute(f"INSERT INTO {COLUMNS[1]} VALUES (%s)".encode(), (text,))
    ours.execute(f"CREATE MATERIALIZED VIEW wrong AS {query}".encode())
    told = []
    for connection, asked in ((ours, "SELECT * FROM wrong"), (theirs, query)):
        with pytest.raises(psycopg.errors.InvalidTextRepresentation) as raised:
            connection.execute(asked.encode())
        told.append(raised.value.diag.message_primary)
    assert told[0] == told[1] == f'invalid input syntax for type integer: "{text}"'
    ours.execute(f"DELETE FROM {COLUMNS[1]} WHERE {COLUMNS[1]} = %s".encode(), (text,))
    assert ours.execute("SELECT * FROM wrong").fetchall() == []
