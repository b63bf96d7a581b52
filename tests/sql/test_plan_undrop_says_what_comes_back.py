"""Goal: UNDROP brings back what was meant, all that was dropped along with it and can come, and
says what keeps the rest; texts that come back mean what they meant, whatever was renamed since.

Method: statements are planned and their changes made in a catalog in memory.
"""

from collections.abc import Sequence

import pytest

from evertide.catalog.checks import faults_of
from evertide.catalog.dropped_ops import PurgeDroppedOp
from evertide.catalog.grace import grace_ms
from evertide.catalog.objects import Item
from evertide.catalog.transact import transact
from evertide.sql import views
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.vocab.errors import InvalidParameterValue, SqlError
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database


@pytest.fixture
def database() -> Database:
    """v reads t, w reads v and u, m reads v in cluster c, i is on t, j on m."""
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b int); CREATE TABLE u (a int);"
        "CREATE CLUSTER c REPLICAS (r (SIZE '1')); CREATE SCHEMA s;"
        "CREATE VIEW v AS SELECT t.a, b FROM t; CREATE VIEW w AS SELECT v.a FROM v, u;"
        "CREATE MATERIALIZED VIEW m IN CLUSTER c AS SELECT public.v.a FROM public.v WHERE b > 1;"
        "CREATE INDEX i ON t (a); CREATE INDEX j IN CLUSTER c ON m (a)"
    )
    return database


def names(database: Database) -> list[str]:
    return sorted(item.name for item in database.snapshot.items.values())


def dropped(database: Database) -> list[str]:
    return sorted(one.name for one in database.snapshot.dropped_items.values())


def item(database: Database, name: str) -> Item:
    (found,) = [one for one in database.snapshot.items.values() if one.name == name]
    return found


def notices(database: Database, sql: str) -> list[str]:
    plan = database.plan(sql)
    assert isinstance(plan, UndropPlan | NoticePlan)
    return [notice.message for notice in plan.notices]


def order(database: Database, sql: str) -> list[str]:
    plan = database.plan(sql)
    assert isinstance(plan, UndropPlan)
    return [one.name for one in plan.items]


def test_a_drop_is_brought_back_by_what_it_was_about_inputs_first(database: Database) -> None:
    before = {one.item_id: one.create_sql for one in database.snapshot.items.values()}
    database.run("DROP TABLE t CASCADE")
    assert names(database) == ["u"]
    found = order(database, "UNDROP TABLE t")
    assert found[0] == "t"
    assert sorted(found) == ["i", "j", "m", "t", "v", "w"]
    assert found.index("v") < min(found.index("w"), found.index("m"))
    assert found.index("m") < found.index("j")
    database.run("UNDROP TABLE t")
    assert {one.item_id: one.create_sql for one in database.snapshot.items.values()} == before
    assert faults_of(database.snapshot) == []
    assert dropped(database) == []
    assert notices(database, "UNDROP TABLE IF EXISTS t") == [
        'there is no dropped table "t", skipping'
    ]


def test_with_restrict_only_its_indexes_come_with_it(database: Database) -> None:
    database.run("DROP TABLE t CASCADE; UNDROP TABLE t RESTRICT")
    assert names(database) == ["i", "t", "u"]
    database.run("UNDROP VIEW v")
    assert dropped(database) == []


def test_what_needs_more_than_came_waits_for_the_rest(database: Database) -> None:
    database.run("DROP TABLE t, u CASCADE")
    assert notices(database, "UNDROP TABLE u") == [
        'view "w" stays dropped: it depends on view "v", which is dropped, too'
    ]
    database.run("UNDROP TABLE u")
    assert names(database) == ["u"]
    database.run("UNDROP TABLE t")
    assert names(database) == ["i", "j", "m", "t", "u", "v", "w"]


def test_each_drop_is_one_of_its_own(database: Database) -> None:
    database.run("DROP VIEW w; DROP INDEX i; DROP TABLE t CASCADE; UNDROP TABLE t")
    assert names(database) == ["j", "m", "t", "u", "v"]
    database.run("UNDROP INDEX i; UNDROP VIEW w")
    assert dropped(database) == []


