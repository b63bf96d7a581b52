"""Goal: a view equals its query at every timestamp, whoever keeps it and wherever ticks are cut.

Method: random views over all operators, random writes, errors that come and go. What subscriptions
told, added up, is compared at every timestamp with the view and with its query AS OF then, and in
the end with PostgreSQL. HISTORY_SEED=n in the environment runs that seed alone.
"""

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

import psycopg
import pytest

from tests.support.server import Server, eventually, running_server
from tests.views.conftest import wait_for_executor
from tests.views.random_history import (
    Connection,
    History,
    Planned,
    check,
    check_postgres,
    contents,
    create_tables,
    opened,
    plan,
    run,
    show_text,
    steps,
)

VIEWS = 3
WRITES = 14
ONE = os.environ.get("HISTORY_SEED")
SEEDS = range(30) if ONE is None else [int(ONE)]
MANY_SEEDS = range(1_000, 2_000)
# Ticks as jobs take a hundred times as long.
SEEDS_AS_JOBS = range(40, 41) if ONE is None else [int(ONE)]
SEEDS_OF_TWO = range(50, 80) if ONE is None else [int(ONE)]
UP = re.compile(r'process=(\S+) event="resident task is up" pid=(\d+)')
# Every kind of node that a delta plan may have.
NODES = (
    "map, filter, project", "flat map", "temporal filter", "negate", "union", "arrange", "join",
    "distinct", "reduce", "top-k", "window", "threshold",
)  # fmt: skip


@pytest.fixture(scope="module")
def auto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("auto") / "data") as server:
        wait_for_executor(server, "resident")
        yield server


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = ["--tick-engine", "spark"]
    with running_server(tmp_path_factory.mktemp("spark") / "data", flags) as server:
        wait_for_executor(server, "job")
        yield server


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        show_text(connection)
        yield connection


def planned_for(seed: int, views: int = VIEWS, writes: int = WRITES) -> Planned:
    # A tick as a job costs seconds where there are subqueries.
    return plan(seed, views, writes, subqueries=0 if views < VIEWS else 2)


def checked(server: Server, postgres: Connection, planned: Planned) -> History:
    history = run(server, planned, f"history_{planned.seed}")
    with opened(server, history.schema) as connection:
        assert check(connection, history) > 1, "no view has ever changed"
        check_postgres(connection, postgres, planned, history)
    return history


def dropped(server: Server, history: History) -> None:
    with server.connect() as connection:
        connection.execute(f"DROP SCHEMA {history.schema} CASCADE")


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_told_is_what_is_asked(auto: Server, postgres: Connection, seed: int) -> None:
    dropped(auto, checked(auto, postgres, planned_for(seed)))


@pytest.mark.skipif(ONE is not None, reason="of all seeds together")
def test_the_seeds_have_every_kind_of_node(auto: Server) -> None:
    shown: list[str] = []
    with auto.connect() as connection:
        create_tables(connection, "kinds")
        for seed in SEEDS:
            for query in planned_for(seed).views.values():
                text = query.replace("{now}", "0")
                connection.execute(f"CREATE MATERIALIZED VIEW v AS {text}")
                rows = connection.execute("EXPLAIN MATERIALIZED VIEW v").fetchall()
                shown += [str(row[0]) for row in rows]
                connection.execute("DROP MATERIALIZED VIEW v")
        connection.execute("DROP SCHEMA kinds CASCADE")
    whole = "\n".join(shown)
    assert [node for node in NODES if f": {node}" not in whole] == []
    assert "RECURSIVE" in whole or "recomputes" in whole, "recursion"


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_of_many_seeds(auto: Server, postgres: Connection, seed: int) -> None:
    dropped(auto, checked(auto, postgres, planned_for(seed)))


@pytest.mark.parametrize("seed", SEEDS_AS_JOBS)
def test_jobs_tell_what_the_resident_task_tells(
    auto: Server, spark: Server, postgres: Connection, seed: int
) -> None:
    """Timestamps differ, so what views held is compared write by write."""
    compare_engines(auto, spark, postgres, planned_for(seed, views=1, writes=6))


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(2_000, 2_020))
def test_jobs_tell_the_same_of_many_seeds(
    auto: Server, spark: Server, postgres: Connection, seed: int
) -> None:
    compare_engines(auto, spark, postgres, planned_for(seed, views=2))


