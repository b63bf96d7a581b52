"""Each row around a row doubles its quotes: a short query must not ask for all memory there is."""

import pytest

from evertide.expr import record_text as subject
from evertide.expr.functions.record import unnamed
from evertide.expr.text_output import format_text
from evertide.vocab.datum import Datum
from evertide.vocab.errors import ProgramLimitExceeded, SqlError
from evertide.vocab.sql_type import INT4, TEXT, SqlType
from tests.sql.database import new_database

LIMIT = 1_000


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not refused here is a few thousand characters long."""
    monkeypatch.setattr(subject, "MOST_CHARACTERS", LIMIT)


def nested(depth: int) -> tuple[SqlType, Datum]:
    sql_type: SqlType = INT4
    value: Datum = 1
    for _ in range(depth):
        sql_type, value = unnamed([sql_type]), (value,)
    return sql_type, value


def test_rows_in_rows_are_shown_up_to_a_length() -> None:
    assert format_text(*nested(3)) == '("(""(1)"")")'
    assert len(format_text(*nested(8))) <= LIMIT
    with pytest.raises(ProgramLimitExceeded, match="1000 characters at most") as raised:
        format_text(*nested(12))
    assert raised.value.code == "54000"


@pytest.mark.parametrize("character", ['"', "\\"])
def test_what_is_doubled_counts_twice(character: str) -> None:
    text = character * (LIMIT // 2)
    assert len(format_text(unnamed([TEXT]), (text,))) == LIMIT + 4
    with pytest.raises(ProgramLimitExceeded):
        format_text(unnamed([TEXT]), (text + character,))


def test_the_fields_of_a_row_share_the_limit() -> None:
    record = unnamed([TEXT] * 3)
    assert format_text(record, ("a" * 400, None, "b" * 400))
    with pytest.raises(ProgramLimitExceeded):
        format_text(record, ("a" * 400, "b" * 400, "c" * 400))


def test_a_cast_to_text_fails_as_an_expression_does() -> None:
    """Planning works constants out; a branch that is not taken must not fail there."""
    long = f"{'ROW(' * 12}1{')' * 12}::text"
    database = new_database()
    with pytest.raises(SqlError, match="1000 characters at most") as raised:
        database.query(f"SELECT {long}")
    assert raised.value.code == "54000"
    assert database.query(f"SELECT CASE WHEN false THEN {long} ELSE 'short' END") == [("short",)]
    database.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    assert database.query(f"SELECT a FROM t WHERE a = 2 AND {long} = 'x'") == []
