"""SHOW gives the peer's columns, filtered and in order."""

import pytest

from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int NOT NULL, b varchar(5)); CREATE TABLE tt (x int);"
        "CREATE VIEW v AS SELECT * FROM t; CREATE MATERIALIZED VIEW m AS SELECT b, a FROM v;"
        "CREATE CLUSTER big (SIZE '2', REPLICATION FACTOR 2);"
        "CREATE CLUSTER parts REPLICAS (one (SIZE '1'));"
        "CREATE INDEX ON t (b, a); CREATE INDEX mi IN CLUSTER big ON m (a);"
        "CREATE SCHEMA s; CREATE TABLE s.other (x int); CREATE INDEX ON s.other (x)"
    )
    return database


SHOWN: list[tuple[str, tuple[str, ...], list[tuple[Datum, ...]]]] = [
    ("SHOW TABLES", ("name", "comment"), [("t", ""), ("tt", "")]),
    ("SHOW TABLES FROM s", ("name", "comment"), [("other", "")]),
    ("SHOW TABLES FROM materialize.s", ("name", "comment"), [("other", "")]),
    ("SHOW TABLES LIKE 't_'", ("name", "comment"), [("tt", "")]),
    ("SHOW TABLES WHERE name <> 'tt'", ("name", "comment"), [("t", "")]),
    ("SHOW VIEWS", ("name", "comment"), [("v", "")]),
    ("SHOW MATERIALIZED VIEWS", ("name", "cluster", "comment"), [("m", "default", "")]),
    ("SHOW MATERIALIZED VIEWS IN CLUSTER big", ("name", "cluster", "comment"), []),
    (
        "SHOW INDEXES",
        ("name", "on", "cluster", "key", "comment"),
        [("mi", "m", "big", ("a",), ""), ("t_b_a_idx", "t", "default", ("b", "a"), "")],
    ),
    (
        "SHOW INDEXES ON t",
        ("name", "on", "cluster", "key", "comment"),
        [("t_b_a_idx", "t", "default", ("b", "a"), "")],
    ),
    (
        "SHOW INDEXES FROM s.other",
        ("name", "on", "cluster", "key", "comment"),
        [("other_x_idx", "other", "default", ("x",), "")],
    ),
    (
        "SHOW INDEXES IN CLUSTER \"default\" WHERE \"on\" = 'other'",
        ("name", "on", "cluster", "key", "comment"),
        [("other_x_idx", "other", "default", ("x",), "")],
    ),
    (
        "SHOW CLUSTERS",
        ("name", "replicas", "activity", "comment"),
        [
            ("big", "r1 (2), r2 (2)", None, ""),
            ("default", "r1", None, ""),
            ("parts", "one (1)", None, ""),
        ],
    ),
    ("SHOW CLUSTERS LIKE 'b%'", ("name", "replicas", "activity", "comment"),
     [("big", "r1 (2), r2 (2)", None, "")]),
    (
        "SHOW CLUSTER REPLICAS WHERE cluster = 'big'",
        ("cluster", "replica", "size", "ready", "comment"),
        [("big", "r1", "2", False, ""), ("big", "r2", "2", False, "")],
    ),
    ("SHOW SCHEMAS LIKE 's'", ("name", "comment"), [("s", "")]),
    ("SHOW DATABASES", ("name", "comment"), [("materialize", "")]),
    ("SHOW ROLES", ("name", "comment"), [("materialize", "")]),
    ("SHOW SOURCES", ("name", "type", "cluster", "comment"), []),
    ("SHOW SINKS", ("name", "type", "cluster", "comment"), []),
    (
        "SHOW OBJECTS FROM s",
        ("name", "type", "comment"),
        [("other", "table", ""), ("other_x_idx", "index", "")],
    ),
    (
        "SHOW COLUMNS FROM t",
        ("name", "nullable", "type", "comment"),
        [("a", False, "integer", ""), ("b", True, "character varying", "")],
    ),
    (
        "SHOW COLUMNS FROM m WHERE name = 'a'",
        ("name", "nullable", "type", "comment"),
        [("a", False, "integer", "")],
    ),
    (
        "SHOW CREATE INDEX mi",
        ("name", "create_sql"),
        [("materialize.public.mi", "CREATE INDEX mi IN CLUSTER big ON materialize.public.m (a);")],
    ),
    (
        "SHOW CREATE CLUSTER big",
        ("name", "create_sql"),
        [
            (
                "big",
                'CREATE CLUSTER "big" (EXPERIMENTAL ARRANGEMENT COMPRESSION = false,'
                " INTROSPECTION DEBUGGING = false, INTROSPECTION INTERVAL = INTERVAL '00:00:01',"
                " MANAGED = true, REPLICATION FACTOR = 2, SIZE = '2', SCHEDULE = MANUAL)",
            )
        ],
    ),
    (
        "SHOW CREATE CLUSTER parts",
        ("name", "create_sql"),
        [("parts", "CREATE CLUSTER \"parts\" (REPLICAS (one (SIZE = '1')))")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "names", "rows"), SHOWN)
def test_columns_and_rows(
    sql: str, names: tuple[str, ...], rows: list[tuple[Datum, ...]], database: Database
) -> None:
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    assert (plan.desc.names, plan.tag) == (names, "SELECT")
    assert database.query(sql) == rows


def test_a_list_may_stand_in_from(database: Database) -> None:
    assert database.query("SELECT count(*) FROM (SHOW TABLES) AS s WHERE s.name LIKE 't%'") == [
        (2,)
    ]
    assert database.query("SELECT c.name FROM (SHOW CLUSTERS) c ORDER BY 1 LIMIT 1") == [("big",)]


def test_system_schemas_can_be_listed(database: Database) -> None:
    names = [name for name, _ in database.query("SHOW TABLES FROM mz_catalog")]
    assert "mz_clusters" in names
    assert [row[0] for row in database.query("SHOW COLUMNS FROM mz_databases")][:3] == [
        "id", "oid", "name",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SHOW TABLES FROM nope", "3F000"),
        ("SHOW COLUMNS FROM nope", "42P01"),
        ("SHOW INDEXES IN CLUSTER nope", "42704"),
        ("SHOW SCHEMAS FROM nope", "3D000"),
        ("SHOW TABLES WHERE nope = 1", "42703"),
        ("SHOW CREATE VIEW t", "42809"),
        ("SHOW CREATE CLUSTER nope", "42704"),
        ("SHOW CREATE ROLE x", "0A000"),
        ("SELECT * FROM (SHOW search_path)", "0A000"),
    ],
)
def test_what_cannot_be_shown(sql: str, code: str, database: Database) -> None:
    with pytest.raises(SqlError) as error:
        database.plan(sql)
    assert error.value.code == code
