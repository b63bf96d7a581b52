"""Binary values, byte for byte as PostgreSQL sends them, and read back to the same datum."""

from collections.abc import Iterator

import psycopg
import pytest

from evertide.expr.text_input import parse_text
from evertide.pgwire.values import BINARY_FORMAT, TEXT_FORMAT, field_encoder, parameter_decoder
from evertide.vocab.datum import TS_INFINITY, Datum, Interval
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    MZ_TIMESTAMP,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
    array_of,
)

FLOATS = ["0", "-0", "1", "-1.5", "0.1", "1e10", "1e-20", "3.4e38", "Infinity", "-Infinity", "NaN"]
TEXTS = ["", "a", "ünï✓", "  spaces  ", "quote'\"\\", "tab\tnewline\n", "NULL", "x" * 5000]
DATES = [
    "2000-01-01", "1999-12-31", "1970-01-01", "1969-12-31", "0001-01-01", "0001-12-31 BC",
    "4713-01-01 BC", "9999-12-31", "10000-01-01", "294276-12-31", "infinity", "-infinity",
]  # fmt: skip
TIMESTAMPS = [
    "2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "1970-01-01 00:00:00",
    "0001-01-01 00:00:00", "0044-03-15 12:00:00 BC", "4713-01-01 00:00:00 BC",
    "2024-02-29 13:14:15.123456", "290000-01-01 00:00:00", "infinity", "-infinity",
]  # fmt: skip
NUMERICS = [
    "0", "1", "-1", "10", "9999", "10000", "10001", "99999999", "100000000", "0.1", "0.0001",
    "0.00001", "-0.000123", "12345.678", "1234567890123456789.12345678901234567891",
    "100000000000000000000000000000000000000", "0.00000000000000000000000000000000000001",
    "NaN", "Infinity", "-Infinity",
]  # fmt: skip

