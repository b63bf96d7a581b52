"""Goal: a type that a user names means the list, map or record it stands for, wherever a type may
stand, and stays what it is however it, or its schema, is called later.

Method: statements over a catalog in memory.
"""

from decimal import Decimal

import pytest

from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE SCHEMA s; CREATE TYPE s.numbers AS LIST (ELEMENT TYPE = int4);"
        "CREATE TYPE pair AS (a int, b s.numbers);"
        "CREATE TYPE prices AS MAP (VALUE TYPE numeric(10, 2), KEY TYPE = text)"
    )
    return database


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'{1,2}'::s.numbers::text", "{1,2}"),
        ("LIST[1, 2]::s.numbers::text", "{1,2}"),
        ("NULL::s.numbers::text", None),
        ("'{x=>1.25}'::prices", (("x", Decimal("1.25")),)),
        ("ROW('7', LIST[3])::pair::text", "(7,{3})"),
        ("(ROW('7', LIST[3])::pair).b::text", "{3}"),
        ("(ROW(1, NULL)::pair).a + 1", 2),
        ("(NULL::pair).a", None),
        ("CAST('{4}' AS materialize.s.numbers)::text", "{4}"),
    ],
)
def test_casts_give_values_of_the_type(
    expression: str, expected: object, database: Database
) -> None:
    assert database.query(f"SELECT {expression}") == [(expected,)]


def test_columns_have_the_type_and_depend_on_it(database: Database) -> None:
    database.run(
        "CREATE TABLE t (a s.numbers); INSERT INTO t VALUES ('{1,2}');"
        "CREATE VIEW v AS SELECT a::text FROM t WHERE a <> '{}'::s.numbers;"
        "CREATE VIEW m AS SELECT NULL::map[text => s.numbers] AS x"
    )
    assert database.query("SELECT t.a[2], v.a FROM t, v") == [(2, "{1,2}")]
    for sql in ("DROP TYPE s.numbers", "DROP SCHEMA s"):
        with pytest.raises(SqlError) as raised:
            database.plan(sql)
        assert raised.value.code == "2BP01"
    database.run("DROP TYPE s.numbers CASCADE")
    assert [item.name for item in database.snapshot.items.values()] == ["prices"]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TYPE s.numbers RENAME TO counts",
        "ALTER SCHEMA s RENAME TO r",
        "CREATE SCHEMA r; ALTER SCHEMA s SWAP WITH r",
    ],
)
def test_texts_follow_a_type_to_its_new_name(change: str, database: Database) -> None:
    database.search_path = ("s", "public")
    database.run(
        "CREATE TABLE public.t (a numbers); INSERT INTO t VALUES ('{1}');"
        "CREATE VIEW public.v AS SELECT CAST(a AS numbers)::text FROM t;"
        "CREATE VIEW public.w AS WITH MUTUALLY RECURSIVE r (x numbers) AS (SELECT a FROM t)"
        " SELECT x::text FROM r;"
        "CREATE TYPE public.outer_type AS LIST (ELEMENT TYPE = numbers)"
    )
    database.search_path = ("public",)
    database.run(change)
    assert database.query("SELECT * FROM v") == [("{1}",)]
    assert database.query("SELECT * FROM w") == [("{1}",)]
    assert database.query("SELECT '{{1}}'::outer_type") == [(((1,),),)]
    names = {"t", "v", "w", "outer_type", "pair"}
    for item in database.snapshot.items.values():
        assert "materialize.s.numbers" not in item.create_sql
        assert item.name not in names or "numbers" in item.create_sql or "counts" in item.create_sql


