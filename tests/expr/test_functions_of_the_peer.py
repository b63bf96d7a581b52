"""Functions that PostgreSQL has not, against values published elsewhere or worked out by hand."""

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
