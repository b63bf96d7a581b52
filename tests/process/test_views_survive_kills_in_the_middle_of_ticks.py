"""Goal: a view whose Spark is killed while it ticks is late, then right at every timestamp.

Method: rows are written without pause while the resident task's worker, or the whole JVM, is killed
with signal 9, again and again. What was told of the views before, meanwhile and afterwards is
compared with the tables at each of those timestamps.
"""

import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.support.server import Server, command_line, descendants_of, eventually, running_server
from tests.support.subscriber import Subscriber, held_at

KILLS = 2
UP = re.compile(r'event="resident task is up" pid=(\d+)')
VIEWS = {
    "summed": "SELECT k, count(*) AS n, sum(v) AS total FROM a GROUP BY k",
    "joined": "SELECT a.k, max(a.v) AS v, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    "first": "SELECT DISTINCT ON (k) k, v FROM a ORDER BY k, v DESC",
}


@contextmanager
def writing(server: Server) -> Iterator[Callable[[], int]]:
    """Writes without pause; gives a function that tells how many writes were acknowledged."""
    stop, done = threading.Event(), [0]

    def write() -> None:
        with server.connect() as connection:
            while not stop.is_set():
                number = done[0]
                connection.execute(f"INSERT INTO a VALUES ({number % 7}, {number})")
                if number % 3 == 0:
                    connection.execute(f"DELETE FROM a WHERE v = {number // 2}")
                done[0] += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield lambda: done[0]
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


def resident_task(server: Server) -> int:
    return int(UP.findall(server.log_text())[-1])


def incarnations(server: Server) -> int:
    return len(UP.findall(server.log_text()))


def more_than(count: Callable[[], int], known: int) -> bool:
    return count() > known


def jvm(server: Server) -> int:
    (replica,) = server.pids_of("replica")
    (found,) = [p for p in descendants_of(replica) if "/bin/java" in command_line(p)]
    return found


@pytest.mark.parametrize("victim", [resident_task, jvm])
def test_what_was_told_is_right(tmp_path: Path, victim: Callable[[Server], int]) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(running_server(tmp_path / "data"))
        connection = stack.enter_context(server.connect())
        for statement in ("a (k int, v int)", "b (k int)"):
            connection.execute(f"CREATE TABLE {statement} WITH (RETAIN HISTORY FOR '1h')")
        connection.execute("INSERT INTO b VALUES (1), (2), (3), (3)")
        followers: dict[str, Subscriber] = {}
        for name, query in VIEWS.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            reader = stack.enter_context(server.connect())
            followers[name] = Subscriber(reader, f"SUBSCRIBE {name} WITH (PROGRESS)")
            stack.callback(followers[name].stop)
        eventually(lambda: UP.search(server.log_text()), seconds=120)
        with writing(server) as written:
            for _ in range(KILLS):
                ups = incarnations(server)
                eventually(partial(more_than, written, written() + 20))
                os.kill(victim(server), signal.SIGKILL)
                eventually(partial(more_than, partial(incarnations, server), ups), seconds=120)
        row = connection.execute("SELECT mz_now()::text FROM a LIMIT 1").fetchone()
        assert row is not None
        for name, follower in followers.items():
            follower.wait_beyond(int(row[0]))
            check(connection, list(follower.rows), VIEWS[name], int(row[0]))


def check(
    connection: "psycopg.Connection[tuple]", rows: list[tuple], query: str, last: int
) -> None:
    """At some of the times, spread over all of them, and at the last."""
    times = sorted({int(row[0]) for row in rows if row[0] <= last})
    assert len(times) > 20
    for ts in [*times[1 :: max(len(times) // 40, 1)], last]:
        expected = Counter(connection.execute(f"SELECT * FROM ({query}) q AS OF {ts}").fetchall())
        assert held_at(rows, ts, progress=True) == expected, f"{query} at {ts}"
