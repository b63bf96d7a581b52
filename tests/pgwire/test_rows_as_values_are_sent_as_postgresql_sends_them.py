"""A row as one value has PostgreSQL's bytes, in both formats."""

from collections.abc import Iterator

import psycopg
import pytest

from evertide.pgwire.values import BINARY_FORMAT, TEXT_FORMAT, field_encoder
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import BOOL, FLOAT8, INT4, INT8, TEXT, SqlType, record_of

INNER = record_of(("f1", INT4), ("f2", TEXT))
CASES: list[tuple[str, SqlType, Row]] = [
    ("ROW(1, 2::bigint)", record_of(("f1", INT4), ("f2", INT8)), (1, 2)),
    ("ROW(NULL::int, 'a b'::text)", INNER, (None, "a b")),
    ("ROW('a\"b\\c'::text, ''::text)", record_of(("f1", TEXT), ("f2", TEXT)), ('a"b\\c', "")),
    ("ROW(true, 1.5::float8)", record_of(("f1", BOOL), ("f2", FLOAT8)), (True, 1.5)),
    ("ROW(ROW(1, 'x,y'::text), 3)", record_of(("f1", INNER), ("f2", INT4)), ((1, "x,y"), 3)),
    ("ROW()", record_of(), ()),
]


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(("sql", "sql_type", "row"), CASES)
def test_bytes(
    sql: str, sql_type: SqlType, row: Row, binary: bool, postgres: psycopg.Connection
) -> None:
    cursor = postgres.execute(f"SELECT {sql}", binary=binary)
    assert cursor.pgresult is not None
    theirs = cursor.pgresult.get_value(0, 0)
    field = field_encoder(sql_type, BINARY_FORMAT if binary else TEXT_FORMAT)(row)
    assert (field[4:], int.from_bytes(field[:4])) == (theirs, len(theirs or b""))
