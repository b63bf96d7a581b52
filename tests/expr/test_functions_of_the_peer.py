"""Functions that PostgreSQL has not, against values published elsewhere or worked out by hand."""

import csv

import pytest

from evertide.expr.functions.table import by_signature
from evertide.expr.text_output import format_text
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database

VALUES = {
    "crc32('123456789')": "3421780262",
    "crc32('\\xff'::bytea)": "4278190080",
    # Those that Kafka's own clients are tested by, without their sign.
    "kafka_murmur2('21')": str(-973932308 & 0x7FFFFFFF),
    "kafka_murmur2('foobar')": str(-790332482 & 0x7FFFFFFF),
    "kafka_murmur2('a-little-bit-long-string')": str(-985981536 & 0x7FFFFFFF),
    "kafka_murmur2('abc'::bytea)": "479470107",
    "seahash('to be or not to be')": "1988685042348123509",
    "uuid_generate_v5('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com')": (
        "2ed6657d-e927-568b-95e1-2665a8aea6a2"
    ),
    "1.5 < ANY (ARRAY[n, 2])": "t",
    "n > ALL (ARRAY[n - 1, NULL])": None,
    "n > ALL (ARRAY[n - 1, n])": "f",
    "n > ANY (ARRAY[n - 1, NULL])": "t",
    "NULL::int < ANY (a)": None,
    "n < ALL ('{}'::int[])": "t",
    "'ab' LIKE ANY (ARRAY[n::text, 'a%'])": "t",
    "datediff('day', '2024-01-01'::date, '2024-03-01'::date)": "60",
    "datediff('day', '2024-03-01'::date, '2024-01-01'::date)": "-60",
    "datediff('hour', '2024-01-01 00:59:59'::timestamp, '2024-01-01 01:00:00'::timestamp)": "1",
    "datediff('hour', '01:59:59'::time, '02:00:00'::time)": "1",
    "datediff('week', '2024-01-07'::date, '2024-01-08'::date)": "1",
    "datediff('month', '2023-12-31'::date, '2024-01-01'::date)": "1",
    "datediff('quarter', '2024-01-01'::date, '2024-03-31'::date)": "0",
    "datediff('years', '1999-01-01'::date, '2001-12-31'::date)": "2",
    "datediff('decade', '1999-01-01'::date, '2001-12-31'::date)": "1",
    "datediff('century', '2000-12-31'::date, '2001-01-01'::date)": "1",
    "datediff('century', '1999-12-31'::date, '2000-01-01'::date)": "0",
    "datediff('millennium', '2000-12-31'::date, '2001-01-01'::date)": "1",
    "map_build(LIST[ROW('b', 1), ROW('a', 2), ROW('b', NULL::int)])": "{a=>2,b=>NULL}",
    "map_build(LIST[ROW('b', n), NULL, ROW(NULL, 2)])": "{b=>1}",
    "'2024-01-01 00:00:00.9996'::timestamp(3)": "2024-01-01 00:00:01",
    "'1999-12-31 23:59:59.0005'::timestamp(3)": "1999-12-31 23:59:59",
    "('12:00:00.55'::time)::time(1)": "12:00:00.6",
    "'1.256 seconds'::interval(2)": "00:00:01.26",
}
WINDOWS = {
    "'45s', '1m', '2001-01-01 00:01:20'": ["2001-01-01 00:00:30+00", "2001-01-01 00:01:15+00"],
    "'1m', '2m', '2001-01-01 00:01:00'": ["2001-01-01 00:00:00+00", "2001-01-01 00:01:00+00"],
    "'1m', '30s', '2001-01-01 00:00:20'": [],
}


@pytest.fixture(scope="module")
def database() -> Database:
    return new_database()


@pytest.mark.parametrize(("expression", "expected"), VALUES.items())
def test_value(expression: str, expected: str | None, database: Database) -> None:
    query = f"SELECT {expression} FROM (SELECT 1 AS n, ARRAY[1, 2] AS a) t"
    plan = database.plan(query)
    assert isinstance(plan, SelectPlan)
    ((found,),) = database.query(query)
    assert (None if found is None else format_text(plan.desc.types[0], found)) == expected


@pytest.mark.parametrize(("arguments", "expected"), WINDOWS.items())
def test_windows_that_hold_a_moment(
    arguments: str, expected: list[str], database: Database
) -> None:
    """Each ends at a hop, and begins as much before as it is wide."""
    found = database.query(f"SELECT w::text FROM date_bin_hopping({arguments}) AS t (w)")
    assert sorted(str(row[0]) for row in found) == expected


def test_any_and_all_are_found_again_by_signature() -> None:
    function = by_signature("< any(numeric,numeric[])")
    assert by_signature(function.signature) is function
    with pytest.raises(SqlError):
        by_signature("nothing any(numeric,numeric[])")


EXTRACTED = {
    'csv_extract(2, E\'a,b\\n\\nc,"d,""e\\n"\\r\\nx\\n1,2,3\\n,\')': [
        ("a", "b"),
        ("c", 'd,"e\n'),
        ("", ""),
    ],
    "csv_extract(1, '')": [],
    "csv_extract(3, NULL)": [],
    "regexp_extract('(a+)(b)?', 'xaay aab')": [("aa", None)],
    "regexp_extract('(a+)', 'xyz')": [],
}


@pytest.mark.parametrize(("call", "expected"), EXTRACTED.items())
def test_columns_follow_from_a_constant(
    call: str, expected: list[tuple[str | None, ...]], database: Database
) -> None:
    assert database.query(f"SELECT * FROM {call}") == expected


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (
            "csv_extract(n, 'a')",
            "22023",
            "csv_extract requires an integer literal as its first argument",
        ),
        (
            "regexp_extract(n::text, 'a')",
            "22023",
            "regexp_extract requires a string literal as its first argument",
        ),
        (
            "regexp_extract('a', 'a')",
            "22023",
            "regexp_extract must specify at least one capture group",
        ),
        ("csv_extract(-1, 'a')", "22023", "between 1 and 1600"),
        ("regexp_extract('(', 'a')", "2201B", "parentheses () not balanced"),
        ("datediff('lustrum', now(), now())", "22023", "unit 'lustrum' not recognized"),
    ],
)
def test_what_cannot_be_is_told(call: str, code: str, message: str, database: Database) -> None:
    with pytest.raises(SqlError) as raised:
        database.query(f"SELECT f.* FROM (SELECT 1 AS n) t, LATERAL {call} f")
    assert raised.value.code == code
    assert message in raised.value.message


def test_a_field_of_csv_has_a_limit(database: Database) -> None:
    """Texts joined from several are longer than what one call makes."""
    before = csv.field_size_limit(100)
    try:
        assert len(database.query("SELECT * FROM csv_extract(1, repeat('x', 100))")) == 1
        with pytest.raises(SqlError, match="csv_extract cannot read its text: field larger") as e:
            database.query("SELECT * FROM csv_extract(1, repeat('x', 60) || repeat('x', 60))")
    finally:
        csv.field_size_limit(before)
    assert e.value.code == "22P04"
