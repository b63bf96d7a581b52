"""Fifty small views over one table: how long until a row is in all of them."""

import time

from bench.figure import RUNS, WARM_UP, Figure, Runs
from bench.place import Place
from bench.views.model import require_same

VIEWS = 50
ROWS = 100
REPETITIONS = 20
TARGET_MS = 150.0


def measure(place: Place) -> list[Figure]:
    """Each view is asked for the row by itself, over one connection, one after the other."""
    connection = place.connect()
    views = place.scaled(VIEWS)
    connection.execute("CREATE TABLE small (id bigint NOT NULL, amount bigint NOT NULL)")
    rows = ", ".join(f"({n}, {n % 10})" for n in range(ROWS))
    connection.execute(f"INSERT INTO small VALUES {rows}")
    for number in range(views):
        connection.execute(
            f"CREATE MATERIALIZED VIEW small_{number} AS"
            f" SELECT id, amount + {number} AS amount FROM small"
        )
    for number in range(views):
        found = connection.execute(f"SELECT count(*) FROM small_{number}").fetchall()
        require_same(found, [(ROWS,)], f"small_{number}")
    new_id = ROWS

    def once() -> float:
        nonlocal new_id
        new_id += 1
        started = time.perf_counter()
        connection.execute("INSERT INTO small VALUES (%s, 5)", (new_id,))
        answers = [
            connection.execute(f"SELECT amount FROM small_{n} WHERE id = %s", (new_id,)).fetchall()
            for n in range(views)
        ]
        elapsed_ms = (time.perf_counter() - started) * 1_000
        for number, found in enumerate(answers):
            require_same(found, [(5 + number,)], f"small_{number} at {new_id}")
        return elapsed_ms

    for _ in range(WARM_UP):
        once()
    runs = Runs(tuple([once() for _ in range(place.scaled(REPETITIONS, 3))] for _ in range(RUNS)))
    connection.execute("DROP TABLE small CASCADE")
    return [Figure(name=f"a row in {views} views", unit="ms", runs=runs, target=TARGET_MS)]