def test_the_newest_of_a_name_is_meant_and_any_by_its_id(database: Database) -> None:
    database.run("CREATE TABLE x (a int)")
    first = item(database, "x").item_id
    database.run("DROP TABLE x; CREATE TABLE x (b text)")
    second = item(database, "x").item_id
    database.run("DROP TABLE x; UNDROP TABLE x")
    assert item(database, "x").item_id == second
    database.run(f"UNDROP TABLE ID '{first}' AS y")
    assert item(database, "y").item_id == first
    database.run(f"DROP TABLE x; DROP TABLE y; UNDROP ID '{first}' RENAME TO z")
    assert item(database, "z").create_sql == "CREATE TABLE materialize.public.z (a int)"


def test_what_comes_back_reads_what_it_read_under_any_name(database: Database) -> None:
    database.run("DROP VIEW v CASCADE")
    database.run("ALTER TABLE t RENAME TO t2; ALTER TABLE u RENAME TO u2")
    database.run("CREATE TABLE t (x text); CREATE TABLE v (x text)")
    database.run("UNDROP VIEW v AS v2")
    snapshot = database.snapshot
    assert item(database, "v2").create_sql == (
        "CREATE VIEW materialize.public.v2 AS SELECT t.a, b FROM materialize.public.t2 AS t"
    )
    assert item(database, "m").create_sql == (
        "CREATE MATERIALIZED VIEW materialize.public.m IN CLUSTER c AS"
        " SELECT v.a FROM materialize.public.v2 AS v WHERE b > 1"
    )
    for name in ("v2", "w", "m"):
        relation, _ = views.plan_item(item(database, name), snapshot)
        assert relation is not None
    reads = {snapshot.items[one].name for one in item(database, "w").depends_on}
    assert reads == {"u2", "v2"}
    assert faults_of(snapshot) == []


def test_a_cluster_or_schema_that_is_there_again_will_do(database: Database) -> None:
    database.run("CREATE TABLE s.x (a int); CREATE VIEW s.y AS SELECT a FROM s.x")
    database.run("DROP SCHEMA s CASCADE; DROP CLUSTER c CASCADE")
    refused(database, "UNDROP TABLE s.x", "3F000", 'its schema "materialize.s" was dropped')
    refused(database, "UNDROP MATERIALIZED VIEW m", "42704", 'its cluster "c" was dropped')
    database.run("CREATE SCHEMA s; CREATE CLUSTER c REPLICAS (r (SIZE '1'))")
    database.run("UNDROP TABLE s.x; UNDROP MATERIALIZED VIEW m")
    assert {"x", "y", "m", "j"} <= set(names(database))
    schema = database.snapshot.schemas[item(database, "y").schema_id]
    assert schema.name == "s"
    assert faults_of(database.snapshot) == []


def test_an_index_whose_cluster_is_gone_stays_dropped(database: Database) -> None:
    database.run("CREATE MATERIALIZED VIEW k AS SELECT a FROM t")
    database.run("CREATE INDEX kc IN CLUSTER c ON k (a); DROP MATERIALIZED VIEW k")
    database.run("DROP CLUSTER c CASCADE")
    assert notices(database, "UNDROP MATERIALIZED VIEW k") == [
        'index "kc" stays dropped: its cluster "c" was dropped'
    ]
    database.run("UNDROP MATERIALIZED VIEW k")
    assert "k" in names(database)


def test_a_database_that_is_gone_is_told(database: Database) -> None:
    database.run("CREATE DATABASE d; CREATE TABLE d.public.x (a int); DROP DATABASE d CASCADE")
    refused(database, "UNDROP TABLE d.public.x", "3D000", 'its database "d" was dropped')
    database.run("CREATE DATABASE d; UNDROP TABLE d.public.x")
    assert "x" in names(database)


def refused(database: Database, sql: str, code: str, message: str) -> SqlError:
    with pytest.raises(SqlError) as raised:
        database.plan(sql)
    assert (raised.value.code, message in raised.value.message) == (code, True), raised.value
    return raised.value


