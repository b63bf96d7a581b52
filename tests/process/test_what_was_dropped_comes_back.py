"""Goal: a drop can be undone after a restart, after a power cut at any moment, and until its time
is over; meanwhile nobody writes to what is dropped, and processes agree on what there is.

Method: a real server that is killed; statements that race; catalog and shards looked at afterwards.
"""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from random import Random

import psycopg
import pytest

from tests.process.stored_environment import faults_of_shards
from tests.support.server import eventually, running_server
from tests.support.site import running_site

Connection = psycopg.Connection[tuple]
MADE = (
    "CREATE TABLE t (a int)",
    "INSERT INTO t VALUES (1), (2)",
    "CREATE VIEW v AS SELECT a FROM t",
    "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(a) AS s FROM v",
    "CREATE MATERIALIZED VIEW mm AS SELECT n * 10 AS n FROM m",
    "CREATE INDEX i ON t (a)",
)


def run(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement.encode())


def read(connection: Connection, sql: str) -> list[tuple]:
    return connection.execute(sql.encode()).fetchall()


def names(connection: Connection) -> list[str]:
    found = read(connection, "SELECT name FROM mz_objects WHERE id LIKE 'u%' ORDER BY name")
    return [str(name) for (name,) in found]


def dropped(connection: Connection) -> list[str]:
    found = read(connection, "SELECT name FROM mz_internal.mz_dropped_objects ORDER BY name")
    return [str(name) for (name,) in found]


class Toggler(threading.Thread):
    """Drops everything and brings it back until its server is gone."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.stopped = threading.Event()
        self._connection = connection

    def run(self) -> None:
        with suppress(psycopg.Error):
            while not self.stopped.is_set():
                run(self._connection, "DROP TABLE t CASCADE", "UNDROP TABLE t")

    def end(self) -> None:
        self.stopped.set()
        self.join(30)
        self._connection.close()


def test_a_power_cut_changes_nothing_about_what_can_be_undone(tmp_path: Path) -> None:
    with running_site(tmp_path / "data") as site:
        with site.connect() as connection:
            run(connection, *MADE)
            assert read(connection, "SELECT * FROM mm") == [(20,)]
            run(connection, "DROP TABLE t CASCADE", "CREATE TABLE t (b text)")
        site.restart()
        with site.connect() as connection:
            assert names(connection) == ["t"]
            assert dropped(connection) == ["i", "m", "mm", "t", "v"]
            run(connection, "DROP TABLE t", "DROP TABLE IF EXISTS t")
            with pytest.raises(psycopg.Error) as refused:
                run(connection, "DROP TABLE t")
            assert refused.value.sqlstate == "42P01"
            run(connection, "UNDROP TABLE t AS texts")
            run(connection, "UNDROP TABLE t")
        site.restart()
        with site.connect() as connection:
            assert names(connection) == ["i", "m", "mm", "t", "texts", "v"]
            assert dropped(connection) == []
            assert read(connection, "SELECT * FROM t ORDER BY a") == [(1,), (2,)]
            run(connection, "INSERT INTO t VALUES (7)")
            assert read(connection, "SELECT * FROM m") == [(3, 10)]
            assert read(connection, "SELECT * FROM mm") == [(30,)]
            assert read(connection, "SELECT a FROM t WHERE a = 7") == [(7,)]


def test_a_cut_while_statements_run_leaves_each_done_or_not(tmp_path: Path) -> None:
    data = tmp_path / "data"
    draw = Random(7)
    with running_site(data) as site:
        with site.connect() as connection:
            run(connection, *MADE)
            assert read(connection, "SELECT * FROM mm") == [(20,)]
        for _ in range(3):
            toggler = Toggler(site.connect())
            toggler.start()
            toggler.stopped.wait(draw.uniform(0.2, 1.0))
            site.restart()
            toggler.end()
            with site.connect() as after:
                whole = ["i", "m", "mm", "t", "v"]
                assert sorted((names(after), dropped(after))) == [[], whole]
                if not names(after):
                    run(after, "UNDROP TABLE t")
                assert read(after, "SELECT a FROM t ORDER BY a") == [(1,), (2,)]
                assert read(after, "SELECT * FROM m") == [(2, 3)]
                assert read(after, "SELECT * FROM mm") == [(20,)]
    assert asyncio.run(faults_of_shards(data, tmp_path / "cache", "persist")) == []


class Writer(threading.Thread):
    """Inserts one number after the other; notes those that were acknowledged, and refusals."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.stopped = threading.Event()
        self.done: list[int] = []
        self.codes: set[str | None] = set()
        self._connection = connection

    def run(self) -> None:
        number = 0
        while not self.stopped.is_set():
            number += 1
            try:
                run(self._connection, f"INSERT INTO t VALUES ({number})")
                self.done.append(number)
            except psycopg.Error as error:
                self.codes.add(error.sqlstate)

    def write_some(self) -> None:
        wanted = len(self.done) + 3
        eventually(lambda: len(self.done) >= wanted)

    def be_refused(self) -> None:
        self.codes.clear()
        eventually(lambda: bool(self.codes))


def test_nobody_writes_to_what_is_dropped_and_writers_go_on_when_it_is_back(
    tmp_path: Path,
) -> None:
    """The writer is on another adapter, which hears of the drop in its own time."""
    flags = ["--adapters", "2"]
    with (
        running_server(tmp_path / "data", flags) as server,
        server.connect() as connection,
        server.connect(adapter=1) as other,
    ):
        run(connection, "CREATE TABLE t (a int)")
        writer = Writer(other)
        writer.start()
        try:
            for _ in range(5):
                writer.write_some()
                run(connection, "DROP TABLE t")
                acknowledged = len(writer.done)
                writer.be_refused()
                # What is answered after the drop may have been committed before it.
                assert len(writer.done) <= acknowledged + 1
                run(connection, "UNDROP TABLE t")
            writer.write_some()
        finally:
            writer.stopped.set()
            writer.join(30)
        assert writer.codes <= {"42P01"}
        found = [number for (number,) in read(connection, "SELECT a FROM t ORDER BY a")]
        assert found == writer.done


def test_its_time_is_over_when_the_period_says_so(tmp_path: Path) -> None:
    with running_site(tmp_path / "data") as site, site.connect() as connection:
        run(connection, "CREATE TABLE t (a int)", "CREATE TABLE u (a int)")
        run(connection, "ALTER SYSTEM SET drop_grace_period = '1 h'", "DROP TABLE t")
        assert dropped(connection) == ["t"]
        run(connection, "ALTER SYSTEM SET drop_grace_period = '100 ms'")
        eventually(lambda: dropped(connection) == [])
        events = "SELECT event_type, details->>'item', \"user\" FROM mz_audit_events"
        last = read(connection, f"{events} ORDER BY id DESC LIMIT 1")
        assert last == [("purge", "t", None)]
        with pytest.raises(psycopg.Error, match="there is no dropped table"):
            run(connection, "UNDROP TABLE t")
        run(connection, "ALTER SYSTEM SET drop_grace_period = '0'", "DROP TABLE u")
        assert dropped(connection) == []
        assert read(connection, f"{events} ORDER BY id DESC LIMIT 1")[0][:2] == ("drop", "u")
