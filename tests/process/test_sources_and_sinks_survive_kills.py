"""Goal: whatever is killed, sources go on where they were and each change is one line of a sink.

Method: a counter and an auction house of a cluster of two replicas fill sinks, straight and through
a view, while replicas and whole servers are killed with kill -9. Both generators end at a known
tick, so what must be there in the end is known, row by row.
"""

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import Server, eventually, start_server

TICKS = 1_500
KILLS = 8
BIDS = TICKS - TICKS // 10

SETUP = (
    "CREATE CLUSTER two (SIZE '1', REPLICATION FACTOR 2)",
    "SET cluster = two",
    f"CREATE SOURCE numbers FROM LOAD GENERATOR COUNTER (TICK INTERVAL '20ms', UP TO {TICKS})",
    f"""CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '20ms', UP TO {TICKS})
        FOR TABLES (auctions, bids)""",
    """CREATE MATERIALIZED VIEW best AS
       SELECT auction_id, count(*) AS bids, max(amount) AS best FROM bids GROUP BY auction_id""",
    "CREATE SINK numbers_out FROM numbers INTO FILE 'numbers.json' FORMAT JSON",
    "CREATE SINK bids_out FROM bids INTO FILE 'kept/bids.json' FORMAT JSON",
    "CREATE SINK best_out FROM best INTO FILE 'kept/best.json' FORMAT JSON",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def lines(data: Path, name: str) -> Iterator[tuple[int, int, dict[str, object]]]:
    """(timestamp, diff, row) of each line; a last one that is being written is left out."""
    for line in (data / "sinks" / name).read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            said = json.loads(line)
            yield said["timestamp"], said["diff"], said["row"]


def query(server: Server, sql: str) -> list[tuple]:
    with server.connect() as connection:
        return connection.execute(sql.encode()).fetchall()


def kill_something(server: Server, rng: random.Random, data: Path) -> Server:
    """A replica, or all there is; gives the server that runs afterwards."""
    if rng.random() < 0.4:
        server.kill_all()
        return start_server(data)
    replicas = server.pids_of("replica")
    if replicas:
        os.kill(rng.choice(replicas), signal.SIGKILL)
    return server


def numbers_seen(server: Server) -> int:
    (row,) = query(server, "SELECT count(*), max(counter) FROM numbers")
    assert row[0] == row[1], "numbers come without gaps"
    return int(row[0])


@pytest.mark.timeout(600)
def test_kills_lose_no_tick_and_double_no_line(data: Path) -> None:
    rng = random.Random(20261116)
    begun_ms = time.time_ns() // 1_000_000
    server = start_server(data)
    try:
        with server.connect() as connection:
            for statement in SETUP:
                connection.execute(statement.encode())
        for _ in range(KILLS):
            seen = numbers_seen(server)
            if seen < TICKS:
                eventually(lambda: numbers_seen(server) > seen, seconds=120)  # noqa: B023
            server = kill_something(server, rng, data)
        eventually(lambda: numbers_seen(server) == TICKS, seconds=120)
        check_end(server, data)
        first, _, _ = next(lines(data, "numbers.json"))
        assert first > begun_ms - 10_000, "ticks count from when the source was created"
    finally:
        pids = server.descendants()
        server.stop()
        server.close()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def check_end(server: Server, data: Path) -> None:
    """Sinks hold what the collections hold, each change once and in the order of time."""
    numbers = [n for (n,) in query(server, "SELECT counter FROM numbers ORDER BY 1")]
    assert numbers == list(range(1, TICKS + 1))
    bids = query(server, "SELECT id, auction_id FROM bids ORDER BY 1")
    assert [bid for bid, _ in bids] == list(range(1, BIDS + 1))
    eventually(lambda: len(list(lines(data, "numbers.json"))) >= TICKS)
    eventually(lambda: len(list(lines(data, "kept/bids.json"))) >= BIDS)
    for name, key, wanted in (("numbers.json", "counter", numbers), ("kept/bids.json", "id", None)):
        found = list(lines(data, name))
        assert [row[key] for _, _, row in found] == (wanted or [bid for bid, _ in bids])
        assert {diff for _, diff, _ in found} == {1}
        assert [ts for ts, _, _ in found] == sorted(ts for ts, _, _ in found)
    best = set(query(server, "SELECT auction_id, bids, best FROM best"))
    assert sum(row[1] for row in best) == BIDS
    eventually(lambda: followed(data) == dict.fromkeys(best, 1))
    every = [(ts, diff, tuple(row.items())) for ts, diff, row in lines(data, "kept/best.json")]
    assert len(every) == len(set(every)), "no line comes twice"


def followed(data: Path) -> dict[tuple[object, ...], int]:
    """What the lines of the view's sink add up to."""
    found: Counter[tuple[object, ...]] = Counter()
    for _, diff, row in lines(data, "kept/best.json"):
        found[tuple(row.values())] += diff
    return {row: diff for row, diff in found.items() if diff}
