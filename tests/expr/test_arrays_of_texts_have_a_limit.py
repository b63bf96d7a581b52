"""Goal: what a call makes of an array is bounded as texts are, though the array repeats one value.

Method: each call is made up to the limit, which is lowered, and then one beyond it.
"""

import pytest

from evertide.expr.functions import text as subject
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database

LIMIT = 1_000
# Each takes the length of a text, of which it makes ten.
CALLS = [
    "array_fill(repeat('x', {0}), ARRAY[10])",
    "array_fill(repeat('x', {0})::bytea, ARRAY[10])",
    "array_fill(repeat('x', {0}), ARRAY[10], ARRAY[1])",
    "array_fill(to_jsonb(repeat('x', {0} - 2)), ARRAY[10])",
    "array_replace(array_fill('a'::text, ARRAY[10]), 'a', repeat('x', {0}))",
    "array_to_string(array_fill(NULL::int, ARRAY[10]), '', repeat('x', {0}))",
    "array_to_string(array_fill(''::text, ARRAY[11]), repeat('x', {0}))",
    "array_to_string(ARRAY[array_fill(''::text, ARRAY[11])], repeat('x', {0}))",
    "array_to_string(ARRAY[array_fill(NULL::int, ARRAY[10])], '', repeat('x', {0}))",
]


@pytest.fixture(scope="module")
def database() -> Database:
    return new_database()


@pytest.mark.parametrize("call", CALLS)
def test_as_much_as_one_text_may_hold(
    call: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MAX_CHARACTERS", LIMIT)
    ((found,),) = database.query(f"SELECT {call.format(LIMIT // 10)}")
    assert found
    with pytest.raises(SqlError, match="requested length too large") as refused:
        database.query(f"SELECT {call.format(LIMIT // 10 + 1)}")
    assert refused.value.code == "54000"


def test_only_what_is_replaced_counts(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_CHARACTERS", LIMIT)
    found = database.query(
        "SELECT cardinality(array_replace(array_fill(1, ARRAY[500])::text[], '2', 'long'))"
    )
    assert found == [(500,)]


def test_the_limit_is_that_of_texts(database: Database) -> None:
    with pytest.raises(SqlError) as refused:
        database.query("SELECT array_fill(repeat('x', 1000), ARRAY[200000])")
    assert refused.value.code == "54000"
