"""Goal: only what can take a view's place is staged for it, and says why otherwise.

Method: statements are planned and their changes made in a catalog in memory.
"""

from collections.abc import Sequence

import pytest

from evertide.catalog.objects import Item, MaterializedView
from evertide.catalog.replacement_ops import FinishHandoverOp
from evertide.catalog.transact import transact
from evertide.sql import views
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.plan.replacements.plans import ApplyReplacementPlan
from evertide.sql.plan.replacements.schema import differences
from evertide.vocab.errors import SqlError
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import BOOL, INT4, TEXT
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b int); CREATE CLUSTER c REPLICAS (r (SIZE '1'));"
        "CREATE MATERIALIZED VIEW mv AS SELECT a, b FROM t;"
        "CREATE MATERIALIZED VIEW above AS SELECT * FROM mv; CREATE VIEW v AS SELECT * FROM above"
    )
    return database


def item(database: Database, name: str) -> Item:
    (found,) = [one for one in database.snapshot.items.values() if one.name == name]
    return found


def finish_handover(database: Database, name: str) -> None:
    """What the replicas would bring about: the new version has the shard."""
    found = item(database, name)
    op = FinishHandoverOp(item_id=found.item_id, global_id=found.global_id)
    result = transact(database.snapshot, [op], now_ms=3_000, user=None)
    upper = Timestamp(database.snapshot.upper + 1)
    database.snapshot = database.snapshot.apply(result.updates, upper)


STAGED = "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a, b FROM t WHERE a > 1"
REFUSED: Sequence[tuple[str, str, str]] = [
    (
        "CREATE MATERIALIZED VIEW x REPLACING t AS SELECT a, b FROM t",
        "42809",
        "cannot replace table t with materialized view x",
    ),
    (
        "CREATE MATERIALIZED VIEW x REPLACING missing AS SELECT a, b FROM t",
        "42P01",
        "unknown catalog item 'missing'",
    ),
    (
        "CREATE MATERIALIZED VIEW x REPLACING mz_tables AS SELECT a, b FROM t",
        "0A000",
        "system item 'mz_catalog.mz_tables' cannot be modified",
    ),
    (
        "CREATE MATERIALIZED VIEW x REPLACING mv AS SELECT a, b FROM mv",
        "0A000",
        "replacement would cause mv to depend on itself",
    ),
    (
        "CREATE MATERIALIZED VIEW x REPLACING mv AS SELECT a, b FROM v",
        "0A000",
        "replacement would cause mv to depend on itself",
    ),
    (
        "CREATE MATERIALIZED VIEW x REPLACING mv AS SELECT a, b FROM t",
        "55000",
        "cannot replace mv because it already has a replacement: r",
    ),
    (
        "CREATE MATERIALIZED VIEW x REPLACING r AS SELECT a, b FROM t",
        "42809",
        "cannot replace r because it is a replacement itself",
    ),
    (
        "CREATE MATERIALIZED VIEW r REPLACING above AS SELECT a, b FROM t",
        "42P07",
        'materialized view "materialize.public.r" already exists',
    ),
    (
        "CREATE MATERIALIZED VIEW x REPLACING above WITH (RETAIN HISTORY FOR '1h') AS TABLE t",
        "0A000",
        "RETAIN HISTORY is not supported for replacements: they keep their target's",
    ),
    (
        "CREATE MATERIALIZED VIEW x WITH (APPLY WHEN HYDRATED) AS TABLE t",
        "0A000",
        "APPLY WHEN HYDRATED is for replacements only",
    ),
    (
        "CREATE OR REPLACE MATERIALIZED VIEW r AS SELECT a, b FROM t",
        "55000",
        "cannot replace r because it is a replacement itself",
    ),
    (
        "CREATE VIEW x AS SELECT * FROM r",
        "0A000",
        "replacement materialized view r cannot be depended upon",
    ),
    (
        "CREATE MATERIALIZED VIEW x AS SELECT * FROM t WHERE a IN (SELECT a FROM r)",
        "0A000",
        "replacement materialized view r cannot be depended upon",
    ),
    (
        "CREATE DEFAULT INDEX ON r",
        "0A000",
        "index cannot be created on materialize.public.r because it is a replacement materialized"
        " view",
    ),
    (
        "ALTER MATERIALIZED VIEW r SET (RETAIN HISTORY FOR '1h')",
        "0A000",
        "replacement materialized view r keeps the history of its target",
    ),
    (
        "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT t",
        "42809",
        "t is a table not a materialized view",
    ),
    (
        "ALTER MATERIALIZED VIEW above APPLY REPLACEMENT r",
        "42809",
        "cannot replace materialized view above with materialized view r",
    ),
    (
        "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT above",
        "42809",
        "cannot replace materialized view mv with materialized view above",
    ),
    (
        "ALTER MATERIALIZED VIEW t APPLY REPLACEMENT r",
        "42809",
        "t is a table not a materialized view",
    ),
    (
        "ALTER MATERIALIZED VIEW mv RESTORE VERSION 1",
        "55000",
        'version 1 is the current one of materialized view "mv"',
    ),
    (
        "ALTER MATERIALIZED VIEW mv RESTORE VERSION 2",
        "42704",
        'materialized view "mv" has no version 2',
    ),
    (
        "EXPLAIN REPLACEMENT mv",
        "42809",
        "materialized view mv is not a replacement materialized view",
    ),
    ("SHOW REPLACEMENT CHANGES FOR t", "42809", "table t is not a replacement materialized view"),
    (
        "DROP MATERIALIZED VIEW mv",
        "2BP01",
        'cannot drop materialized view "mv": still depended upon by materialized view "above"',
    ),
    (
        "CREATE OR REPLACE MATERIALIZED VIEW mv AS SELECT a, b FROM t",
        "2BP01",
        'cannot drop materialized view "mv": still depended upon by materialized view "above"',
    ),
]


