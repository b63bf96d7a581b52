"""Many views that nothing happens to, beside a table that is written all the time."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.figure import Figure, alternating
from bench.place import Place

VIEWS = 200
WRITES_PER_SECOND = 100
REPETITIONS = 200
# A lookup beside the writes may take this many times its idle time.
TARGET_RATIO = 2.0


def measure(place: Place) -> list[Figure]:
    """A lookup on one of the views, idle and beside writes to a table that none of them reads."""
    connection = place.connect()
    views = place.scaled(VIEWS)
    connection.execute("CREATE TABLE still (id int NOT NULL, amount int)")
    connection.execute("CREATE TABLE busy (id int NOT NULL, amount int)")
    rows = ", ".join(f"({n}, {n % 10})" for n in range(100))
    connection.execute(f"INSERT INTO still VALUES {rows}")
    for number in range(views):
        connection.execute(
            f"CREATE MATERIALIZED VIEW idle_{number} AS"
            f" SELECT id, amount + {number} AS amount FROM still"
        )
    numbers = itertools.cycle(range(0, views, 7))

    def lookup() -> None:
        number = next(numbers)
        found = connection.execute(f"SELECT amount FROM idle_{number} WHERE id = 5").fetchall()
        assert found == [(5 + number,)], found

    for number in range(views):
        assert connection.execute(f"SELECT count(*) FROM idle_{number}").fetchone() == (100,)
    (idle,) = alternating(place.scaled(REPETITIONS, 30), lookup)
    with _writing(place):
        (beside,) = alternating(place.scaled(REPETITIONS, 30), lookup)
    connection.execute("DROP TABLE still CASCADE")
    connection.execute("DROP TABLE busy")
    return [
        Figure(
            name=f"lookup on one of {views} idle views",
            unit="ms",
            runs=beside,
            target=TARGET_RATIO * idle.median,
            baseline_name=f"the same without {WRITES_PER_SECOND} writes/s",
            baseline=idle,
        )
    ]


@contextmanager
def _writing(place: Place) -> Iterator[None]:
    """One-row writes at a steady rate, from another connection."""
    stop = threading.Event()
    written = itertools.count()

    def write() -> None:
        with place.server.connect() as connection:
            connection.prepare_threshold = 0
            due = time.perf_counter()
            while not stop.is_set():
                connection.execute("INSERT INTO busy VALUES (%s, 1)", (next(written),))
                due += 1 / WRITES_PER_SECOND
                time.sleep(max(0.0, due - time.perf_counter()))

    thread = threading.Thread(target=write)
    thread.start()
    started = time.perf_counter()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    rate = next(written) / (time.perf_counter() - started)
    assert rate > WRITES_PER_SECOND * 0.8, f"only {rate:.0f} writes/s were possible"