REFUSED: Sequence[tuple[str, str, str, str | None]] = [
    (
        "UNDROP VIEW v",
        "55000",
        'cannot undrop view "v": it depends on table "t", which is dropped, too',
        'UNDROP TABLE "t" brings back what was dropped along with it.',
    ),
    (
        "UNDROP VIEW earlier",
        "55000",
        'cannot undrop view "earlier": it depends on table "t", which is dropped, too',
        'Use UNDROP TABLE "t" first.',
    ),
    ("UNDROP VIEW t", "42809", '"t" is not a view', "Use UNDROP TABLE to bring back a table."),
    ("UNDROP TABLE x", "42P01", 'there is no dropped table "x"', None),
    ("UNDROP TABLE s.t", "42P01", 'there is no dropped table "s.t"', None),
    ("UNDROP ID 'u999'", "42P01", "there is no dropped object with id 'u999'", None),
    ("UNDROP TABLE a.b.c.d", "42601", "qualified name did not have between 1 and 3", None),
    (
        "UNDROP TABLE t AS u",
        "42710",
        "cannot undrop table \"t\": catalog item 'u' already exists",
        "Give it another name: UNDROP TABLE ... AS new_name.",
    ),
]


@pytest.mark.parametrize(("sql", "code", "message", "hint"), REFUSED)
def test_it_says_why_not(
    database: Database, sql: str, code: str, message: str, hint: str | None
) -> None:
    database.run("CREATE VIEW earlier AS SELECT a FROM t; DROP VIEW earlier; DROP TABLE t CASCADE")
    error = refused(database, sql, code, message)
    assert hint is None or error.hint == hint


def test_what_reads_something_gone_for_good_says_so(database: Database) -> None:
    database.run("DROP VIEW w; DROP TABLE u")
    gone = next(o for o in database.snapshot.dropped_items.values() if o.name == "u")
    op = PurgeDroppedOp((gone.item_id,))
    result = transact(database.snapshot, [op], now_ms=3_000, user=None)
    upper = Timestamp(database.snapshot.upper + 1)
    database.snapshot = database.snapshot.apply(result.updates, upper)
    refused(database, "UNDROP VIEW w", "55000", 'it depends on "u", which is gone for good')


def test_types_come_back_with_the_tables_that_have_columns_of_them(database: Database) -> None:
    database.run("CREATE TYPE numbers AS LIST (ELEMENT TYPE = int4)")
    database.run("CREATE TABLE x (a numbers); CREATE VIEW y AS SELECT a FROM x")
    database.run("DROP TYPE numbers CASCADE")
    assert {"numbers", "x", "y"} <= set(dropped(database))
    refused(database, "UNDROP TABLE x", "55000", 'it depends on type "numbers"')
    database.run("UNDROP TYPE numbers")
    assert {"numbers", "x", "y"} <= set(names(database))
    assert faults_of(database.snapshot) == []


def test_a_name_that_is_taken_keeps_only_what_has_it(database: Database) -> None:
    database.run("DROP TABLE t CASCADE; CREATE TABLE v (a int)")
    assert sorted(notices(database, "UNDROP TABLE t")) == [
        'index "j" stays dropped: it depends on materialized view "m", which is dropped, too',
        'materialized view "m" stays dropped: it depends on view "v", which is dropped, too',
        "view \"v\" stays dropped: catalog item 'v' already exists",
        'view "w" stays dropped: it depends on view "v", which is dropped, too',
    ]
    database.run("UNDROP TABLE t; UNDROP VIEW v AS v2")
    assert names(database) == ["i", "j", "m", "t", "u", "v", "v2", "w"]


@pytest.mark.parametrize(
    ("value", "kept", "milliseconds"),
    [
        ("'1 day'", "1 d", 86_400_000),
        ("'90 minutes'", "90 min", 5_400_000),
        ("'00:00:01.5'", "1500 ms", 1_500),
        ("0", "0 d", 0),
        ("'0'", "0 d", 0),
        ("'3650 days'", "3650 d", 3_650 * 86_400_000),
    ],
)
def test_the_grace_period_is_an_interval(
    database: Database, value: str, kept: str, milliseconds: int
) -> None:
    database.run(f"ALTER SYSTEM SET drop_grace_period = {value}")
    assert database.snapshot.system_configurations["drop_grace_period"] == kept
    assert grace_ms(database.snapshot) == milliseconds
    database.run("ALTER SYSTEM RESET drop_grace_period")
    assert grace_ms(database.snapshot) == 86_400_000


@pytest.mark.parametrize("value", ["soon", "-1 day", "11 years", ""])
def test_what_is_no_period_is_refused(database: Database, value: str) -> None:
    with pytest.raises(InvalidParameterValue, match="invalid value") as refused:
        database.run(f"ALTER SYSTEM SET drop_grace_period = '{value}'")
    assert refused.value.hint is not None
    assert "at most ten years" in refused.value.hint