def compare_engines(auto: Server, spark: Server, postgres: Connection, planned: Planned) -> None:
    told = []
    for server in (auto, spark):
        history = checked(server, postgres, planned)
        with opened(server, history.schema) as connection:
            told.append(steps(connection, history))
        dropped(server, history)
    assert len(told[0]) == len(planned.writes) + 1
    for number, (one, other) in enumerate(zip(*told, strict=True)):
        for name in one:
            if name != "temporal":  # the clock of each server is its own
                assert one[name] == other[name], f"HISTORY_SEED={planned.seed}: {name}, {number}"


class Replicas:
    """The resident tasks of two replicas, of which one at a time may be frozen.

    Not the replicas themselves: one that is frozen while it writes keeps the store's lock.
    """

    def __init__(self, tasks: list[int]) -> None:
        self.tasks = tasks
        self._frozen: int | None = None

    def freeze(self, task: int | None) -> None:
        """This one and no other; None: neither."""
        if self._frozen is not None:
            os.kill(self._frozen, signal.SIGCONT)
        self._frozen = task
        if task is not None:
            os.kill(task, signal.SIGSTOP)


@pytest.fixture(scope="module")
def two(auto: Server) -> Replicas:
    """A cluster of two replicas, both with their resident tasks."""
    with auto.connect() as connection:
        connection.execute("CREATE CLUSTER two (SIZE '1', REPLICATION FACTOR 2)")

    def tasks() -> list[int]:
        told = UP.findall(auto.log_text())
        return [int(pid) for process, pid in told if process.startswith("replica")]

    eventually(lambda: len(tasks()) == 2, seconds=120)
    return Replicas(tasks())


@pytest.mark.parametrize("seed", SEEDS_OF_TWO)
def test_replicas_with_different_tick_borders_agree(auto: Server, two: Replicas, seed: int) -> None:
    check_replicas(auto, two, planned_for(seed, writes=24))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3_000, 4_000))
def test_replicas_agree_on_many_seeds(auto: Server, two: Replicas, seed: int) -> None:
    check_replicas(auto, two, planned_for(seed, writes=40))


def check_replicas(server: Server, two: Replicas, planned: Planned) -> None:
    """One or the other is frozen for some of the writes, so that it makes up for them in fewer
    ticks; then each alone is asked what it keeps, and all that both told must fit together."""
    random = Random(planned.seed)

    def between(_write: int) -> None:
        if random.random() < 0.4:
            two.freeze(random.choice([None, *two.tasks]))

    with ExitStack() as stack:
        stack.callback(two.freeze, None)
        history = run(server, planned, f"replicas_{planned.seed}", "two", between)
        connection = stack.enter_context(opened(server, history.schema, "two"))
        two.freeze(None)
        assert check(connection, history) > 1, "no view has ever changed"
        kept = {n: q for n, q in history.views.items() if n not in ("temporal", "query")}
        for name, query in kept.items():
            connection.execute(f"CREATE VIEW {name}_again AS {query}")
            connection.execute(f"CREATE INDEX IN CLUSTER two ON {name}_again (c0)")
        wait_hydrated(connection, len(kept))
        for frozen in two.tasks:
            two.freeze(frozen)
            for name, query in kept.items():
                found = contents(connection, f"SELECT * FROM {name}_again")
                assert found == contents(connection, query), history.label(name, 0)
    dropped(server, history)


def wait_hydrated(connection: Connection, indexes: int) -> None:
    """Until each of both replicas has these indexes."""

    def hydrated() -> bool:
        rows = connection.execute(
            "SELECT o.name FROM mz_internal.mz_hydration_statuses h"
            " JOIN mz_catalog.mz_objects o ON o.id = h.object_id"
            " WHERE o.type = 'index' AND h.hydrated AND h.replica_id IS NOT NULL"
        ).fetchall()
        return sum(Counter(rows).values()) >= 2 * indexes

    eventually(hydrated, seconds=120)
