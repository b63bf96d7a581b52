"""Goal: arrays of several dimensions mean what they mean in PostgreSQL.

Method: expressions are asked of both; values are compared as text, errors by their SQLSTATE. What
differs is listed beside what it gives here.
"""

from collections.abc import Iterator
from itertools import pairwise

import psycopg
import pytest

from evertide.expr.text_output import format_text
from evertide.pgwire.binary import decoder, field_encoder
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import INT4, TEXT, array_of
from tests.sql.database import Database, new_database

SQUARE = "ARRAY[[1,2],[3,4]]"
# Element by element, then by how many there are, then by the lengths of dimensions.
ORDERED = [
    "'{}'", "'{{1}}'", "'{{1,2}}'", "'{{1},{2}}'", "'{{1,2,3}}'", "'{{1,2},{3,4}}'",
    "'{{1,2},{3,4}}'", "'{{1,2},{3,NULL}}'", "'{{1},{NULL}}'", "'{{2}}'", "'{{NULL,1}}'",
    "'{{NULL},{1}}'", "'{{NULL,NULL}}'",
]  # fmt: skip
ROWS = ", ".join(f"({text}::int[][])" for text in (*ORDERED[::2], *ORDERED[1::2]))
ALIKE = [
    SQUARE,
    "ARRAY[ARRAY[1,2],ARRAY[3,4]]",
    "ARRAY[[[9]]]",
    "ARRAY[[1,2],[3,4.5]]",
    "ARRAY[ARRAY[1,2],ARRAY[3]]",
    "ARRAY[ARRAY[1,2],NULL]",
    "ARRAY[ARRAY[]::int[]]",
    "ARRAY[NULL::int[]]",
    "ARRAY[NULL::int[], ARRAY[]::int[]]",
    "ARRAY[NULL::int[], ARRAY[1]]",
    "ARRAY[NULL::int[][], NULL]",
    "'{{1},NULL}'::int[][]",
    "'{{1,2},{3,4}}'::int[]",
    "'[1:1][1:2]={{1,2}}'::int[]",
    "'{ {1 , 2}, {NULL,4}}'::int[][]",
    '\'{{a,"b c"},{NULL,"NULL"}}\'::text[][]',
    "'{{1,2},{3}}'::int[]",
    "'{{1,2},3}'::int[][]",
    "'{{1,2}'::int[]",
    "'{{{{{{{1}}}}}}}'::int[]",
    "'{}'::int[][]",
    f"({SQUARE})[2][1]",
    f"({SQUARE})[2]",
    f"({SQUARE})[2][3]",
    f"({SQUARE})[0][1]",
    f"({SQUARE})[2:2]",
    f"({SQUARE})[:1]",
    f"({SQUARE})[1][1][1]",
    "(ARRAY[1])[1][1]",
    *(
        f"{name}({SQUARE}, {dimension})"
        for name in ("array_length", "array_upper", "array_lower")
        for dimension in (0, 1, 2, 3)
    ),
    "array_length('{}'::int[][], 1)",
    "array_length(ARRAY[[1],[2],[3]], 1)",
    f"array_ndims({SQUARE})",
    "array_ndims(ARRAY[[[1,2]]])",
    f"array_dims({SQUARE})",
    "array_dims(ARRAY[[[1,2]]])",
    f"cardinality({SQUARE})",
    f"{SQUARE} = ARRAY[[1,2],[3,4]]",
    f"{SQUARE} = ARRAY[[1,2],[3,5]]",
    f"{SQUARE} <> ARRAY[[1,2]]",
    f"{SQUARE} < ARRAY[[1,2],[4,0]]",
    *(
        f"{left}::int[][] {operator} {right}::int[][]"
        for left, right in pairwise(ORDERED)
        for operator in ("<", "=", ">")
    ),
    "greatest(ARRAY[[1,2,3]], ARRAY[[1,2],[3,4]])",
    f"(SELECT array_agg(v::text ORDER BY v) FROM (VALUES {ROWS}) t (v))",
    f"(SELECT array_agg(v::text ORDER BY v DESC) FROM (VALUES {ROWS}) t (v))",
    "(SELECT min(v) FROM (VALUES (ARRAY[[1],[2]]), (ARRAY[[1,2]])) t (v))",
    "(SELECT max(v) FROM (VALUES (ARRAY[[1],[2]]), (ARRAY[[1,2]])) t (v))",
    f"{SQUARE} || ARRAY[[5,6]]",
    f"{SQUARE} || ARRAY[5,6]",
    f"ARRAY[5,6] || {SQUARE}",
    f"{SQUARE} || ARRAY[5]",
    f"{SQUARE} || NULL::int[][]",
    f"array_cat({SQUARE}, ARRAY[[5,6]])",
    f"3 = ANY ({SQUARE})",
    f"5 = ANY ({SQUARE})",
    f"0 < ALL ({SQUARE})",
    f"{SQUARE} @> ARRAY[[4,4]]",
    f"ARRAY[[4,1]] <@ {SQUARE}",
    f"{SQUARE} && ARRAY[[7,8]]",
    f"{SQUARE}::text",
    f"{SQUARE}::text[]",
    f"{SQUARE}::numeric[]",
    "ARRAY[['1','x']]::int[]",
    f"array_to_string({SQUARE}, ',')",
    "array_to_string(ARRAY[[1,NULL]], ',', '*')",
    f"pg_typeof({SQUARE})::text",
    f"coalesce({SQUARE}, NULL)",
    f"(SELECT sum(x) FROM unnest({SQUARE}) x)",
    f"(SELECT string_agg(x::text, ',') FROM unnest({SQUARE}) x)",
    "(SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]), (ARRAY[3,4])) v (x))",
    "(SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]), (ARRAY[3])) v (x))",
    "(SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]), (NULL)) v (x))",
    "(SELECT array_agg(x) FROM (VALUES (ARRAY[]::int[])) v (x))",
    "(SELECT array_agg(x) FROM (SELECT ARRAY[1]) v (x) WHERE false)",
]
# How many dimensions an array has is part of its type.
DIFFERENT = {
    "NULL::int[][][][][][][]": "54000",
    "'{1,2}'::int[][]": "22P02",
    "'{NULL}'::int[][]": "22P02",
    f"({SQUARE})[1:1][2:2]": "0A000",
    f"{SQUARE} = ARRAY[1,2]": "42883",
}


