"""A stored definition means the same in every session, and is planned back from its text."""

import pytest

from evertide.catalog.objects import Index, Item
from evertide.expr.relation import Get, TopK
from evertide.expr.traverse import gets, walk
from evertide.sql.plan.plans import (
    CreateIndexPlan,
    CreateMaterializedViewPlan,
    CreateTablePlan,
    CreateViewPlan,
)
from evertide.sql.views import inline_views, plan_item
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int NOT NULL, b text); CREATE SCHEMA s; CREATE TABLE s.u (c int);"
        "CREATE VIEW v AS SELECT a, b FROM t WHERE a > 0;"
        "CREATE VIEW w AS SELECT v.a, u.c FROM v JOIN s.u ON u.c = v.a;"
        "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (-1, 'z'); INSERT INTO s.u VALUES (2)"
    )
    return database


def item(database: Database, name: str) -> Item:
    return next(item for item in database.snapshot.items.values() if item.name == name)


NORMAL = [
    (
        "CREATE TABLE IF NOT EXISTS x (a int DEFAULT 1 + 1, b varchar(3) NOT NULL)",
        "CREATE TABLE materialize.public.x (a int DEFAULT 1 + 1, b varchar(3) NOT NULL)",
    ),
    (
        "CREATE VIEW x (p) AS WITH t AS (SELECT 1 AS a) SELECT t.a FROM t, s.u",
        "CREATE VIEW materialize.public.x (p) AS WITH t AS (SELECT 1 AS a) SELECT t.a FROM t,"
        " materialize.s.u",
    ),
    (
        "CREATE OR REPLACE VIEW x AS SELECT a FROM t WHERE a IN (SELECT c FROM s.u)",
        "CREATE VIEW materialize.public.x AS SELECT a FROM materialize.public.t WHERE a IN"
        " (SELECT c FROM materialize.s.u)",
    ),
    (
        "CREATE MATERIALIZED VIEW s.x AS SELECT count(*) FROM t UNION ALL SELECT 1 FROM mz_tables",
        None,
    ),
    (
        "CREATE MATERIALIZED VIEW s.x AS SELECT count(*) FROM v GROUP BY a",
        'CREATE MATERIALIZED VIEW materialize.s.x IN CLUSTER "default" AS SELECT count(*) FROM'
        " materialize.public.v GROUP BY a",
    ),
    (
        "CREATE INDEX ON t (b)",
        'CREATE INDEX t_b_idx IN CLUSTER "default" ON materialize.public.t (b)',
    ),
    (
        "CREATE DEFAULT INDEX ON w",
        'CREATE INDEX w_primary_idx IN CLUSTER "default" ON materialize.public.w (a, c)',
    ),
    (
        "CREATE INDEX ON t (lower(public.t.b), t.a % 3, b, (a + 1))",
        'CREATE INDEX t_lower_expr_b_expr_idx IN CLUSTER "default" ON materialize.public.t'
        " (lower(b), a % 3, b, a + 1)",
    ),
    (
        "CREATE INDEX IF NOT EXISTS named ON s.u (c)",
        'CREATE INDEX named IN CLUSTER "default" ON materialize.s.u (c)',
    ),
]


@pytest.mark.parametrize(("sql", "stored"), NORMAL)
def test_names_are_qualified_and_clauses_written_out(
    sql: str, stored: str | None, database: Database
) -> None:
    if stored is None:
        with pytest.raises(SqlError) as error:
            database.plan(sql)
        assert error.value.code == "0A000"
        return
    plan = database.plan(sql)
    assert isinstance(
        plan, CreateTablePlan | CreateViewPlan | CreateMaterializedViewPlan | CreateIndexPlan
    )
    assert plan.create_sql == stored


def test_dependencies_are_the_direct_ones(database: Database) -> None:
    assert item(database, "w").depends_on == (
        item(database, "v").item_id,
        item(database, "u").item_id,
    )
    plan = database.plan("CREATE VIEW x AS SELECT t.a FROM mz_tables, t, t AS again")
    assert isinstance(plan, CreateViewPlan | CreateMaterializedViewPlan)
    first, second = plan.depends_on
    assert first.startswith("s")
    assert second == item(database, "t").item_id


def test_names_of_indexes_are_made_unique(database: Database) -> None:
    for name in ("t_a_b_idx", "t_a_b_idx1", "t_a_b_idx2"):
        plan = database.plan("CREATE INDEX ON t (a, b)")
        assert isinstance(plan, CreateIndexPlan)
        assert plan.name.name == name
        assert [key.position for key in plan.keys] == [0, 1]
        database.run("CREATE INDEX ON t (a, b)")


def test_views_are_put_in_their_place(database: Database) -> None:
    view, table, other = (item(database, name) for name in ("v", "t", "u"))
    relation = Get(item(database, "w").global_id, item(database, "w").desc.types)
    assert gets(inline_views(relation, database.snapshot, ())) == [table.global_id, other.global_id]
    kept = inline_views(relation, database.snapshot, {view.global_id})
    assert gets(kept) == [view.global_id, other.global_id]
    assert inline_views(relation, database.snapshot, {relation.global_id}) == relation