@pytest.mark.parametrize(("sql", "code", "message"), REFUSED)
def test_what_does_not_fit_is_refused(
    sql: str, code: str, message: str, database: Database
) -> None:
    database.run(STAGED)
    with pytest.raises(SqlError) as raised:
        database.plan(sql)
    assert (raised.value.code, raised.value.message) == (code, message)


def desc(*columns: ColumnDesc) -> RelationDesc:
    return RelationDesc(columns)


TARGET = desc(ColumnDesc("a", INT4), ColumnDesc("b", TEXT, nullable=False))
DIFFERENT = [
    (TARGET, []),
    (desc(*TARGET.columns, ColumnDesc("c", BOOL), ColumnDesc("d", INT4)), []),
    (desc(*TARGET.columns, ColumnDesc("c", BOOL, False)), ['extra column "c" at position 3']),
    (desc(TARGET.columns[0]), ['missing column "b" at position 2']),
    (desc(), ['missing column "a" at position 1', 'missing column "b" at position 2']),
    (
        desc(TARGET.columns[1], TARGET.columns[0]),
        [
            'column at position 1: name mismatch (target: "a", replacement: "b")',
            'column at position 2: name mismatch (target: "b", replacement: "a")',
        ],
    ),
    (
        desc(ColumnDesc("a", TEXT), ColumnDesc("b", TEXT)),
        [
            'column "a" at position 1: type mismatch (target: integer, replacement: text)',
            'column "b" at position 2: nullability mismatch (target: NOT NULL, replacement: NULL)',
        ],
    ),
    (
        desc(ColumnDesc("a", INT4, False), TARGET.columns[1]),
        ['column "a" at position 1: nullability mismatch (target: NULL, replacement: NOT NULL)'],
    ),
]


@pytest.mark.parametrize(("replacement", "expected"), DIFFERENT)
def test_every_difference_is_told(replacement: RelationDesc, expected: list[str]) -> None:
    assert list(differences(TARGET, replacement)) == expected


def test_differences_are_the_detail(database: Database) -> None:
    with pytest.raises(SqlError) as raised:
        database.plan(
            "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT b AS x, 1 AS y, 2 AS z FROM t"
        )
    assert raised.value.code == "0A000"
    assert raised.value.message == "replacement schema differs from target schema"
    assert raised.value.detail is not None
    assert len(raised.value.detail.split("\n")) == 3


def test_the_stored_text_names_the_target_in_full(database: Database) -> None:
    database.run("CREATE REPLACEMENT MATERIALIZED VIEW r (a, b) FOR mv IN CLUSTER c AS TABLE t")
    assert item(database, "r").create_sql == (
        "CREATE MATERIALIZED VIEW materialize.public.r (a, b) REPLACING materialize.public.mv"
        " IN CLUSTER c AS SELECT * FROM materialize.public.t"
    )