def test_lists_tell_what_a_type_is_made_of(database: Database) -> None:
    listed = database.query(
        "SELECT t.name, t.category, t.create_sql FROM mz_types t WHERE t.id LIKE 'u%' ORDER BY 1"
    )
    assert listed == [
        ("numbers", "list", "CREATE TYPE materialize.s.numbers AS LIST (ELEMENT TYPE = int4)"),
        (
            "pair",
            "composite",
            "CREATE TYPE materialize.public.pair AS (a int, b materialize.s.numbers)",
        ),
        (
            "prices",
            "map",
            "CREATE TYPE materialize.public.prices AS"
            " MAP (KEY TYPE = text, VALUE TYPE = numeric(10, 2))",
        ),
    ]
    assert database.query(
        "SELECT t.name, e.name FROM mz_list_types l JOIN mz_types t ON t.id = l.id"
        " JOIN mz_types e ON e.id = l.element_id"
    ) == [("numbers", "int4")]
    assert database.query("SELECT value_modifiers::text FROM mz_map_types") == [("{10,2}",)]
    assert database.query("SHOW TYPES") == [("pair", ""), ("prices", "")]
    kinds = "SELECT typname, typtype FROM pg_type WHERE oid >= 20000 ORDER BY 1"
    assert database.query(kinds) == [("numbers", "b"), ("pair", "c"), ("prices", "b")]
    columns = "SELECT count(*) FROM mz_columns WHERE id LIKE 'u%'"
    assert database.query(columns) == [(0,)]


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("CREATE TYPE pair AS (a int)", "42P07", 'type "materialize.public.pair" already exists'),
        ("CREATE TABLE pair (a int)", "42P07", 'type "materialize.public.pair" already exists'),
        ("CREATE TYPE t AS (a int)", "42P07", 'table "materialize.public.t" already exists'),
        ("CREATE TYPE x AS (a nope)", "42704", 'type "nope" does not exist'),
        ("CREATE TYPE x AS (a t)", "42704", 'type "t" does not exist'),
        ("CREATE TYPE x AS (a int, a text)", "42701", 'column "a" specified more than once'),
        (
            "CREATE TYPE x AS MAP (KEY TYPE = int4, VALUE TYPE = int4)",
            "0A000",
            "maps whose keys are of type integer are not supported",
        ),
        ("SELECT * FROM pair", "42P01", "unknown catalog item 'pair'"),
        ("SELECT NULL::pair(3)", "42601", 'type modifier is not allowed for type "pair"'),
        ("SELECT ROW(1)::pair", "42846", "cannot cast type record(f1: integer) to pair"),
        ("SELECT (NULL::pair).c", "42703", "field c not found in data type pair"),
        ("CREATE TABLE x (a pair)", "0A000", 'column "a" has type pair, which cannot be stored'),
        (
            "CREATE TABLE x (a int DEFAULT (NULL::pair).a)",
            "0A000",
            "user-defined types in DEFAULT expressions are not supported",
        ),
        ("DROP TABLE pair", "42809", "pair is a type not a table"),
        ("ALTER TABLE t RENAME TO pair", "42P07", "catalog item 'pair' already exists"),
        ("ALTER TYPE pair RENAME TO t", "42P07", "catalog item 't' already exists"),
        ("CREATE CONNECTION c TO KAFKA (x)", "0A000", "CREATE CONNECTION is not supported"),
        (
            "CREATE NETWORK POLICY p (RULES ())",
            "0A000",
            "CREATE NETWORK POLICY is not supported",
        ),
    ],
)
def test_what_cannot_be_is_told(sql: str, code: str, message: str, database: Database) -> None:
    database.run("CREATE TABLE t (a int)")
    with pytest.raises(SqlError) as raised:
        database.plan(sql)
    assert (raised.value.code, raised.value.message) == (code, message)


def test_a_users_type_hides_none_of_the_systems(database: Database) -> None:
    database.run("CREATE TYPE int4 AS (a text); CREATE TYPE public.text AS (a text)")
    assert database.query("SELECT 1::int4, 'x'::text") == [(1, "x")]
    assert database.query("SELECT (ROW('y')::public.int4).a") == [("y",)]


def test_types_do_not_grow_without_bound(database: Database) -> None:
    database.run("CREATE TYPE t0 AS (a int)")
    for number in range(8):
        database.run(f"CREATE TYPE t{number + 1} AS (a t{number}, b t{number})")
    with pytest.raises(SqlError) as raised:
        database.plan("CREATE TYPE t AS (a t8, b t8)")
    assert raised.value.code == "54001"


def test_a_secret_may_be_called_like_a_type(database: Database) -> None:
    database.run("CREATE SECRET pair AS 'x'; CREATE SECRET other AS 'x'")
    assert database.query("SHOW SECRETS") == [("other", ""), ("pair", "")]
    database.run("ALTER SECRET other RENAME TO prices; DROP SECRET pair; DROP SECRET prices")
    assert database.query("SELECT count(*) FROM mz_secrets") == [(0,)]
    with pytest.raises(SqlError) as raised:
        database.run("CREATE SECRET t AS 'x'; CREATE TABLE t (a int)")
    assert raised.value.message == 'secret "materialize.public.t" already exists'


def test_comments_are_on_types_their_fields_and_secrets(database: Database) -> None:
    database.run(
        "CREATE SECRET k AS 'x'; COMMENT ON TYPE pair IS 'two'; COMMENT ON COLUMN pair.b IS 'many';"
        "COMMENT ON SECRET k IS 'a key'"
    )
    assert database.query(
        "SELECT object_type, object_sub_id, comment FROM mz_internal.mz_comments ORDER BY 3"
    ) == [("secret", None, "a key"), ("type", 2, "many"), ("type", None, "two")]
    listed = database.query("SHOW OBJECTS")
    assert listed == [("k", "secret", "a key"), ("pair", "type", "two"), ("prices", "type", "")]
    with pytest.raises(SqlError) as raised:
        database.plan("COMMENT ON COLUMN prices.key IS 'x'")
    assert raised.value.message == 'type "materialize.public.prices" does not have columns'
    database.run("DROP TYPE pair")
    assert database.query("SELECT count(*) FROM mz_internal.mz_comments") == [(1,)]