def test_stored_items_are_planned_from_their_text_alone(database: Database) -> None:
    database.run("CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM v GROUP BY b")
    database.run("CREATE INDEX i ON w (c)")
    database.search_path = ("nowhere",)
    relation, desc = plan_item(item(database, "m"), database.snapshot)
    assert gets(relation) == [item(database, "t").global_id]
    assert desc == item(database, "m").desc
    assert (desc.names, desc.columns[1].nullable) == (("b", "n"), False)
    indexed, desc = plan_item(item(database, "i"), database.snapshot)
    assert desc == item(database, "w").desc
    assert len(gets(indexed)) == 2
    assert plan_item(item(database, "m"), database.snapshot)[0] == relation


def test_an_index_holds_the_values_of_its_expressions(database: Database) -> None:
    database.run("CREATE INDEX i ON t (upper(t.b), a, -t.a); ALTER TABLE t RENAME TO renamed")
    index = item(database, "i")
    assert isinstance(index.definition, Index)
    assert [(k.position, k.expression) for k in index.definition.keys] == [
        (None, "upper(b)"),
        (0, None),
        (None, "-a"),
    ]
    assert [(c.name, c.nullable) for c in index.desc.columns] == [
        ("upper", True),
        ("a", False),
        ("expr", True),
    ]
    held, shown = plan_item(index, database.snapshot)
    assert shown == item(database, "renamed").desc
    assert index.definition.key_places(shown.arity) == (2, 0, 3)
    rows = database.rows_of(held)
    assert sorted(rows) == [(-1, "z", "Z", 1), (1, "x", "X", -1), (2, "y", "Y", -2)]


def test_a_constant_that_names_a_relation_must_name_it_in_full(database: Database) -> None:
    database.run("CREATE VIEW r AS SELECT 'materialize.public.t'::regclass::oid AS oid")
    assert database.query("SELECT oid FROM r") == [(item(database, "t").oid,)]
    assert database.query("SELECT 't'::regclass::oid") == [(item(database, "t").oid,)]


def test_a_query_through_views_gives_their_rows(database: Database) -> None:
    assert database.query("SELECT * FROM w") == [(2, 2)]
    assert database.query("SELECT count(*) FROM v") == [(2,)]


def test_order_in_a_view_counts_only_with_a_limit(database: Database) -> None:
    database.run("CREATE VIEW top AS SELECT a FROM t ORDER BY b DESC LIMIT 1")
    database.run("CREATE VIEW sorted AS SELECT a FROM t ORDER BY b DESC")
    relation, _ = plan_item(item(database, "top"), database.snapshot)
    assert any(isinstance(node, TopK) for node in walk(relation))
    relation, _ = plan_item(item(database, "sorted"), database.snapshot)
    assert not any(isinstance(node, TopK) for node in walk(relation))
    assert database.query("SELECT * FROM top") == [(-1,)]


def test_columns_know_whether_they_can_be_null(database: Database) -> None:
    plan = database.plan(
        "CREATE VIEW n AS SELECT t.a, t.b, u.a AS o, coalesce(t.b, '') AS c, count(*) AS n,"
        " max(t.a) AS m, 1 AS one, t.a IS NULL AS p FROM t LEFT JOIN t u ON t.a = u.a"
        " GROUP BY t.a, t.b, u.a"
    )
    assert isinstance(plan, CreateViewPlan)
    nullable = {column.name: column.nullable for column in plan.desc.columns}
    assert nullable == {
        "a": False, "b": True, "o": True, "c": False, "n": False, "m": True, "one": False,
        "p": False,
    }  # fmt: skip


def test_or_replace_names_what_goes(database: Database) -> None:
    plan = database.plan("CREATE OR REPLACE VIEW fresh AS SELECT 1")
    assert isinstance(plan, CreateViewPlan)
    assert plan.replaces is None
    database.run("CREATE VIEW old AS SELECT 1 AS a; CREATE INDEX ON old (a)")
    plan = database.plan("CREATE OR REPLACE VIEW old AS SELECT 2")
    assert isinstance(plan, CreateViewPlan)
    assert plan.replaces == item(database, "old").item_id
    for sql, code in (
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "2BP01"),
        ("CREATE OR REPLACE VIEW t AS SELECT 1", "42809"),
        ("CREATE OR REPLACE VIEW w AS SELECT * FROM w", "2BP01"),
    ):
        with pytest.raises(SqlError) as error:
            database.plan(sql)
        assert error.value.code == code


def test_a_table_keeps_defaults_as_text(database: Database) -> None:
    plan = database.plan(
        "CREATE TABLE x (a int DEFAULT 1 + 1, b text, c date DEFAULT '2024-01-01')"
    )
    assert isinstance(plan, CreateTablePlan)
    assert plan.defaults == ("1 + 1", None, "'2024-01-01'")
    database.run("CREATE TABLE x (a int DEFAULT 1 + 1, b text DEFAULT current_user, c int)")
    database.run("INSERT INTO x (c) VALUES (1); INSERT INTO x DEFAULT VALUES")
    assert database.query("SELECT * FROM x ORDER BY c") == [
        (2, "materialize", 1), (2, "materialize", None),
    ]  # fmt: skip


def test_renaming_prints_the_definition_again(database: Database) -> None:
    database.run("CREATE VIEW lone AS SELECT 1 AS a; ALTER VIEW lone RENAME TO other")
    expected = "CREATE VIEW materialize.public.other AS SELECT 1 AS a"
    assert item(database, "other").create_sql == expected
    assert database.query("SELECT * FROM other") == [(1,)]
