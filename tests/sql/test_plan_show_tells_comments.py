"""Goal: each SHOW list has the comments on what it lists, and only those.

Ids are unique within one kind of object only: the first cluster, schema and item that a user makes
may all be u1. So every object here has a comment of its own, and so has a column of each item.
"""

import pytest

from evertide.catalog.objects import Item, object_key
from evertide.catalog.ops import Op, SetCommentOp
from evertide.catalog.transact import transact
from evertide.vocab.datum import Datum
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b int); CREATE VIEW v AS SELECT a, b FROM t;"
        "CREATE MATERIALIZED VIEW m AS SELECT a, b FROM t; CREATE INDEX i ON t (a);"
        "CREATE TABLE bare (x int); CREATE SCHEMA s; CREATE CLUSTER c (SIZE '1')"
    )
    ops = comments_on_all(database)
    result = transact(database.snapshot, ops, now_ms=3_000, user="materialize")
    after = Timestamp(database.snapshot.upper + 1)
    database.snapshot = database.snapshot.apply(result.updates, after)
    return database


def comments_on_all(database: Database) -> list[Op]:
    snapshot = database.snapshot
    cluster = snapshot.cluster_named("c")
    assert cluster is not None
    items = [item for item in snapshot.items.values() if item.name != "bare"]
    schemas = [schema for schema in snapshot.schemas.values() if schema.name == "s"]
    others = [
        *snapshot.databases.values(),
        *schemas,
        cluster,
        *snapshot.replicas_of(cluster.cluster_id),
        snapshot.role_named("materialize"),
    ]
    ops: list[Op] = []
    for each in (*items, *others):
        assert each is not None
        kind = each.kind.value if isinstance(each, Item) else type(each).__name__
        ops.append(SetCommentOp(target=object_key(each), comment=f"{kind} {each.name}"))
    for item in items:
        ops.append(SetCommentOp(target=object_key(item), column=1, comment=f"{item.name}.a"))
    return ops


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SHOW TABLES", [("bare", ""), ("t", "table t")]),
        ("SHOW TABLES WHERE comment LIKE '%t'", [("t", "table t")]),
        ("SHOW VIEWS", [("v", "view v")]),
        ("SHOW MATERIALIZED VIEWS", [("m", "default", "materialized-view m")]),
        ("SHOW INDEXES", [("i", "t", "default", ("a",), "index i")]),
        (
            "SHOW OBJECTS",
            [
                ("bare", "table", ""),
                ("i", "index", "index i"),
                ("m", "materialized-view", "materialized-view m"),
                ("t", "table", "table t"),
                ("v", "view", "view v"),
            ],
        ),
        ("SHOW COLUMNS FROM v", [("a", True, "integer", "v.a"), ("b", True, "integer", "")]),
        ("SHOW COLUMNS FROM bare", [("x", True, "integer", "")]),
        ("SHOW CLUSTERS LIKE 'c'", [("c", "r1 (1)", None, "Cluster c")]),
        ("SHOW CLUSTER REPLICAS WHERE cluster = 'c'",
         [("c", "r1", "1", False, "ClusterReplica r1")]),
        ("SHOW DATABASES", [("materialize", "Database materialize")]),
        ("SHOW SCHEMAS LIKE 's'", [("s", "Schema s")]),
        ("SHOW SCHEMAS LIKE 'public'", [("public", "")]),
        ("SHOW ROLES", [("materialize", "Role materialize")]),
    ],
)  # fmt: skip
def test_a_list_has_the_comments(
    sql: str, rows: list[tuple[Datum, ...]], database: Database
) -> None:
    assert database.query(sql) == rows
