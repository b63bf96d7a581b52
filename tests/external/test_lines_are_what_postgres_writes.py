"""Goal: a row in a sink's file reads as PostgreSQL's row_to_json writes it.

Method: values of all sorts of types, as text, through both; texts must be equal, byte by byte.
"""

import json

import psycopg
import pytest

from evertide.expr.text_input import parser
from evertide.external.lines import LineEncoder, timestamp_of
from evertide.vocab.errors import DivisionByZero, encode_error
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    SqlType,
    array_of,
)
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

VALUES: tuple[tuple[SqlType, str, str], ...] = (
    (BOOL, "boolean", "true"),
    (INT2, "smallint", "-7"),
    (INT4, "integer", "2147483647"),
    (INT8, "bigint", "-9223372036854775808"),
    (FLOAT8, "float8", "0.1"),
    (FLOAT8, "float8", "1e300"),
    (FLOAT8, "float8", "-1.5e-12"),
    (FLOAT8, "float8", "NaN"),
    (FLOAT8, "float8", "-Infinity"),
    (FLOAT4, "float4", "3.25"),
    (NUMERIC, "numeric", "12345678901234567890.000123"),
    (NUMERIC, "numeric", "NaN"),
    (TEXT, "text", 'quotes " and \\ and\nlines\tand ü €'),
    (TEXT, "text", "\x01"),
    (DATE, "date", "2026-11-16"),
    (TIME, "time", "12:34:56.789"),
    (TIMESTAMP, "timestamp", "2026-11-16 12:34:56.789"),
    (TIMESTAMP, "timestamp", "infinity"),
    (TIMESTAMP, "timestamp", "0044-03-15 00:00:00 BC"),
    (TIMESTAMPTZ, "timestamptz", "2026-11-16 12:34:56.5+02"),
    (TIMESTAMPTZ, "timestamptz", "-infinity"),
    (TIMESTAMPTZ, "timestamptz", "0044-03-15 00:00:00+00 BC"),
    (INTERVAL, "interval", "1 year 2 days 03:04:05"),
    (UUID, "uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    (array_of(INT4), "integer[]", "{1,NULL,3}"),
    (array_of(TEXT), "text[]", '{a,"b c",NULL}'),
    (array_of(FLOAT8), "float8[]", "{1e300,NaN}"),
)


def line_of(sql_type: SqlType, text: str | None, name: str = "v") -> bytes:
    desc = RelationDesc((ColumnDesc(name, sql_type),))
    datum = None if text is None else parser(sql_type)(text)
    return LineEncoder(desc).encode([Update((datum,), Timestamp(7), 1)])


@pytest.mark.parametrize(("sql_type", "pg_type", "text"), VALUES, ids=lambda value: str(value)[:20])
def test_a_value_is_written_as_postgres_writes_it(
    postgres_dsn: str, sql_type: SqlType, pg_type: str, text: str
) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = f"SELECT row_to_json(r)::text FROM (SELECT %s::{pg_type} AS v) AS r"
        (wanted,) = connection.execute(query.encode(), (text,)).fetchone() or ("",)
    said = json.loads(line_of(sql_type, text))
    assert said["timestamp"] == 7
    assert said["diff"] == 1
    assert line_of(sql_type, text).decode() == f'{{"timestamp":7,"diff":1,"row":{wanted}}}\n'


def test_nulls_and_names_are_written_safely() -> None:
    assert json.loads(line_of(TEXT, None, 'a"b\n'))["row"] == {'a"b\n': None}


def test_equal_changes_are_one_line_and_those_that_cancel_are_none() -> None:
    encoder = LineEncoder(RelationDesc((ColumnDesc("v", INT4),)))
    ts, later = Timestamp(5), Timestamp(6)
    error = encode_error(DivisionByZero("division by zero"))
    lines = encoder.encode(
        [
            Update((2,), later, 1),
            Update((1,), ts, 1),
            Update((1,), ts, 2),
            Update((3,), ts, 1),
            Update((3,), ts, -1),
            Update((), ts, 1, error),
        ]
    ).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"timestamp": 5, "diff": 1, "error": "division by zero"},
        {"timestamp": 5, "diff": 3, "row": {"v": 1}},
        {"timestamp": 6, "diff": 1, "row": {"v": 2}},
    ]
    assert [timestamp_of(line) for line in lines] == [5, 5, 6]
    assert timestamp_of(b'{"id": 4}') is None
