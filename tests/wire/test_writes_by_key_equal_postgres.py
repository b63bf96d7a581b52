"""Goal: INSERT, UPDATE and DELETE change what they change in PostgreSQL, alone and in blocks.

Method: random statements on one table, whose conditions name keys one by one, in long lists, by
ranges, by text, by nothing, or by what only rows can tell; both sides count the same rows and hold
the same rows after each block.
"""

from collections.abc import Iterator
from random import Random

import psycopg
import pytest

from tests.support.server import Server

COLUMNS = "(id bigint, part int, price numeric(12,2), flag text, ship date)"
ROWS = 300


@pytest.fixture(scope="module")
def pair(server: Server, postgres_dsn: str) -> Iterator[tuple[psycopg.Connection, ...]]:
    with server.connect() as ours, psycopg.connect(postgres_dsn, autocommit=True) as theirs:
        for connection in (ours, theirs):
            connection.execute("CREATE SCHEMA keyed")
            connection.execute("SET search_path = keyed")
        yield ours, theirs
        theirs.execute("DROP SCHEMA keyed CASCADE")


def new_rows(rng: Random, start: int, count: int) -> str:
    rows = []
    for number in range(start, start + count):
        price = rng.choice(["NULL", f"{rng.randrange(100_000) / 100:.2f}"])
        flag = rng.choice(["'A'", "'R'", "'it''s'", "NULL"])
        ship = f"'2024-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}'"
        rows.append(
            f"({number}, {rng.choice(['NULL', rng.randrange(9)])}, {price}, {flag}, {ship})"
        )
    return ", ".join(rows)


def condition(rng: Random, most: int) -> str:
    keys = [str(rng.randrange(most)) for _ in range(rng.choice([1, 3, 40, 90]))]
    listed = ", ".join(keys)
    return rng.choice([
        f"id = {keys[0]}",
        f"{keys[0]} = id",
        f"id IN ({listed})",
        f"id IN ({listed}, NULL)",
        f"id IN ({listed}) AND part > 3",
        f"id IN ({listed}) AND price / (part - 3) > 0 AND part <> 3",
        f"id = ANY ('{{{','.join(keys)}}}')",
        f"id NOT IN ({listed}) AND id % 7 = 0",
        f"part IN ({listed}) AND flag = 'A'",
        f"flag IN ({', '.join(['NULL', repr('A')] * 20)}) AND id < {most // 4}",
        f"ship IN ({', '.join(['DATE ' + repr('2024-01-05')] * 3)})",
        f"ship = '2024-02-0{rng.randrange(1, 9)}'",
        f"id BETWEEN {keys[0]} AND {keys[0]} + 5",
        f"price IN ({', '.join(['1.5', '20', '33.10'] * 12)}) OR part IS NULL AND id < 20",
        "id IN (SELECT max(id) FROM {table})",
        f"lower(flag) = 'r' AND id > {most - 30}",
    ])  # fmt: skip


def statement(rng: Random, most: int) -> str:
    kind = rng.randrange(6)
    if kind == 0:
        return f"INSERT INTO {{table}} VALUES {new_rows(rng, most, rng.choice([1, 50]))}"
    if kind == 1:
        selected = "SELECT id + 1000, part, price, flag, ship FROM {table}"
        return f"INSERT INTO {{table}} {selected} WHERE {condition(rng, most)}"
    if kind < 4:
        change = rng.choice(["part = part + 1", "price = price * 2, flag = NULL", "id = id + 1"])
        return f"UPDATE {{table}} SET {change} WHERE {condition(rng, most)}"
    return f"DELETE FROM {{table}} WHERE {condition(rng, most)}"


def contents(connection: psycopg.Connection, table: str) -> list[object]:
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    return sorted(rows, key=repr)


@pytest.mark.parametrize("seed", range(12))
def test_random_statements(seed: int, pair: tuple[psycopg.Connection, ...]) -> None:
    rng = Random(seed)
    table = f"keyed{seed}"
    for connection in pair:
        connection.execute(f"CREATE TABLE {table} {COLUMNS}")
        connection.execute(f"INSERT INTO {table} VALUES {new_rows(Random(seed), 0, ROWS)}")
    most = ROWS
    for _ in range(8):
        in_block = rng.random() < 0.5
        statements = [statement(rng, most) for _ in range(rng.randrange(1, 5) if in_block else 1)]
        most += 50
        counts = [run(connection, table, statements, in_block=in_block) for connection in pair]
        assert counts[0] == counts[1], statements
        ours, theirs = (contents(connection, table) for connection in pair)
        assert ours == theirs, statements


def run(
    connection: psycopg.Connection, table: str, statements: list[str], *, in_block: bool
) -> list[object]:
    """How many rows each statement changed, or its error, which ends the block."""
    found: list[object] = []
    if in_block:
        connection.execute("BEGIN")
    try:
        for text in statements:
            found.append(connection.execute(text.replace("{table}", table)).rowcount)
        if in_block:
            connection.execute("COMMIT")
    except psycopg.Error as error:
        found.append(error.sqlstate)
        if in_block:
            connection.execute("ROLLBACK")
    return found