CASES: list[tuple[SqlType, list[str]]] = [
    (BOOL, ["t", "f"]),
    (INT2, ["0", "1", "-1", "32767", "-32768"]),
    (INT4, ["0", "-1", "2147483647", "-2147483648"]),
    (INT8, ["0", "-1", "9223372036854775807", "-9223372036854775808"]),
    (OID, ["0", "26", "4294967295"]),
    (SqlType(Kind.REGCLASS), ["1259"]),
    (SqlType(Kind.REGTYPE), ["23"]),
    (FLOAT4, [*FLOATS, "1e-45"]),
    (FLOAT8, [*FLOATS, "1.7976931348623157e308", "5e-324"]),
    (NUMERIC, NUMERICS),
    (SqlType(Kind.NUMERIC, precision=12, scale=3), ["0", "1.5", "-1", "123456789.123", "NaN"]),
    (TEXT, TEXTS),
    (SqlType(Kind.VARCHAR), TEXTS),
    (SqlType(Kind.VARCHAR, length=5), ["", "abc", "ünï✓"]),
    (SqlType(Kind.BPCHAR, length=5), ["", "abc", "abcde"]),
    (NAME, ["", "pg_class"]),
    (SqlType(Kind.CHAR), ["", "a"]),
    (BYTEA, ["", "\\x", "\\x00ff", "\\x" + "ab" * 3000]),
    (DATE, DATES),
    (TIME, ["00:00:00", "23:59:59.999999", "24:00:00", "12:34:56.7"]),
    (TIMESTAMP, TIMESTAMPS),
    (TIMESTAMPTZ, [*TIMESTAMPS, "2024-02-29 13:14:15+05:30"]),
    (
        INTERVAL,
        ["0", "1 day", "-1 day", "1 mon", "-1 year 2 mons", "1 year 2 mons -3 days 04:05:06.789",
         "-00:00:00.000001", "178000000 years", "1 day -1 hour"],
    ),
    (UUID, ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    (JSONB, ["null", "1", '"a"', "[]", "{}"]),
    (array_of(INT4), ["{}", "{1}", "{1,NULL,-3}", "{NULL}"]),
    (SqlType(Kind.INT4RANGE), ["empty", "(,)", "[1,5)", "[-3,)", "(,7)"]),
    (SqlType(Kind.INT8RANGE), ["[1,9223372036854775807)"]),
    (SqlType(Kind.NUMRANGE), ["(1.5,2.5]", "[0,NaN]", "(,0)"]),
    (SqlType(Kind.DATERANGE), ["[2000-01-01,2000-02-01)", "(-infinity,infinity)"]),
    (SqlType(Kind.TSRANGE), ['["2000-01-01 00:00:00",infinity]']),
    (SqlType(Kind.TSTZRANGE), ['("2000-01-01 00:00:00+00",)']),
    (array_of(SqlType(Kind.INT4RANGE)), ['{"[1,2)",NULL,empty}']),
    (array_of(TEXT), ["{}", '{a,"b c",NULL,"NULL","",\\\\}']),
    (array_of(NUMERIC), ["{1.5,NULL,NaN}"]),
    (array_of(BOOL), ["{t,f}"]),
    (array_of(TIMESTAMP), ['{"2000-01-01 00:00:00",infinity}']),
    (array_of(UUID), ["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def ask_postgres(connection: psycopg.Connection, sql_type: SqlType, text: str) -> bytes:
    name = f"{sql_type.element.kind}[]" if sql_type.element else str(sql_type)
    command = f"SELECT $1::{name}".encode()
    result = connection.pgconn.exec_params(command, [text.encode()], result_format=1)
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
    value = result.get_value(0, 0)
    assert value is not None
    return value


@pytest.mark.parametrize(("sql_type", "texts"), CASES, ids=[str(sql_type) for sql_type, _ in CASES])
def test_each_type(postgres: psycopg.Connection, sql_type: SqlType, texts: list[str]) -> None:
    encode = field_encoder(sql_type, BINARY_FORMAT)
    decode = parameter_decoder(sql_type, BINARY_FORMAT)
    for text in texts:
        expected = ask_postgres(postgres, sql_type, text)
        datum = parse_text(sql_type, text)
        field = encode(datum)
        assert field == len(expected).to_bytes(4) + expected, text
        assert repr(decode(expected)) == repr(datum), text


@pytest.mark.parametrize(
    "dimensions",
    ["", "0000000000000001", "0000000000000000", "00000000000000010000000300000001",
     "00000003000000050000000000000001"],
)  # fmt: skip
def test_no_elements_make_the_empty_array(postgres: psycopg.Connection, dimensions: str) -> None:
    """However many dimensions a client writes for them, and wherever those begin."""
    count = len(dimensions) // 16
    body = bytes.fromhex(f"{count:08x}0000000000000017" + dimensions)
    found = postgres.pgconn.exec_params(b"SELECT $1::int4[]", [body], [1007], [1])
    assert found.get_value(0, 0) == b"{}", found.error_message
    for sql_type in (array_of(INT4), array_of(array_of(INT4))):
        assert parameter_decoder(sql_type, BINARY_FORMAT)(body) == ()


@pytest.mark.parametrize(
    ("sql_type", "datum", "body"),
    [
        (SqlType(Kind.UINT2), 65_535, "ffff"),
        (SqlType(Kind.UINT4), 2**32 - 1, "ffffffff"),
        (SqlType(Kind.UINT8), 2**64 - 1, "ffffffffffffffff"),
        (MZ_TIMESTAMP, 1_700_000_000_000, "0000018bcfe56800"),
        (JSONB, '{"a":1}', "01" + b'{"a":1}'.hex()),
    ],
)
def test_types_that_postgres_does_not_have(sql_type: SqlType, datum: Datum, body: str) -> None:
    field = field_encoder(sql_type, BINARY_FORMAT)(datum)
    assert field[4:].hex() == body
    assert parameter_decoder(sql_type, BINARY_FORMAT)(field[4:]) == datum


def test_text_format_is_that_of_the_expression_room() -> None:
    assert field_encoder(MZ_TIMESTAMP, TEXT_FORMAT)(12) == b"\0\0\0\x0212"
    assert field_encoder(FLOAT8, TEXT_FORMAT)(float("inf"))[4:] == b"Infinity"
    assert field_encoder(TIMESTAMPTZ, TEXT_FORMAT)(0)[4:] == b"1970-01-01 00:00:00+00"
    assert parameter_decoder(INTERVAL, TEXT_FORMAT)(b"1 mon") == Interval(1, 0, 0)


@pytest.mark.parametrize(
    ("sql_type", "body", "sqlstate"),
    [
        (INT4, "00", "22P03"),
        (BOOL, "", "22P03"),
        (UUID, "00", "22P03"),
        (DATE, "0000", "22P03"),
        (INTERVAL, "00" * 15, "22P03"),
        (JSONB, "02" + b"1".hex(), "22P03"),
        (JSONB, "01" + b"{".hex(), "22P02"),
        (NUMERIC, "0001", "22P03"),
        (NUMERIC, "0001000000000000" + "2710", "22P03"),
        (NUMERIC, "0001000012340000" + "0001", "22P03"),
        (NUMERIC, "00017fff00000000" + "0001", "22003"),
        (TEXT, "ff", "22021"),
        (TEXT, "00", "22021"),
        (TIME, (86_400_000_001).to_bytes(8).hex(), "22008"),
        (TIME, "ff" * 8, "22008"),
        (DATE, (-2_451_546).to_bytes(4, signed=True).hex(), "22008"),
        (TIMESTAMP, (TS_INFINITY - 1).to_bytes(8).hex(), "22008"),
        (TIMESTAMP, (-(2**62)).to_bytes(8, signed=True).hex(), "22008"),
        (array_of(INT4), "00000001", "22P03"),
        (array_of(INT4), "00000000" "00000000" "00000019", "22P03"),
        (array_of(INT4), "00000002" "00000000" "00000017" "0000000100000001" * 2, "0A000"),
        (array_of(INT4), "00000001" "00000000" "00000017" "0000000100000000" "ffffffff", "0A000"),
        (array_of(INT4), "00000001" "00000000" "00000017" "7fffffff00000001" "ffffffff", "22P03"),
        (array_of(INT4), "00000001" "00000000" "00000017" "ffffffff00000001", "22P03"),
        (array_of(INT4), "000000020000000000000017" "0000000000000001fffffffe00000001", "22P03"),
        (array_of(INT4), "00000001" "00000000" "00000017" "0000000000000001" "ffffffff", "22P03"),
        (array_of(INT4), "00000007" "00000000" "00000017" "0000000000000001" * 7, "22P03"),
        (array_of(INT4), "00000001" "00000000" "00000017" "0000000100000001" "00000009", "22P03"),
    ],
)  # fmt: skip
def test_a_malformed_value_is_the_clients_mistake(
    sql_type: SqlType, body: str, sqlstate: str
) -> None:
    with pytest.raises(SqlError) as caught:
        parameter_decoder(sql_type, BINARY_FORMAT)(bytes.fromhex(body))
    assert caught.value.code == sqlstate


@pytest.mark.parametrize("kind", [Kind.LIST, Kind.MAP, Kind.RECORD])
def test_types_without_a_binary_format_say_so(kind: Kind) -> None:
    for choose in (field_encoder, parameter_decoder):
        with pytest.raises(SqlError) as caught:
            choose(SqlType(kind, element=TEXT), BINARY_FORMAT)
        assert caught.value.code == "0A000"


def test_every_kind_has_a_format_or_is_known_to_have_none() -> None:
    without = {Kind.LIST, Kind.MAP, Kind.RECORD}
    for kind in set(Kind) - without:
        sql_type = SqlType(kind, element=TEXT if kind is Kind.ARRAY else None)
        for code in (TEXT_FORMAT, BINARY_FORMAT):
            assert callable(field_encoder(sql_type, code)), kind
            assert callable(parameter_decoder(sql_type, code)), kind