def test_whether_it_applies_itself_is_not_in_the_text(database: Database) -> None:
    database.run("CREATE MATERIALIZED VIEW r REPLACING mv WITH (APPLY WHEN HYDRATED) AS TABLE t")
    found = item(database, "r")
    assert "HYDRATED" not in found.create_sql
    assert found.replacement is not None
    assert found.replacement.apply_when_ready


def test_when_ready_is_noted_for_later(database: Database) -> None:
    database.run(STAGED)
    database.run("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (FORWARD TIME) WHEN READY")
    replacement = item(database, "r").replacement
    assert replacement is not None
    assert (replacement.apply_when_ready, replacement.forward_time) == (True, True)


def test_an_existing_one_is_skipped_if_that_is_said(database: Database) -> None:
    database.run(STAGED)
    database.plan(STAGED.replace("VIEW r", "VIEW IF NOT EXISTS r"))
    with pytest.raises(SqlError, match="already has a replacement: r"):
        database.plan(STAGED.replace("VIEW r", "VIEW IF NOT EXISTS other"))


def test_a_missing_target_is_a_notice_if_that_is_said(database: Database) -> None:
    for rest in ("APPLY REPLACEMENT r", "RESTORE VERSION 1"):
        plan = database.plan(f"ALTER MATERIALIZED VIEW IF EXISTS missing {rest}")
        assert isinstance(plan, NoticePlan)
        assert plan.notices[0].message == "unknown catalog item 'missing', skipping"