def test_returning_shows_what_was_changed(pair: tuple[psycopg.Connection, ...]) -> None:
    found = []
    for connection in pair:
        connection.execute(f"CREATE TABLE shown {COLUMNS}")
        keys = ", ".join(map(str, range(40)))
        values = new_rows(Random(1), 0, 60)
        answers = [
            connection.execute(f"INSERT INTO shown VALUES {values} RETURNING id, price"),
            connection.execute(
                f"UPDATE shown SET part = 7 WHERE id IN ({keys}) RETURNING id, part"
            ),
            connection.execute(f"DELETE FROM shown WHERE id IN ({keys}) RETURNING *"),
        ]
        found.append([sorted(answer.fetchall(), key=repr) for answer in answers])
    assert found[0] == found[1]


def test_a_block_fails_if_what_it_read_changed(server: Server) -> None:
    with server.connect() as one, server.connect() as other:
        one.execute("CREATE TABLE raced (id int, v int)")
        one.execute("CREATE TABLE beside (id int)")
        one.execute("INSERT INTO raced VALUES (1, 1), (2, 2)")
        one.execute("BEGIN")
        assert one.execute("DELETE FROM raced WHERE id = 1").rowcount == 1
        other.execute("UPDATE raced SET v = 9 WHERE id = 1")
        with pytest.raises(psycopg.errors.SerializationFailure, match="concurrent update"):
            one.execute("COMMIT")
        assert sorted(one.execute("SELECT * FROM raced").fetchall()) == [(1, 9), (2, 2)]


def test_a_block_that_found_nothing_fails_if_something_came(server: Server) -> None:
    with server.connect() as one, server.connect() as other:
        one.execute("CREATE TABLE phantom (id int)")
        one.execute("CREATE TABLE outcome (n int)")
        one.execute("BEGIN")
        assert one.execute("DELETE FROM phantom WHERE id = 1").rowcount == 0
        one.execute("INSERT INTO outcome VALUES (0)")
        other.execute("INSERT INTO phantom VALUES (1)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.execute("COMMIT")
        assert one.execute("SELECT * FROM outcome").fetchall() == []


def test_writes_to_other_tables_do_not_matter_to_a_block(server: Server) -> None:
    with server.connect() as one, server.connect() as other:
        one.execute("CREATE TABLE mine (id int)")
        one.execute("CREATE TABLE theirs (id int)")
        one.execute("INSERT INTO mine VALUES (1), (2)")
        one.execute("BEGIN")
        one.execute("DELETE FROM mine WHERE id = 1")
        other.execute("INSERT INTO theirs VALUES (1)")
        one.execute("INSERT INTO mine VALUES (3)")
        other.execute("INSERT INTO theirs VALUES (2)")
        one.execute("COMMIT")
        assert sorted(one.execute("SELECT * FROM mine").fetchall()) == [(2,), (3,)]


def test_a_rolled_back_block_leaves_everything(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE rolled_back (id int)")
        connection.execute("INSERT INTO rolled_back VALUES (1), (2)")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM rolled_back")
        assert connection.execute("UPDATE rolled_back SET id = 5").rowcount == 0
        connection.execute("ROLLBACK")
        assert sorted(connection.execute("SELECT * FROM rolled_back").fetchall()) == [(1,), (2,)]


def test_what_follows_from_a_changed_table_is_not_read_in_its_block(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE below (id int)")
        connection.execute("CREATE MATERIALIZED VIEW above AS SELECT id FROM below")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO below VALUES (1)")
        with pytest.raises(psycopg.Error, match='materialized view "above" cannot be read here'):
            connection.execute("INSERT INTO below SELECT id FROM above")
        connection.execute("ROLLBACK")


def test_a_row_without_the_key_is_removed_in_a_block(
    pair: tuple[psycopg.Connection, ...],
) -> None:
    """Rows are found by a column of integers; later statements of the block must do without it."""
    for connection in pair:
        connection.execute("CREATE TABLE keyless (a int, b int, c text)")
        rows = ", ".join(f"({n}, {n % 7}, 'n{n % 3}')" for n in range(1_000))
        connection.execute(f"INSERT INTO keyless VALUES {rows}")
        connection.execute("UPDATE keyless SET b = 5 WHERE a = 3")
        connection.execute("INSERT INTO keyless VALUES (NULL, 9, 'x')")
        with connection.transaction():
            removed = connection.execute("DELETE FROM keyless WHERE a IS NULL RETURNING b")
            assert removed.fetchall() == [(9,)]
            assert connection.execute("DELETE FROM keyless WHERE b = 2").rowcount == 143
        left = connection.execute("SELECT count(*), count(a) FROM keyless").fetchall()
        assert left == [(857, 857)]
