"""Goal: what one client was told, another client sees, whichever adapter each is connected to.

Method: two adapters over one environment; each step starts only after the one before was
acknowledged, on the other adapter.
"""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.support.server import Server, eventually, running_server

pytestmark = pytest.mark.wire


@pytest.fixture(scope="module")
def two_adapters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("two") / "data", ["--adapters", "2"]) as server:
        yield server


def test_create_insert_select_alternate_over_two_adapters(two_adapters: Server) -> None:
    with two_adapters.connect(0) as c1, two_adapters.connect(1) as c2:
        for number in range(200):
            first, second = (c1, c2) if number % 2 else (c2, c1)
            first.execute(f"CREATE TABLE foo_{number} (a int)")
            second.execute(f"INSERT INTO foo_{number} VALUES ({number})")
            assert first.execute(f"SELECT a FROM foo_{number}").fetchall() == [(number,)]
            second.execute(f"DROP TABLE foo_{number}")


def test_an_index_is_used_at_once_on_the_other_adapter(two_adapters: Server) -> None:
    with two_adapters.connect(0) as c1, two_adapters.connect(1) as c2:
        c1.execute("CREATE TABLE ix (a int, b text)")
        c2.execute("INSERT INTO ix VALUES (1, 'x'), (2, 'y')")
        for number in range(5):
            c1.execute(f"CREATE INDEX ix_{number} ON ix (a)")
            assert c2.execute("SELECT b FROM ix WHERE a = 2").fetchall() == [("y",)]
            c2.execute(f"DROP INDEX ix_{number}")


def test_killing_one_adapter_leaves_the_other_serving(two_adapters: Server) -> None:
    with two_adapters.connect(0) as c1:
        c1.execute("CREATE TABLE survivors (a int)")
        c1.execute("INSERT INTO survivors VALUES (1)")
    killed = two_adapters.pids_of("adapter")[0]
    os.kill(killed, signal.SIGKILL)

    def other_serves() -> bool:
        rows = []
        for adapter in (0, 1):
            try:
                with two_adapters.connect(adapter) as connection:
                    rows.append(connection.execute("SELECT a FROM survivors").fetchall())
            except Exception:  # noqa: BLE001  one of the two is gone
                continue
        return bool(rows) and all(found == [(1,)] for found in rows)

    assert other_serves(), "the adapter that was not killed must answer at once"
    eventually(lambda: len(two_adapters.pids_of("adapter")) == 2)
