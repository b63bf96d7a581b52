"""DROP takes what depends on an object with it, or says what keeps it."""

from collections.abc import Sequence

import pytest

from evertide.sql.plan.plans import DropPlan
from evertide.vocab.errors import Notice, SqlError
from tests.sql.database import Database, new_database


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int); CREATE TABLE u (b int); CREATE INDEX t_i ON t (a);"
        "CREATE VIEW v AS SELECT * FROM t; CREATE VIEW vu AS SELECT * FROM v, u;"
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM vu; CREATE INDEX m_i ON m (a);"
        "CREATE SCHEMA s; CREATE TABLE s.inside (x int); CREATE SCHEMA bare;"
        "CREATE VIEW outside AS SELECT * FROM s.inside; CREATE DATABASE d;"
        "CREATE TABLE d.public.far (y int); CREATE CLUSTER c SIZE '1';"
        "CREATE CLUSTER parts REPLICAS (r1 (SIZE '1'), r2 (SIZE '1'));"
        "CREATE INDEX in_c IN CLUSTER c ON u (b)"
    )
    return database


def drop(database: Database, sql: str) -> DropPlan:
    plan = database.plan(sql)
    assert isinstance(plan, DropPlan)
    return plan


def names(database: Database, plan: DropPlan) -> list[str]:
    return [database.snapshot.items[item_id].name for item_id in plan.items]


GOES: Sequence[tuple[str, list[str]]] = [
    ("DROP INDEX t_i", ["t_i"]),
    ("DROP MATERIALIZED VIEW m", ["m_i", "m"]),
    ("DROP MATERIALIZED VIEW m RESTRICT", ["m_i", "m"]),
    ("DROP VIEW vu CASCADE", ["m_i", "m", "vu"]),
    ("DROP TABLE t CASCADE", ["t_i", "m_i", "m", "vu", "v", "t"]),
    ("DROP TABLE t, u CASCADE", ["t_i", "m_i", "m", "vu", "v", "t", "in_c", "u"]),
    ("DROP SCHEMA s CASCADE", ["outside", "inside"]),
    ("DROP SCHEMA bare", []),
    ("DROP DATABASE d CASCADE", ["far"]),
    ("DROP CLUSTER c CASCADE", ["in_c"]),
    ("DROP CLUSTER parts", []),
    ("DROP TABLE IF EXISTS nope, u CASCADE", ["m_i", "m", "vu", "in_c", "u"]),
]


@pytest.mark.parametrize(("sql", "going"), GOES)
def test_dependants_go_first(sql: str, going: list[str], database: Database) -> None:
    assert names(database, drop(database, sql)) == going
    database.run(sql)


def test_containers_are_named_too(database: Database) -> None:
    assert len(drop(database, "DROP SCHEMA s CASCADE").schemas) == 1
    plan = drop(database, "DROP DATABASE d CASCADE")
    assert (len(plan.schemas), len(plan.databases)) == (1, 1)
    assert len(drop(database, "DROP CLUSTER c CASCADE").clusters) == 1
    assert len(drop(database, "DROP CLUSTER REPLICA parts.r2").replicas) == 1
    assert drop(database, "DROP VIEW vu CASCADE").tag == "DROP VIEW"


KEPT = [
    (
        "DROP TABLE t",
        "2BP01",
        'cannot drop table "t": still depended upon by view "v"',
        'view "v" depends on table "t"',
    ),
    (
        "DROP TABLE u, t",
        "2BP01",
        'cannot drop table "u": still depended upon by view "vu"',
        'view "vu" depends on table "u"',
    ),
    (
        "DROP SCHEMA s",
        "2BP01",
        "schema 'materialize.s' cannot be dropped without CASCADE while it contains objects",
        'table "inside" is in schema "s"',
    ),
    (
        "DROP DATABASE d",
        "2BP01",
        "database 'd' cannot be dropped with RESTRICT while it contains objects",
        'table "far"',
    ),
    (
        "DROP CLUSTER c",
        "2BP01",
        'cannot drop cluster "c" because other objects depend on it',
        'index "in_c" runs in cluster "c"',
    ),
    ("DROP TABLE v", "42809", "v is a view not a table", None),
    ("DROP VIEW m", "42809", "m is not a view", None),
    ("DROP INDEX t", "42809", "t is a table not an index", None),
    ("DROP TABLE IF EXISTS v", "42809", "v is a view not a table", None),
    ("DROP TABLE nope", "42P01", "unknown catalog item 'nope'", None),
    ("DROP SCHEMA nope", "3F000", "unknown schema 'nope'", None),
    ("DROP DATABASE nope", "3D000", "unknown database 'nope'", None),
    ("DROP CLUSTER nope", "42704", "unknown cluster 'nope'", None),
    (
        "DROP CLUSTER REPLICA parts.r9",
        "42704",
        'CLUSTER parts has no CLUSTER REPLICA named "r9"',
        None,
    ),
    ("DROP CLUSTER REPLICA c.r1", "0A000", "cannot drop replica of managed cluster", None),
    ('DROP CLUSTER REPLICA "default".r1', "0A000", "cannot modify virtual cluster default", None),
    ("DROP SCHEMA mz_catalog", "42501", "system schema 'mz_catalog' cannot be modified", None),
]


@pytest.mark.parametrize(("sql", "code", "message", "detail"), KEPT)
def test_what_keeps_it(
    sql: str, code: str, message: str, detail: str | None, database: Database
) -> None:
    with pytest.raises(SqlError) as error:
        database.plan(sql)
    found = error.value
    assert (found.code, found.message, found.detail) == (code, message, detail)
    assert found.hint is not None or code not in ("2BP01", "42809")


def test_if_exists_is_told_in_a_notice(database: Database) -> None:
    for sql, message in (
        ("DROP TABLE IF EXISTS nope", 'TABLE "nope" does not exist, skipping'),
        ("DROP TABLE IF EXISTS nope.t", 'TABLE "nope.t" does not exist, skipping'),
        ("DROP MATERIALIZED VIEW IF EXISTS x", 'MATERIALIZED VIEW "x" does not exist, skipping'),
        ("DROP SCHEMA IF EXISTS nope", 'SCHEMA "nope" does not exist, skipping'),
        ("DROP CLUSTER IF EXISTS nope", 'CLUSTER "nope" does not exist, skipping'),
        ("DROP CLUSTER REPLICA IF EXISTS c.x", 'CLUSTER REPLICA "c.x" does not exist, skipping'),
    ):
        plan = drop(database, sql)
        assert plan.notices == (Notice("NOTICE", "42704", message),)
        assert not plan.items
