"""Goal: whenever everything is killed, a view that is being replaced has its old definition or its
new one, at every timestamp, and what was begun comes to its end.

Method: rows are written and an apply is under way when all processes get signal 9. The server is
started again; what the view then says of all times is compared with what the tables say of them.
"""

import threading
from contextlib import suppress
from pathlib import Path
from random import Random

import psycopg
import pytest

from tests.support.server import Server, eventually, start_server
from tests.support.subscriber import Subscriber
from tests.views.replaced import ABOVE, Definition, check, random_definition

KEPT = "WITH (RETAIN HISTORY FOR '1h')"
VERSIONS = (
    "SELECT count(*) FROM mz_internal.mz_materialized_view_versions n"
    " JOIN mz_materialized_views v ON v.id = n.id WHERE v.name = 'mv'"
)
APPLY = "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r"


def number(connection: "psycopg.Connection[tuple]", query: str) -> int:
    found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])


def create(connection: "psycopg.Connection[tuple]", first: Definition) -> None:
    for table in "tu":
        connection.execute(f"CREATE TABLE {table} (k int, v int) {KEPT}")
        connection.execute(
            f"INSERT INTO {table} SELECT n % 6, n % 20 FROM generate_series(1, 40) n"
        )
    connection.execute(f"CREATE MATERIALIZED VIEW below {KEPT} AS SELECT * FROM t")
    connection.execute(f"CREATE MATERIALIZED VIEW mv {KEPT} AS {first.query}")
    connection.execute(f"CREATE MATERIALIZED VIEW above {KEPT} AS {ABOVE}")
    connection.execute("SELECT count(*) FROM above")


def write_and_apply(server: Server, draw: Random, moment_s: float) -> None:
    """Until all is killed, which is a moment after the apply began."""
    ended = threading.Event()

    def write() -> None:
        with suppress(psycopg.Error), server.connect() as connection:
            while not ended.wait(0.005):
                k, v = draw.randrange(6), draw.randrange(20)
                table = draw.choice("tu")
                connection.execute(f"INSERT INTO {table} VALUES ({k}, {v})")
                connection.execute(f"DELETE FROM {table} WHERE v = {draw.randrange(20)}")

    def apply() -> None:
        with suppress(psycopg.Error), server.connect() as connection:
            connection.execute(APPLY)

    threads = [threading.Thread(target=write), threading.Thread(target=apply)]
    for thread in threads:
        thread.start()
    ended.wait(moment_s)
    server.kill_all()
    ended.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def told(server: Server, start: int) -> dict[str, list[tuple]]:
    """All that the tables and views say of every timestamp from one on."""
    found: dict[str, list[tuple]] = {}
    with server.connect() as connection:
        end = number(connection, "SELECT mz_now()::text FROM t LIMIT 1")
    for name in ("t", "u", "mv", "above"):
        with server.connect() as connection:
            text = f"SUBSCRIBE {name} WITH (PROGRESS) AS OF {start}"
            follower = Subscriber(connection, text)
            try:
                follower.wait_beyond(end)
            finally:
                follower.stop()
            found[name] = list(follower.rows)
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_a_view_is_before_or_after_and_never_between(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    definitions = [random_definition(draw)]
    server = start_server(tmp_path / "data")
    try:
        with server.connect() as connection:
            create(connection, definitions[0])
            start = number(connection, "SELECT mz_now()::text FROM t LIMIT 1")
            second = random_definition(draw)
            connection.execute(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {second.query}")
        write_and_apply(server, draw, (0.1, 0.3, 0.6, 1.2)[seed])
        server = start_server(tmp_path / "data")
        with server.connect() as connection:
            connection.execute("SET statement_timeout = '120s'")
            staged = number(connection, "SELECT count(*) FROM mz_internal.mz_replacements")
            versions = number(connection, VERSIONS)
            assert (staged, versions) in ((1, 1), (0, 2))
            connection.execute("INSERT INTO t VALUES (1, 1), (2, 3)")
            if staged:
                connection.execute(APPLY)
            definitions.append(second)

            def over() -> bool:
                both = f"({second.query}) EXCEPT ALL SELECT k, v FROM mv"
                return connection.execute(both).fetchall() == []

            eventually(over, seconds=120)
            connection.execute("INSERT INTO u VALUES (1, 1), (4, 7)")
        check(definitions, told(server, start))
    finally:
        server.kill_all()
