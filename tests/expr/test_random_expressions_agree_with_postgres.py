"""Goal: an expression of any functions means what it means in PostgreSQL, for every row.

Method: random typed expressions over a table of random values, most of them edges, are planned and
interpreted here and asked of a PostgreSQL; type, value and whether it fails must be the same, or
differ for a reason that docs/guide/sql.md lists.
"""

from collections.abc import Iterator

import psycopg
import pytest

from tests.expr.expression_check import PER_SEED, ROWS, Comparison, Tally
from tests.expr.postgres_oracle import connect
from tests.support.seeds import seeds


@pytest.fixture(scope="module")
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with connect(postgres_dsn) as connection:
        connection.execute("SET statement_timeout = '2s'")
        yield connection


@seeds(range(20), deep=range(1_000, 1_400), fresh=100)
def test_random_expressions(seed: int, connection: psycopg.Connection) -> None:
    tally = Tally()
    Comparison(seed, connection).run(PER_SEED, tally)
    assert not tally.unexplained, "\n".join(tally.unexplained[:10])
    # Else hardly anything would have been compared.
    assert tally.failed < PER_SEED * ROWS * 0.6
