"""Texts are read as PostgreSQL reads them, and values written as it writes them."""

from collections.abc import Iterator

import psycopg
import pytest

from evertide.expr.text_input import parse_text
from evertide.expr.text_output import format_text
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import INT4, TEXT, Kind, SqlType, array_of
from tests.expr.postgres_oracle import agree, ask, connect, type_name
from tests.expr.text_samples import ARRAY_TEXTS, TEXTS

DEVIATIONS: dict[tuple[str, str], str] = {
    ("timestamp without time zone", "294276-12-31 23:59:59.999999"): (
        "microseconds since 1970 end in 294247"
    ),
    ("interval", "3 hours ago 5 min"): "words after `ago` are refused",
    ("integer[]", "{{1},{2}}"): "an array's type tells how many dimensions it has",
    ("text[]", "{{1},{2}}"): "an array's type tells how many dimensions it has",
}
TYPES = [SqlType(kind) for kind in TEXTS] + [array_of(INT4), array_of(TEXT)]


@pytest.fixture(scope="module")
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with connect(postgres_dsn) as connection:
        yield connection


def _read(sql_type: SqlType, text: str) -> tuple[Datum, str | None]:
    try:
        return parse_text(sql_type, text), None
    except SqlError as error:
        return None, error.code


@pytest.mark.parametrize("sql_type", TYPES, ids=str)
def test_a_text_is_the_same_value_or_the_same_error(
    sql_type: SqlType, connection: psycopg.Connection
) -> None:
    different = []
    for text in ARRAY_TEXTS if sql_type.kind is Kind.ARRAY else TEXTS[sql_type.kind]:
        quoted = text.replace("'", "''")
        theirs, their_code = ask(connection, f"'{quoted}'::{type_name(sql_type)}")
        ours, our_code = _read(sql_type, text)
        same = our_code == their_code and (our_code or agree(sql_type, ours, theirs))
        if not same and (str(sql_type), text) not in DEVIATIONS:
            shown = our_code or format_text(sql_type, ours)
            different.append(f"{text!r}: {shown} instead of {their_code or theirs}")
    assert not different, "\n".join(different)


def test_messages_are_those_users_look_for() -> None:
    for sql_type, text, message in (
        (INT4, "x", 'invalid input syntax for type integer: "x"'),
        (INT4, "99999999999", '"99999999999" is out of range for type integer'),
        (SqlType(Kind.DATE), "x", 'invalid input syntax for type date: "x"'),
        (SqlType(Kind.UUID), "x", 'invalid input syntax for type uuid: "x"'),
        (SqlType(Kind.BOOL), "x", 'invalid input syntax for type boolean: "x"'),
        (SqlType(Kind.NUMERIC), "x", 'invalid input syntax for type numeric: "x"'),
        (SqlType(Kind.FLOAT8), "1e999", '"1e999" is out of range for type double precision'),
    ):
        with pytest.raises(SqlError) as raised:
            parse_text(sql_type, text)
        assert message in raised.value.message


def test_a_numeric_has_39_digits() -> None:
    numeric = SqlType(Kind.NUMERIC)
    digits = "123456789012345678901234567890123456789"
    assert format_text(numeric, parse_text(numeric, digits)) == digits
    assert format_text(numeric, parse_text(numeric, "0." + digits)) == "0." + digits
    # One more digit is rounded away behind the point and refused before it.
    assert format_text(numeric, parse_text(numeric, "1." + digits)) == (
        "1.12345678901234567890123456789012345679"
    )
    with pytest.raises(SqlError, match="exceeds maximum precision 39") as raised:
        parse_text(numeric, digits + "0")
    assert raised.value.code == "22003"


def test_modifiers_are_applied_when_text_is_read() -> None:
    money = SqlType(Kind.NUMERIC, precision=5, scale=2)
    assert format_text(money, parse_text(money, "1.5")) == "1.5"
    assert format_text(money, parse_text(money, "1.005")) == "1.01"
    for sql_type, text, code in (
        (money, "1000", "22003"),
        (SqlType(Kind.VARCHAR, length=2), "abc", "22001"),
        (SqlType(Kind.BPCHAR, length=2), "abc", "22001"),
    ):
        assert _read(sql_type, text)[1] == code
    assert parse_text(SqlType(Kind.VARCHAR, length=2), "ab  ") == "ab"
    assert parse_text(SqlType(Kind.BPCHAR, length=4), "ab") == "ab  "


def test_types_that_postgres_does_not_have() -> None:
    uint8 = SqlType(Kind.UINT8)
    assert parse_text(uint8, "18446744073709551615") == 2**64 - 1
    assert _read(uint8, "-1")[1] == "22003"
    at = SqlType(Kind.MZ_TIMESTAMP)
    assert parse_text(at, "1700000000000") == 1_700_000_000_000
    assert parse_text(at, "1970-01-01 00:00:01.5") == 1500
    assert _read(at, "soon")[1] == "22P02"
    nested = SqlType(Kind.LIST, element=SqlType(Kind.LIST, element=INT4))
    assert parse_text(nested, "{{1,2},{},{NULL}}") == ((1, 2), (), (None,))
    assert format_text(nested, ((1, 2), (), (None,))) == "{{1,2},{},{NULL}}"
    mapping = SqlType(Kind.MAP, element=INT4)
    assert parse_text(mapping, '{b=>2, "a b"=>1, b=>NULL}') == (("a b", 1), ("b", None))
    assert format_text(mapping, (("a b", 1), ("b", None))) == '{"a b"=>1,b=>NULL}'


def test_endless_digits_are_out_of_range() -> None:
    digits = "9" * 6000
    for kind, text in (
        (Kind.INTERVAL, f"1-{digits}"),
        (Kind.INTERVAL, f"{digits} days"),
        (Kind.DATE, f"{digits}-01-01"),
        (Kind.NUMERIC, f"1e{digits}"),
        (Kind.NUMERIC, "0x" + "f" * 6000),
        (Kind.INT8, digits),
        (Kind.INT8, "0x" + "f" * 6000),
        (Kind.FLOAT8, digits),
        (Kind.JSONB, digits),
    ):
        assert _read(SqlType(kind), text)[1] in ("22003", "22008", "22015"), kind


def test_depth_is_limited() -> None:
    deep = "[" * 5000 + "]" * 5000
    assert _read(SqlType(Kind.JSONB), deep)[1] == "54001"
    assert _read(SqlType(Kind.JSONB), "[" * 129 + "]" * 129)[1] == "54001"
    assert _read(SqlType(Kind.JSONB), "[" * 128 + "]" * 128)[1] is None
    lists = SqlType(Kind.LIST, element=INT4)
    assert _read(lists, "{" * 5000 + "}" * 5000)[1] == "22P02"
