"""Goal: beyond the crossover a tick is a recompute; readers wait for it and see nothing wrong."""

import threading

import psycopg

from tests.support.server import Server

ROWS = 11_000


class Reader:
    """Reads a view over and over, and keeps what it saw."""

    def __init__(self, server: Server) -> None:
        self.seen: list[tuple[object, ...]] = []
        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "Reader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(120)
        assert not self._thread.is_alive()

    def _read(self) -> None:
        with self._server.connect() as connection:
            while not self._stop.is_set():
                found = connection.execute("SELECT sum(n), sum(total) FROM sums").fetchone()
                assert found is not None
                self.seen.append(found)


def executors(connection: psycopg.Connection, name: str) -> list[str]:
    found = connection.execute(
        "SELECT r.executor FROM mz_internal.mz_tick_records r"
        " JOIN mz_objects o ON o.id = r.object_id WHERE o.name = %s ORDER BY r.started_at",
        (name,),
    )
    return [executor for (executor,) in found.fetchall()]


def test_a_large_update_is_recomputed_and_a_small_one_is_followed(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE figures (g int, a int)")
        connection.execute(
            f"INSERT INTO figures SELECT x % 100, x FROM generate_series(1, {ROWS}) AS x"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW sums AS"
            " SELECT g, count(*) AS n, sum(a) AS total FROM figures GROUP BY g"
        )
        connection.execute("CREATE VIEW halved AS SELECT a / 2 AS h, a FROM figures")
        connection.execute("CREATE INDEX by_half ON halved (h)")
        before = connection.execute("SELECT sum(n), sum(total) FROM sums").fetchone()
        assert before == (ROWS, ROWS * (ROWS + 1) // 2)
        assert connection.execute("SELECT a FROM halved WHERE h = 0").fetchall() == [(1,)]
        assert "recompute" not in executors(connection, "sums")
        with Reader(engine_server) as reader:
            connection.execute("UPDATE figures SET a = a + 1")
            after = connection.execute("SELECT sum(n), sum(total) FROM sums").fetchone()
        assert after == (ROWS, ROWS * (ROWS + 1) // 2 + ROWS)
        assert connection.execute("SELECT a FROM halved WHERE h = 0").fetchall() == []
        found = connection.execute("SELECT a FROM halved WHERE h = 1 ORDER BY a").fetchall()
        assert found == [(2,), (3,)]
        assert set(reader.seen) <= {before, after}
        changed = [now for now in reader.seen if now == after]
        assert reader.seen[len(reader.seen) - len(changed) :] == changed  # never back again
        assert executors(connection, "sums")[-1] == "recompute"
        connection.execute("INSERT INTO figures VALUES (0, 5)")
        last = connection.execute("SELECT sum(n), sum(total) FROM sums").fetchone()
        assert last == (ROWS + 1, ROWS * (ROWS + 1) // 2 + ROWS + 5)
        assert executors(connection, "sums")[-1] != "recompute"
        assert "recompute" not in executors(connection, "by_half"), "an index is followed"