def test_an_applied_definition_is_the_targets_own(database: Database) -> None:
    database.run(
        "ALTER MATERIALIZED VIEW mv SET (RETAIN HISTORY FOR '1h');"
        "CREATE MATERIALIZED VIEW r (a, b) REPLACING mv IN CLUSTER c AS TABLE t"
    )
    before = item(database, "mv")
    plan = database.plan("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (FORWARD TIME)")
    assert isinstance(plan, ApplyReplacementPlan)
    assert plan.forward_time
    database.run("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    after = item(database, "mv")
    assert after.create_sql == (
        "CREATE MATERIALIZED VIEW materialize.public.mv (a, b) IN CLUSTER c"
        " WITH (RETAIN HISTORY FOR '1h') AS SELECT * FROM materialize.public.t"
    )
    assert (after.item_id, after.owner, after.history_ms) == (before.item_id, before.owner, 3600000)
    assert not [one for one in database.snapshot.items.values() if one.name == "r"]


def test_stars_of_dependants_keep_their_columns(database: Database) -> None:
    database.run("CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a, b, a + b AS c FROM t")
    database.run("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    finish_handover(database, "mv")
    database.run("CREATE VIEW later AS SELECT * FROM mv")
    assert item(database, "above").desc.names == ("a", "b")
    assert item(database, "later").desc.names == ("a", "b", "c")


def test_a_renamed_target_is_renamed_in_its_replacement(database: Database) -> None:
    database.run("DROP VIEW v; DROP MATERIALIZED VIEW above")
    database.run(STAGED)
    database.run("ALTER MATERIALIZED VIEW mv RENAME TO mv2")
    assert " REPLACING materialize.public.mv2 " in item(database, "r").create_sql
    database.run("ALTER MATERIALIZED VIEW r RENAME TO r2")
    database.run("ALTER MATERIALIZED VIEW mv2 APPLY REPLACEMENT r2")
    assert item(database, "mv2").create_sql.startswith(
        "CREATE MATERIALIZED VIEW materialize.public.mv2 IN CLUSTER"
    )


def test_changes_are_rows_with_their_count(database: Database) -> None:
    database.run("CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a, b, b AS c FROM t")
    database.run("INSERT INTO t VALUES (1, NULL), (2, 20), (2, 20)")
    database.rows[item(database, "mv").item_id] = [(1, None), (3, 30), (2, 20)]
    changes = [(-1, 2, 20, None), (2, 2, 20, 20), (-1, 3, 30, None)]
    assert sorted(database.query("SHOW REPLACEMENT CHANGES FOR r"), key=str) == sorted(
        changes, key=str
    )
    assert len(database.query("SHOW REPLACEMENT CHANGES FOR r LIMIT 2")) == 2
    assert database.query("SHOW REPLACEMENT CHANGES FOR r LIMIT 0") == []
    plan = database.planned("SHOW REPLACEMENT CHANGES FOR r")
    assert set(plan.reads) == {item(database, name).item_id for name in ("mv", "r")}


def test_a_column_may_be_called_like_the_count(database: Database) -> None:
    database.run(
        "CREATE MATERIALIZED VIEW odd AS SELECT a AS mz_diff, b AS d FROM t;"
        "CREATE MATERIALIZED VIEW r REPLACING odd AS SELECT a + 1 AS mz_diff, b AS d FROM t;"
        "INSERT INTO t VALUES (1, 2)"
    )
    assert database.query("SHOW REPLACEMENT CHANGES FOR r") == [(1, 2, 2)]


def applied(database: Database, sql: str) -> None:
    database.run(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {sql}")
    database.run("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    finish_handover(database, "mv")


def test_an_earlier_version_is_staged_again(database: Database) -> None:
    applied(database, "SELECT a, b FROM t WHERE a > 1")
    database.run("ALTER MATERIALIZED VIEW mv RESTORE VERSION 1")
    staged = item(database, "mv_version_1")
    assert staged.create_sql == (
        "CREATE MATERIALIZED VIEW materialize.public.mv_version_1 REPLACING materialize.public.mv"
        ' IN CLUSTER "default" AS SELECT a, b FROM materialize.public.t'
    )
    database.run("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_version_1")
    assert len(item(database, "mv").versions) == 3


def test_columns_that_came_later_stay(database: Database) -> None:
    applied(database, "SELECT a, b, a::text AS c, a > b AS d FROM t")
    database.run("ALTER MATERIALIZED VIEW mv RESTORE VERSION 1")
    database.run("INSERT INTO t VALUES (1, 2)")
    assert database.query("SELECT * FROM mv_version_1") == [(1, 2, None, None)]


def test_an_earlier_version_means_what_it_meant(database: Database) -> None:
    """Renamed inputs are found, a star has the columns of then, and a cluster may be gone."""
    database.run("CREATE MATERIALIZED VIEW base AS SELECT a, b FROM t")
    database.run(
        "CREATE MATERIALIZED VIEW top IN CLUSTER c AS"
        " SELECT * FROM base WHERE EXISTS (SELECT 1 FROM t WHERE t.a = base.a)"
    )
    database.run("CREATE MATERIALIZED VIEW w REPLACING base AS SELECT a, b, 1 + a AS c FROM t")
    database.run("ALTER MATERIALIZED VIEW base APPLY REPLACEMENT w")
    finish_handover(database, "base")
    database.run("CREATE TABLE other (a int, b int)")
    database.run('CREATE MATERIALIZED VIEW w REPLACING top IN CLUSTER "default" AS TABLE other')
    database.run("ALTER MATERIALIZED VIEW top APPLY REPLACEMENT w")
    finish_handover(database, "top")
    database.run("ALTER MATERIALIZED VIEW base RENAME TO ground; DROP CLUSTER c")
    database.run("ALTER MATERIALIZED VIEW top RESTORE VERSION 1")
    staged = item(database, "top_version_1")
    assert staged.desc.names == ("a", "b")
    assert "FROM materialize.public.ground AS base" in staged.create_sql
    assert 'IN CLUSTER "default"' in staged.create_sql
    database.run("INSERT INTO t VALUES (1, 10)")
    database.rows[item(database, "ground").item_id] = [(1, 10, 2), (2, 20, 3)]
    assert [row[:2] for row in database.query("SELECT * FROM top_version_1")] == [(1, 10)]


def in_schemas(database: Database, query: str) -> None:
    """A view `top` of this query over sa.t and sb.t, which is handing over to another."""
    database.run(
        "CREATE SCHEMA sa; CREATE SCHEMA sb; CREATE TABLE sa.t (a int); CREATE TABLE sb.t (a int);"
        f"CREATE MATERIALIZED VIEW top AS {query};"
        "CREATE MATERIALIZED VIEW w REPLACING top AS SELECT a FROM t"
    )
    database.run("ALTER MATERIALIZED VIEW top APPLY REPLACEMENT w")


QUALIFIED = [
    "SELECT sa.t.a FROM sa.t WHERE materialize.sa.t.a > 0",
    "SELECT sa.t.* FROM sa.t, sb.t WHERE sa.t.a = sb.t.a + 1",
    "SELECT x.a FROM sa.t AS x WHERE EXISTS (SELECT 1 FROM sb.t WHERE sb.t.a < x.a)",
]


@pytest.mark.parametrize("query", QUALIFIED)
def test_the_old_definition_goes_on_under_the_names_of_then(query: str, database: Database) -> None:
    in_schemas(database, query)
    before = item(database, "top").outgoing
    assert before is not None
    planned = views.planned_definition(before, database.snapshot)
    database.run("ALTER SCHEMA sa SWAP WITH sb")
    views._known.clear()  # a process that starts has planned nothing yet
    before = item(database, "top").outgoing
    assert before is not None
    assert views.planned_definition(before, database.snapshot) == planned


@pytest.mark.parametrize("query", QUALIFIED)
def test_a_restored_definition_names_columns_as_relations_are_called_now(
    query: str, database: Database
) -> None:
    in_schemas(database, query)
    finish_handover(database, "top")
    database.run("INSERT INTO sa.t VALUES (2); INSERT INTO sb.t VALUES (1)")
    database.run("ALTER SCHEMA sa SWAP WITH sb")
    database.run("ALTER MATERIALIZED VIEW top RESTORE VERSION 1")
    assert database.query("SELECT a FROM top_version_1") == [(2,)]


@pytest.mark.parametrize("query", [QUALIFIED[0], QUALIFIED[2]])
def test_a_restored_definition_finds_the_columns_of_what_was_renamed(
    query: str, database: Database
) -> None:
    in_schemas(database, query)
    finish_handover(database, "top")
    database.run("INSERT INTO sa.t VALUES (2); INSERT INTO sb.t VALUES (1)")
    database.run("ALTER TABLE sa.t RENAME TO t8; ALTER TABLE sb.t RENAME TO t9")
    database.run("ALTER MATERIALIZED VIEW top RESTORE VERSION 1")
    assert database.query("SELECT a FROM top_version_1") == [(2,)]


@pytest.mark.parametrize("sql", ["DROP CLUSTER c CASCADE", "DROP OWNED BY joe CASCADE"])
def test_a_view_does_not_go_with_the_cluster_that_it_leaves(sql: str, database: Database) -> None:
    database.run(
        "CREATE ROLE joe; ALTER CLUSTER c OWNER TO joe;"
        "CREATE MATERIALIZED VIEW top IN CLUSTER c AS TABLE t;"
        'CREATE MATERIALIZED VIEW w REPLACING top IN CLUSTER "default" AS TABLE t'
    )
    database.run("ALTER MATERIALIZED VIEW top APPLY REPLACEMENT w")
    with pytest.raises(SqlError) as raised:
        database.plan(sql)
    assert (raised.value.code, raised.value.detail) == (
        "55000",
        'materialized view "top" is still being handed over to its last replacement',
    )
    finish_handover(database, "top")
    database.run(sql)
    assert item(database, "top").cluster_id in database.snapshot.clusters


def test_another_of_the_name_is_not_what_it_read(database: Database) -> None:
    database.run("CREATE TABLE gone (a int, b int); CREATE TABLE other (a int, b int)")
    database.run("CREATE MATERIALIZED VIEW top AS SELECT a, b FROM gone")
    database.run("CREATE MATERIALIZED VIEW w REPLACING top AS TABLE other")
    database.run("ALTER MATERIALIZED VIEW top APPLY REPLACEMENT w")
    finish_handover(database, "top")
    database.run("DROP TABLE gone; CREATE TABLE gone (a int, b int)")
    with pytest.raises(SqlError) as raised:
        database.plan("ALTER MATERIALIZED VIEW top RESTORE VERSION 1")
    assert (raised.value.code, raised.value.message) == (
        "42P01",
        'version 1 of materialized view "top" reads materialize.public.gone, which was dropped',
    )


def test_discarding_leaves_the_target_as_it_was(database: Database) -> None:
    before = item(database, "mv")
    database.run(STAGED)
    database.run("DROP MATERIALIZED VIEW r")
    assert item(database, "mv") == before
    assert isinstance(before.definition, MaterializedView)
    database.run(STAGED)
