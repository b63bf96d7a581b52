"""A SELECT of some rows of a large table or view gives what PostgreSQL gives."""

from collections.abc import Iterator
from random import Random

import psycopg
import pytest
from psycopg import errors

from tests.support.server import Server

VIEW = """
SELECT part, count(*) AS items, sum(price) AS price, max(name) AS name FROM found GROUP BY part"""
CONDITIONS = (
    "part = {n}", "part IN ({n}, {m}, 7)", "part > {n}", "part IS NULL", "part = {n} AND items > 1",
    "name = 'n{n}'", "name LIKE 'n{n}%'", "price < {n}.5", "part = {n} OR items = {m}",
    "part = {n} AND price IS NOT NULL", "items * {n} > {m}", "part + 1 = {n}",
)  # fmt: skip


@pytest.fixture(scope="module")
def pair(server: Server, postgres_dsn: str) -> Iterator[tuple[psycopg.Connection, ...]]:
    with server.connect() as ours, psycopg.connect(postgres_dsn, autocommit=True) as theirs:
        theirs.execute("CREATE SCHEMA found_by_columns")
        theirs.execute("SET search_path = found_by_columns")
        yield ours, theirs
        theirs.execute("DROP SCHEMA found_by_columns CASCADE")


def rows(rng: Random, start: int, count: int) -> str:
    return ", ".join(
        f"({number}, {rng.choice(['NULL', *range(900)])}, {rng.choice(['NULL', '1.25', '77'])},"
        f" 'n{rng.randrange(900)}')"
        for number in range(start, start + count)
    )


def test_every_condition_finds_its_rows(pair: tuple[psycopg.Connection, ...]) -> None:
    rng = Random(11)
    ours, theirs = pair
    filled = f"INSERT INTO found VALUES {rows(rng, 0, 3000)}"
    for connection in pair:
        connection.execute("CREATE TABLE found (id int, part int, price numeric(9,2), name text)")
        connection.execute(filled)
    ours.execute(f"CREATE MATERIALIZED VIEW found_view AS {VIEW}")
    theirs.execute(f"CREATE VIEW found_view AS {VIEW}")
    for step in range(6):
        for condition in CONDITIONS:
            where = condition.format(n=rng.randrange(900), m=rng.randrange(900))
            asked = f"SELECT * FROM found_view WHERE {where}"
            assert sorted(ours.execute(asked), key=repr) == sorted(
                theirs.execute(asked), key=repr
            ), where
        change = [
            f"DELETE FROM found WHERE id % 7 = {step}",
            f"INSERT INTO found VALUES {rows(rng, 10_000 + 100 * step, 100)}",
            f"UPDATE found SET part = part + 1 WHERE id < {100 * step}",
        ]
        for connection in pair:
            for statement in change:
                connection.execute(statement)


def test_a_view_in_error_is_in_error_whatever_rows_are_asked_for(server: Server) -> None:
    with server.connect() as ours:
        ours.execute("CREATE TABLE divided (id int, by int)")
        ours.execute("INSERT INTO divided SELECT i, 1 + i FROM generate_series(0, 2000) i")
        ours.execute("CREATE MATERIALIZED VIEW quotients AS SELECT id, 100 / by AS q FROM divided")
        asked = "SELECT q FROM quotients WHERE id = 3"
        assert ours.execute(asked).fetchall() == [(25,)]
        ours.execute("INSERT INTO divided VALUES (-1, 0)")
        with pytest.raises(errors.DivisionByZero):
            ours.execute(asked)
        ours.execute("DELETE FROM divided WHERE id = -1")
        assert ours.execute(asked).fetchall() == [(25,)]
