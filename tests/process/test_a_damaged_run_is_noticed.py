"""Goal: a file of a replica's state that is damaged or cut off is noticed, and the state is built
again from the shards; what a view shows is right before and after.

Method: so little state may be in memory that it is written to files at once. A byte of one of them
is changed under the running task, or its end is cut off; then rows are written until it is noticed.
"""

import re
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from evertide.spark.arrangements.memory import MEMORY_VARIABLE
from tests.support.server import Server, eventually, running_server

Connection = psycopg.Connection[tuple]
QUERY = "SELECT t.k, u.w, length(t.pad) AS size FROM t JOIN u ON t.k = u.k"
UP = re.compile(r'event="resident task is up"')


def change_a_byte(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 2)
        byte = opened.read(1)
        opened.seek(-1, 1)
        opened.write(bytes([byte[0] ^ 1]))


def cut_off(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(4_096)


def was_noticed(server: Server) -> bool:
    """A task that reads beyond the end of a mapped file is killed by the kernel."""
    log = server.log_text()
    return "run is damaged" in log or len(UP.findall(log)) > 1


@pytest.mark.parametrize("damage", [change_a_byte, cut_off])
def test_the_state_is_built_again(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], None],
) -> None:
    files = tmp_path_factory.mktemp("f")  # sockets lie there: their names may not be long
    monkeypatch.setenv("TMPDIR", str(files))
    monkeypatch.setenv(MEMORY_VARIABLE, "2")
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (k int, pad text)")
        connection.execute("CREATE TABLE u (k int, w int)")
        connection.execute(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
        eventually(lambda: UP.search(server.log_text()), seconds=120)
        written = 0

        def write() -> int:
            nonlocal written
            connection.execute(
                "INSERT INTO t SELECT i, repeat('p', 20000) || i::text"
                f" FROM generate_series({written}, {written + 39}) AS i"
            )
            connection.execute("SELECT count(*) FROM v")
            written += 40
            return written

        def runs() -> list[Path]:
            return sorted(files.rglob("resident/**/*.arrow"))

        eventually(lambda: write() and runs(), pause=0)
        before = written
        damage(runs()[0])
        eventually(lambda: write() and was_noticed(server), pause=0, seconds=120)
        connection.execute(f"INSERT INTO u SELECT i, i FROM generate_series(0, {before - 1}) AS i")
        found = sorted(connection.execute("SELECT * FROM v").fetchall())
        assert found == [(k, k, 20_000 + len(str(k))) for k in range(before)]
        connection.execute("DELETE FROM t WHERE k > 0")
        assert connection.execute("SELECT * FROM v").fetchall() == [(0, 0, 20_001)]
        assert "dataflow stopped" not in server.log_text()