@pytest.fixture(scope="module")
def database() -> Database:
    return new_database()


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def answer(expression: str, database: Database) -> str | None:
    """The value as text, or the code of the error."""
    try:
        plan = database.plan(f"SELECT {expression}")
        ((found,),) = database.query(f"SELECT {expression}")
    except SqlError as error:
        return error.code
    assert isinstance(plan, SelectPlan)
    return None if found is None else format_text(plan.desc.types[0], found)


def theirs(expression: str, postgres: psycopg.Connection) -> str | None:
    try:
        row = postgres.execute(f"SELECT ({expression})::text".encode()).fetchone()
    except psycopg.Error as error:
        return error.sqlstate
    assert row is not None
    found = row[0]
    return {"true": "t", "false": "f"}.get(found, found)


@pytest.mark.parametrize("expression", ALIKE)
def test_postgresql_gives_the_same(
    expression: str, database: Database, postgres: psycopg.Connection
) -> None:
    assert answer(expression, database) == theirs(expression, postgres)


@pytest.mark.parametrize(("expression", "expected"), DIFFERENT.items())
def test_what_differs_is_told(
    expression: str, expected: str, database: Database, postgres: psycopg.Connection
) -> None:
    found = answer(expression, database)
    assert found == expected
    assert found != theirs(expression, postgres)


@pytest.mark.parametrize("text", ["{1,2}", "{{1,2},3}", "{{1,2},{3}}", "{{1,2},{3", "1"])
def test_a_malformed_text_is_named_whole(text: str, database: Database) -> None:
    with pytest.raises(SqlError) as raised:
        database.query(f"SELECT '{text}'::int[][]")
    assert raised.value.message == f'malformed array literal: "{text}"'


def test_a_column_holds_arrays_of_its_dimensions(database: Database) -> None:
    database.run("CREATE TABLE flat (a int[]); CREATE TABLE square (a int[][])")
    database.run("INSERT INTO square VALUES ('{{1,2}}'), (ARRAY[[3]]), ('{}'), (NULL)")
    assert sorted(database.query("SELECT a[1][1] FROM square"), key=str) == [
        (1,),
        (3,),
        (None,),
        (None,),
    ]
    for sql, code in (
        ("INSERT INTO flat VALUES (ARRAY[[1,2]])", "42804"),
        ("INSERT INTO flat VALUES ('{{1,2}}')", "0A000"),
        ("INSERT INTO square VALUES (ARRAY[1,2])", "42804"),
    ):
        with pytest.raises(SqlError) as raised:
            database.run(sql)
        assert raised.value.code == code


def test_binary_format_goes_both_ways() -> None:
    """One header for all dimensions, the elements in their order behind it."""
    sql_type = array_of(array_of(INT4))
    value = ((1, 2), (3, None), (5, 6))
    field = field_encoder(sql_type)(value)
    assert field[4:16] == bytes.fromhex("00000002 00000001 00000017")
    assert field[16:32] == bytes.fromhex("00000003 00000001 00000002 00000001")
    assert decoder(sql_type)(field[4:]) == value
    texts = array_of(array_of(array_of(TEXT)))
    assert decoder(texts)(field_encoder(texts)(((("a",), ("b",)),))[4:]) == ((("a",), ("b",)),)
    assert decoder(sql_type)(field_encoder(sql_type)(())[4:]) == ()
    with pytest.raises(SqlError, match="an array of 2 dimensions is not of type"):
        decoder(array_of(INT4))(field[4:])
    with pytest.raises(SqlError):
        decoder(sql_type)(field[4:-4])


def test_a_parameter_has_the_dimensions_that_are_wanted(database: Database) -> None:
    """Clients declare the type of arrays alone, which is the same for all dimensions."""
    ints = array_of(INT4)
    database.run("CREATE TABLE wide (a bigint[][])")
    for sql in ("SELECT $1::int[][]", "INSERT INTO wide VALUES ($1)"):
        assert database.planned(sql, [ints]).parameter_types == (array_of(ints),)
    assert database.planned("SELECT $1", [ints]).parameter_types == (ints,)
    # It has been taken for an array of one dimension before.
    with pytest.raises(SqlError):
        database.planned("SELECT $1[1], $1::int[][]", [ints])
