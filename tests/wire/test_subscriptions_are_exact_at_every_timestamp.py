"""Goal: what a subscription told up to a timestamp is what a SELECT at that timestamp returns.

Method: random writes to two tables while a table, a materialized view over both, a view and a query
are followed. An open transaction keeps all of that history readable, and afterwards every timestamp
that anybody was told of is read again with AS OF.
"""

from collections import Counter
from contextlib import ExitStack
from random import Random

import pytest

from tests.support.server import Server
from tests.support.subscriber import Subscriber, Told, held_at, subscribed

JOINED = "SELECT a.k, sum(a.v) AS s, min(b.w) AS m FROM a JOIN b ON a.k = b.k GROUP BY a.k"
FOLLOWED = {
    "a": "SELECT * FROM a",
    "m": "SELECT * FROM m",
    "v": "SELECT * FROM v",
    "(SELECT count(*), sum(v) FROM a)": "SELECT count(*), sum(v) FROM a",
    "(SELECT DISTINCT w FROM b WHERE w > 2)": "SELECT DISTINCT w FROM b WHERE w > 2",
}


def write(rng: Random) -> str:
    table, column = rng.choice([("a", "v"), ("b", "w")])
    key, value = rng.randrange(6), rng.randrange(8)
    return rng.choice(
        [
            f"INSERT INTO {table} VALUES ({key}, {value}), ({key}, {value + 1})",
            f"INSERT INTO {table} VALUES ({key}, {value})",
            f"DELETE FROM {table} WHERE k = {key}",
            f"UPDATE {table} SET {column} = {column} + 1 WHERE k = {key}",
            f"UPDATE {table} SET k = {key} WHERE {column} = {value}",
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_told_is_what_is_selected(server: Server, seed: int) -> None:
    rng, schema = Random(seed), f"exact{seed}"
    with ExitStack() as stack:
        writer, keeper = (stack.enter_context(server.connect()) for _ in range(2))
        writer.execute(f"CREATE SCHEMA {schema}")
        for connection in (writer, keeper):
            connection.execute(f"SET search_path = {schema}")
        writer.execute("CREATE TABLE a (k int, v int)")
        writer.execute("CREATE TABLE b (k int, w int)")
        writer.execute("INSERT INTO a VALUES (1, 1), (2, 2), (2, 2)")
        writer.execute("INSERT INTO b VALUES (1, 3), (2, 4)")
        writer.execute(f"CREATE VIEW v AS {JOINED}")
        writer.execute(f"CREATE MATERIALIZED VIEW m AS {JOINED}")
        keeper.execute("BEGIN")
        keeper.execute("SELECT * FROM m")
        followers: dict[str, Subscriber] = {
            source: stack.enter_context(
                subscribed(server, f"SUBSCRIBE {source} WITH (PROGRESS)", schema)
            )
            for source in FOLLOWED
        }
        for follower in followers.values():
            follower.wait_for(2)
        for _ in range(30):
            writer.execute(write(rng))
        row = writer.execute("SELECT mz_now()::text").fetchone()
        assert row is not None
        for follower in followers.values():
            follower.wait_beyond(int(row[0]))
        check_all(writer, {s: list(f.rows) for s, f in followers.items()}, int(row[0]))


def check_all(connection: object, told: dict[str, list[Told]], last: int) -> None:
    told = {s: [row for row in rows if row[0] <= last] for s, rows in told.items()}
    begun = max(int(rows[0][0]) for rows in told.values())
    times = {int(row[0]) for rows in told.values() for row in rows if row[0] >= begun}
    assert len(times) > 20, "most writes changed something"
    for source, rows in told.items():
        check_order(rows)
        for ts in sorted(times):
            query = f"{FOLLOWED[source]} AS OF {ts}"
            selected = connection.execute(query).fetchall()  # type: ignore[attr-defined]
            assert held_at(rows, ts, progress=True) == Counter(selected), f"{source} at {ts}"


def check_order(rows: list[Told]) -> None:
    """Times go up, nothing comes below a progress, and a row comes once for each time."""
    progress = 0
    previous = 0
    changes: Counter[Told] = Counter()
    for row in rows:
        assert row[0] >= previous
        assert row[0] >= progress
        previous = row[0]
        if row[1]:
            progress = row[0]
        else:
            assert row[2] != 0
            changes[(row[0], *row[3:])] += 1
    assert set(changes.values()) <= {1}
