"""Goal: a SELECT that starts after a write was acknowledged sees it, in tables, views and indexes.

Method: one connection changes tables at random, another reads a view, an index and the query itself
after every change; all three must equal a model kept in Python.
"""

import random

import psycopg
import pytest

from tests.support.server import Server

Model = dict[int, tuple[int, int]]
Connection = psycopg.Connection[tuple]


def _totals(rows: Model) -> list[tuple[int, int, int]]:
    groups: dict[int, list[int]] = {}
    for group, amount in rows.values():
        groups.setdefault(group, []).append(amount)
    return sorted((group, len(amounts), sum(amounts)) for group, amounts in groups.items())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_views_and_indexes_follow_every_change(server: Server, seed: int) -> None:
    chance = random.Random(seed)
    with server.connect() as writer, server.connect() as reader:
        _run(chance, seed, writer, reader)


def _run(chance: random.Random, seed: int, writer: Connection, reader: Connection) -> None:
    names, items = f"names_{seed}", f"items_{seed}"
    writer.execute(f"CREATE TABLE {names} (grp int, name text)")
    writer.execute(f"CREATE TABLE {items} (id int, grp int, amount int)")
    writer.execute(f"INSERT INTO {names} VALUES (0, 'zero'), (1, 'one'), (2, 'two')")
    query = (
        f"SELECT n.grp, count(*) AS n, sum(i.amount) AS total"
        f" FROM {names} n JOIN {items} i ON i.grp = n.grp GROUP BY n.grp"
    )
    writer.execute(f"CREATE MATERIALIZED VIEW mv_{seed} AS {query}")
    writer.execute(f"CREATE VIEW v_{seed} AS {query}")
    writer.execute(f"CREATE DEFAULT INDEX ON v_{seed}")
    model: Model = {}
    for _ in range(40):
        _change(chance, writer, items, model)
        expected = _totals(model)
        for relation in (f"mv_{seed}", f"v_{seed}"):
            found = reader.execute(f"SELECT * FROM {relation} ORDER BY grp").fetchall()
            assert found == expected, f"{relation}, seed {seed}"
        key = chance.randint(0, 2)
        found = reader.execute(f"SELECT n FROM v_{seed} WHERE grp = %s", (key,)).fetchall()
        assert found == [(n,) for group, n, _ in expected if group == key]


def _change(chance: random.Random, writer: Connection, items: str, model: Model) -> None:
    choice = chance.random()
    execute = writer.execute
    if choice < 0.6 or not model:
        number = len(model) + chance.randint(1, 1_000_000)
        model[number] = (chance.randint(0, 2), chance.randint(-5, 5))
        execute(f"INSERT INTO {items} VALUES (%s, %s, %s)", (number, *model[number]))
    elif choice < 0.8:
        number = chance.choice(list(model))
        group, amount = model[number]
        model[number] = (group, amount + 1)
        execute(f"UPDATE {items} SET amount = amount + 1 WHERE id = %s", (number,))
    else:
        number = chance.choice(list(model))
        del model[number]
        execute(f"DELETE FROM {items} WHERE id = %s", (number,))
