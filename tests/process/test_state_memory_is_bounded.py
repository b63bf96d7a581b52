"""Goal: what arrangements keep in memory is bounded by a setting; what is larger lies in runs.

Method: a server that may keep 8 MB is given ten times as much, in few large rows, which an index
and a join arrange. The anonymous memory of the task that keeps them, mapped files not counted, is
read from /proc before and afterwards; what the view and the index answer is right nevertheless.
"""

import re
from pathlib import Path

import pytest

from evertide.spark.arrangements.memory import DEFAULT_MEMORY_MB, MEMORY_VARIABLE, memory_limit
from tests.support.server import Server, eventually, running_server

LIMIT_MB = 8
ROW_BYTES = 200_000
ROWS_AT_ONCE = 10
ROUNDS = 60
UP = re.compile(r'event="resident task is up" pid=(\d+)')


def anonymous_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    found = re.search(r"RssAnon:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


def resident_task(server: Server) -> int:
    return int(eventually(lambda: UP.findall(server.log_text()), seconds=120)[-1])


def test_a_state_far_larger_than_the_setting_lies_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEMORY_VARIABLE, str(LIMIT_MB))
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE large (k int, pad text)")
        connection.execute("CREATE TABLE keys (k int)")
        connection.execute("CREATE VIEW kept AS SELECT k, pad FROM large WHERE k >= 0")
        connection.execute("CREATE INDEX kept_by_key ON kept (k)")
        connection.execute(
            "CREATE MATERIALIZED VIEW joined AS SELECT keys.k, length(large.pad) AS size"
            " FROM keys JOIN large ON keys.k = large.k"
        )
        task = resident_task(server)
        most = before = anonymous_mb(task)
        for number in range(ROUNDS):
            first = number * ROWS_AT_ONCE
            connection.execute(
                f"INSERT INTO large SELECT i, repeat('x', {ROW_BYTES}) || i::text"
                f" FROM generate_series({first}, {first + ROWS_AT_ONCE - 1}) AS i"
            )
            connection.execute("SELECT count(*) FROM joined")
            connection.execute(f"SELECT length(pad) FROM kept WHERE k = {first}")
            most = max(most, anonymous_mb(task))
        written_mb = ROUNDS * ROWS_AT_ONCE * ROW_BYTES / (1 << 20)
        assert written_mb > 9 * LIMIT_MB
        # Two arrangements of it would take twice that. What a tick takes for itself and what the
        # allocator keeps came to 0.62 to 0.79 of it.
        assert most - before < written_mb, f"from {before:.0f} MB to {most:.0f} MB"
        assert resident_task(server) == task, "it was killed"
        last = ROUNDS * ROWS_AT_ONCE - 1
        connection.execute(f"INSERT INTO keys VALUES (0), ({last}), (-1)")
        size = ROW_BYTES + len(str(last))
        found = connection.execute("SELECT k, size FROM joined ORDER BY k").fetchall()
        assert found == [(0, ROW_BYTES + 1), (last, size)]
        found = connection.execute(f"SELECT k, length(pad) FROM kept WHERE k = {last}").fetchall()
        assert found == [(last, size)]


def test_what_is_no_number_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("", "many", "-1", "0"):
        monkeypatch.setenv(MEMORY_VARIABLE, given)
        assert memory_limit() == DEFAULT_MEMORY_MB << 20
    monkeypatch.setenv(MEMORY_VARIABLE, "7")
    assert memory_limit() == 7 << 20
