"""Goal: a view whose definition is replaced holds what one definition says up to a timestamp and
what the next one says from there on, for everybody who follows it, whatever dies meanwhile.

Method: tables change all the time, and random definitions are staged, applied, discarded or given
up at random moments, while replicas are killed or stand still. The view, a view over it and the
tables are subscribed to; joined by timestamp, they must agree with the definitions at every one.
"""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from random import Random

import psycopg
import pytest

from tests.support.server import Server, eventually, running_server
from tests.support.subscriber import Subscriber
from tests.views.replaced import ABOVE, Definition, check, random_definition

SEEDS = range(10)
MANY_SEEDS = range(100, 400)
CLUSTERS = ("default", "two")
# A statement that waits longer than this is stuck.
STUCK = "SET statement_timeout = '120s'"


@dataclass
class Writer:
    """Changes t and u until it is stopped."""

    connection: "psycopg.Connection[tuple]"
    draw: Random
    stopped: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopped.wait(self.draw.choice([0.0, 0.005, 0.05])):
                table = self.draw.choice("ttu")
                k, v = self.draw.randrange(6), self.draw.randrange(20)
                statement = self.draw.choice(
                    [
                        f"INSERT INTO {table} VALUES ({k}, {v}), ({k + 1}, {v})",
                        f"DELETE FROM {table} WHERE v = {v}",
                        f"UPDATE {table} SET v = {v} WHERE k = {k} AND v % 3 = 0",
                    ]
                )
                self.connection.execute(statement)
        except BaseException as failure:  # noqa: BLE001 - told to the test that started it
            self.failure = failure


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("replaced") / "data") as running:
        with running.connect() as connection:
            connection.execute("CREATE CLUSTER two (SIZE '1', REPLICATION FACTOR 2)")
            connection.execute("CREATE TABLE warm (a int)")
            for cluster in CLUSTERS:
                connection.execute(
                    f"CREATE MATERIALIZED VIEW warm_{cluster} IN CLUSTER {cluster} AS"
                    " SELECT count(*) FROM warm"
                )
                connection.execute(f"SELECT * FROM warm_{cluster}")
        yield running


@dataclass
class Run:
    """One seed."""

    server: Server
    draw: Random
    schema: str
    connection: "psycopg.Connection[tuple]"
    # The definitions that the view has had, in order.
    definitions: list[Definition] = field(default_factory=list)

    def versions(self) -> int:
        found = self.connection.execute(
            "SELECT count(*) FROM mz_internal.mz_materialized_view_versions n"
            " JOIN mz_materialized_views v ON v.id = n.id"
            f" JOIN mz_schemas s ON s.id = v.schema_id WHERE s.name = '{self.schema}'"
            " AND v.name = 'mv'"
        ).fetchone()
        assert found is not None
        return int(found[0])

    def settled(self) -> bool:
        """Whether what was begun is done; an apply that nobody waits for goes on by itself.

        What another seed left behind when it failed does not count.
        """
        found = self.connection.execute(
            "SELECT count(*) FROM mz_internal.mz_replacement_changes WHERE object_id NOT IN"
            " (SELECT v.id FROM mz_materialized_views v JOIN mz_schemas s ON s.id = v.schema_id"
            f" WHERE s.name <> '{self.schema}')"
        ).fetchone()
        return found == (0,)

    def disturb(self) -> None:
        """Kill a replica, or let one stand still for a while."""
        running = self.server.pids_of("replica")
        if not running:
            return
        victim, draw = self.draw.choice(running), self.draw.random()
        with suppress(ProcessLookupError):
            if draw < 0.3:
                os.kill(victim, signal.SIGKILL)
            elif draw < 0.7:
                os.kill(victim, signal.SIGSTOP)
                resume = threading.Timer(self.draw.random(), _resume, (victim,))
                resume.start()

    def replace(self) -> None:
        """Stage one, then apply it, discard it, or begin to apply it and think better of it."""
        staged, cluster = random_definition(self.draw), self.draw.choice(CLUSTERS)
        self.connection.execute(
            f"CREATE MATERIALIZED VIEW r REPLACING mv IN CLUSTER {cluster} AS {staged.query}"
        )
        self.pause()
        fate = self.draw.random()
        if fate < 0.2:
            self.connection.execute("DROP MATERIALIZED VIEW r")
            return
        with ExitStack() as stack:
            connection = stack.enter_context(connected(self.server, self.schema))
            failures: list[psycopg.Error] = []
            applying = threading.Thread(target=_apply, args=(connection, failures))
            applying.start()
            stack.callback(applying.join, 150)
            self.pause()
            if fate < 0.4:
                connection.cancel_safe()
            elif fate < 0.7:
                self.disturb()
        assert not applying.is_alive()
        for failure in failures:
            assert fate < 0.4, failure
            assert failure.sqlstate == "57014"
        if self.versions() > len(self.definitions):
            self.definitions.append(staged)
        else:
            assert failures, "it was applied, says the server"
            self.connection.execute("DROP MATERIALIZED VIEW r")

    def pause(self) -> None:
        """Let something else happen first, or not."""
        threading.Event().wait(self.draw.choice([0.0, 0.02, 0.3, 1.0]))


