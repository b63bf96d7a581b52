"""Goal: COMMENT ON keeps a text for an object or a column, shows it, and takes it away again.

Method: statements over a catalog in memory.
"""

import pytest

from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database

SHOWN = (
    "SELECT object_type, object_sub_id, comment FROM mz_internal.mz_comments"
    " WHERE id NOT LIKE 's%' ORDER BY object_type, object_sub_id NULLS FIRST"
)


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b int); CREATE VIEW v AS SELECT b AS c FROM t;"
        "CREATE MATERIALIZED VIEW m AS TABLE t; CREATE INDEX i ON t (a); CREATE SCHEMA s;"
        "CREATE CLUSTER c REPLICAS (r (SIZE '1')); CREATE ROLE joe; CREATE DATABASE d"
    )
    return database


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("TABLE t", ("table", None)),
        ("COLUMN public.t.b", ("table", 2)),
        ("COLUMN v.c", ("view", 1)),
        ("VIEW v", ("view", None)),
        ("MATERIALIZED VIEW m", ("materialized-view", None)),
        ("INDEX i", ("index", None)),
        ("SCHEMA s", ("schema", None)),
        ("DATABASE d", ("database", None)),
        ("CLUSTER c", ("cluster", None)),
        ("CLUSTER REPLICA c.r", ("cluster-replica", None)),
        ("ROLE joe", ("role", None)),
    ],
)
def test_a_comment_is_kept_changed_and_taken_away(
    on: str, expected: tuple[str, int | None], database: Database
) -> None:
    for text in ("first", "it's second"):
        quoted = text.replace("'", "''")
        database.run(f"COMMENT ON {on} IS '{quoted}'")
        assert database.query(SHOWN) == [(*expected, text)]
    database.run(f"COMMENT ON {on} IS NULL")
    assert database.query(SHOWN) == []


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("COMMENT ON TABLE x IS 'x'", "42P01", "unknown catalog item 'x'"),
        ("COMMENT ON TABLE v IS 'x'", "42809", "v is a view not a table"),
        ("COMMENT ON COLUMN t.x IS 'x'", "42703", 'column "t.x" does not exist'),
        (
            "COMMENT ON COLUMN i.a IS 'x'",
            "42809",
            'index "materialize.public.i" does not have columns',
        ),
        ("COMMENT ON CLUSTER x IS 'x'", "42704", "unknown cluster 'x'"),
        (
            "COMMENT ON SCHEMA mz_catalog IS 'x'",
            "42501",
            "system schema 'mz_catalog' cannot be modified",
        ),
    ],
)
def test_what_cannot_have_one_is_told(
    sql: str, code: str, message: str, database: Database
) -> None:
    with pytest.raises(SqlError) as raised:
        database.plan(sql)
    assert (raised.value.code, raised.value.message) == (code, message)


def test_a_comment_goes_with_its_object(database: Database) -> None:
    database.run("COMMENT ON VIEW v IS 'x'; COMMENT ON COLUMN v.c IS 'y'; DROP VIEW v")
    assert database.query(SHOWN) == []
