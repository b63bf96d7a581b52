"""Every function and cast gives PostgreSQL's value or SQLSTATE, but for the deviations listed.

Rows that exist once per element type are asked for a few element types only: their bodies are one.
"""

from collections.abc import Iterator

import psycopg
import pytest

from evertide.expr.functions.row import ScalarFunction
from tests.expr.compared import ABSENT, ABSENT_ROWS, COMPARED
from tests.expr.deviations import DEVIATIONS, Answer
from tests.expr.postgres_oracle import agree, ask, call, connect, evaluate
from tests.expr.special_arguments import arguments_for

NAMES = sorted({row.name for row in COMPARED})


@pytest.fixture(scope="module")
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with connect(postgres_dsn) as connection:
        yield connection


@pytest.mark.parametrize("name", NAMES)
def test_values_and_errors_are_those_of_postgres(name: str, connection: psycopg.Connection) -> None:
    different = []
    for row in COMPARED:
        if row.name == name and row.signature not in ABSENT_ROWS:
            different += list(_differences(row, connection))
    assert not different, "\n".join(different[:20])


def _differences(row: ScalarFunction, connection: psycopg.Connection) -> Iterator[str]:
    for arguments in arguments_for(row):
        expression = call(row, arguments)
        theirs, their_code = ask(connection, expression)
        ours, our_code = evaluate(row, arguments)
        if their_code == our_code and (our_code or agree(row.result, ours, theirs)):
            continue
        answer = Answer(row, arguments, ours, our_code, theirs, their_code)
        if not any(applies(answer) for applies in DEVIATIONS.values()):
            yield f"{expression}: {our_code or ours!r} instead of {their_code or theirs!r}"


def test_what_is_absent_from_postgres_is_absent(connection: psycopg.Connection) -> None:
    """A row that PostgreSQL has must not hide among those it has not."""
    rows = {row.signature: row for row in COMPARED}
    for signature in ABSENT_ROWS:
        row = rows[signature]
        _, code = ask(connection, call(row, next(arguments_for(row))))
        assert code in ABSENT, signature


def test_most_rows_are_compared() -> None:
    assert len(COMPARED) > 800