def _resume(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _apply(connection: "psycopg.Connection[tuple]", failures: list[psycopg.Error]) -> None:
    try:
        connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    except psycopg.Error as failure:
        failures.append(failure)


def connected(server: Server, schema: str) -> "psycopg.Connection[tuple]":
    connection = server.connect()
    connection.execute(STUCK)
    connection.execute(f"SET search_path = {schema}")
    return connection


def create(run: Run) -> None:
    connection, first = run.connection, random_definition(run.draw)
    connection.execute(f"CREATE SCHEMA {run.schema}")
    for table in "tu":
        connection.execute(f"CREATE TABLE {table} (k int, v int)")
        connection.execute(
            f"INSERT INTO {table} SELECT n % 6, n % 20 FROM generate_series(1, 40) n"
        )
    connection.execute(
        f"CREATE MATERIALIZED VIEW below IN CLUSTER {run.draw.choice(CLUSTERS)} AS SELECT * FROM t"
    )
    cluster = run.draw.choice(CLUSTERS)
    connection.execute(f"CREATE MATERIALIZED VIEW mv IN CLUSTER {cluster} AS {first.query}")
    connection.execute("CREATE INDEX mv_k IN CLUSTER default ON mv (k)")
    connection.execute(f"CREATE MATERIALIZED VIEW above IN CLUSTER default AS {ABOVE}")
    run.definitions.append(first)


def follow(run: Run, replacements: int) -> dict[str, Sequence[tuple]]:
    """All that is told of the tables and views while definitions come and go."""
    with ExitStack() as stack:
        followers: dict[str, Subscriber] = {}
        for name in ("t", "u", "mv", "above"):
            connection = stack.enter_context(connected(run.server, run.schema))
            connection.execute("SET statement_timeout = 0")
            followers[name] = Subscriber(connection, f"SUBSCRIBE {name} WITH (PROGRESS)")
            stack.callback(followers[name].stop)
        for follower in followers.values():
            follower.wait_for(1)
        connection = stack.enter_context(connected(run.server, run.schema))
        writer = Writer(connection, Random(run.draw.random()))
        writing = threading.Thread(target=writer.run)
        writing.start()
        try:
            for _ in range(replacements):
                run.pause()
                run.replace()
                eventually(run.settled)
                check_now(run)
            run.pause()
        finally:
            writer.stopped.set()
            writing.join(120)
        assert writer.failure is None, writer.failure
        row = run.connection.execute("SELECT mz_now()::text FROM t LIMIT 1").fetchone()
        assert row is not None
        for follower in followers.values():
            follower.wait_beyond(int(row[0]))
        return {name: list(follower.rows) for name, follower in followers.items()}


def check_now(run: Run) -> None:
    """Whoever reads right after an apply sees the new definition, in the index as well."""
    query = run.definitions[-1].query
    shown = "SELECT k, v FROM mv"
    for text in (f"({query}) EXCEPT ALL {shown}", f"{shown} EXCEPT ALL ({query})"):
        assert run.connection.execute(text).fetchall() == []
    with run.connection.transaction():
        keyed = run.connection.execute("SELECT k, v FROM mv WHERE k = 3").fetchall()
        whole = run.connection.execute("SELECT k, v FROM mv").fetchall()
    assert sorted(keyed) == sorted(row for row in whole if row[0] == 3)


def run_seed(server: Server, seed: int, replacements: int) -> None:
    schema = f"replaced_{seed}"
    with server.connect() as connection:
        connection.execute(STUCK)
        connection.execute(f"SET search_path = {schema}")
        run = Run(server, Random(seed), schema, connection)
        create(run)
        check(run.definitions, follow(run, replacements))
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
    eventually(lambda: len(server.pids_of("replica")) == 3)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_timestamp_has_one_definition(server: Server, seed: int) -> None:
    run_seed(server, seed, replacements=2)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_of_many_seeds(server: Server, seed: int) -> None:
    run_seed(server, seed, replacements=4)
