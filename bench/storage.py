"""The storage layer by itself: appends, group commit, the oracle and pushes between processes."""

import asyncio
import itertools
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress

import psycopg
import uvloop

from bench.figure import RUNS, AsyncStep, Figure, Runs, alternating_async
from bench.place import Place
from evertide.adapter.writing.committer import ClaimingCommitter
from evertide.adapter.writing.group_commit import GroupCommit
from evertide.oracle.batching import BatchingOracle
from evertide.oracle.durable import DurableOracle
from evertide.oracle.protocol import TimestampOracle
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.store.file import FileBlob
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.protocol import Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.txn import TableWrite, Txns, register_table
from evertide.vocab.clock import SystemClock
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timeline, Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("id", INT8), ("name", TEXT))
SHARD, TABLE, TXNS = ShardId("s1"), ShardId("t1"), ShardId("txns")
REPETITIONS = 300
WRITERS = 16
CALLERS = 64
SUSTAINED_S = 2.0
# An append may cost this many of the store's own commits.
APPEND_RATIO = 2.0
GROUP_RATIO = 4.0
ORACLE_MS = 0.3


def measure(place: Place) -> list[Figure]:
    """On SQLite, then on PostgreSQL."""
    figures = uvloop.run(_measure(place, "SQLite"))
    return figures + uvloop.run(_measure(place, "PostgreSQL"))


async def _measure(place: Place, kind: str) -> list[Figure]:
    async with _opened(place, kind) as (store, own_commit, round_trip):
        epoch = await store.raise_epoch()
        async with PersistClient(
            store.consensus(epoch), FileBlob(place.directory / f"blob-{kind}")
        ) as client:
            durable = DurableOracle(store.oracle_rows(epoch), SystemClock())
            oracle = durable if kind == "SQLite" else BatchingOracle(durable)
            return [
                await _append(place, kind, client, own_commit),
                await _group(place, kind, client),
                *await _oracle(place, kind, oracle, round_trip),
            ]


async def _append(place: Place, kind: str, client: PersistClient, own_commit: AsyncStep) -> Figure:
    await client.create_shard(SHARD)
    uppers = itertools.count(1)

    async def append() -> None:
        upper = next(uppers)
        lower, at = Timestamp(upper - 1), Timestamp(upper)
        update = Update((upper, "a name"), lower, 1)
        outcome = await client.compare_and_append(SHARD, DESC, [update], lower, at)
        assert isinstance(outcome, Appended)

    appended, committed = await alternating_async(place.scaled(REPETITIONS), append, own_commit)
    return Figure(
        name=f"append of one row, {kind}",
        unit="ms",
        runs=appended,
        target=APPEND_RATIO * committed.median,
        baseline_name=f"{kind} commit",
        baseline=committed,
    )


async def _group(place: Place, kind: str, client: PersistClient) -> Figure:
    txns, clock = Txns(client, TXNS), SystemClock()
    await txns.ensure()
    await client.machine.apply_all([register_table(TABLE)])
    commits = GroupCommit(txns, ClaimingCommitter(txns, clock), clock)
    running = asyncio.create_task(commits.run())
    seconds = 0.3 if place.quick else SUSTAINED_S
    one, many = [], []
    for _ in range(RUNS):
        one.append([await _rate(commits, 1, seconds)])
        many.append([await _rate(commits, WRITERS, seconds)])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    alone = Runs(tuple(one), higher=True)
    return Figure(
        name=f"{WRITERS} writers, group commit, {kind}",
        unit="rows/s",
        runs=Runs(tuple(many), higher=True),
        target=GROUP_RATIO * alone.median,
        baseline_name="one writer",
        baseline=alone,
    )


async def _rate(commits: GroupCommit, writers: int, seconds: float) -> float:
    """Acknowledged rows per second; each writer waits for one row before it writes the next."""
    deadline = time.perf_counter() + seconds
    written = 0

    async def write(number: int) -> None:
        nonlocal written
        while time.perf_counter() < deadline:
            await commits.write({TABLE: TableWrite(DESC, [((number, "a"), 1)])}, {TABLE: "t"})
            written += 1

    started = time.perf_counter()
    await asyncio.gather(*(write(number) for number in range(writers)))
    return written / (time.perf_counter() - started)


async def _oracle(
    place: Place, kind: str, oracle: TimestampOracle, round_trip: AsyncStep
) -> list[Figure]:
    async def read() -> None:
        await oracle.read_ts(Timeline.EPOCH_MS)

    async def read_together() -> None:
        await asyncio.gather(*(read() for _ in range(CALLERS)))

    with nullcontext() if kind == "SQLite" else _one_core(place):
        alone, trip, together = await alternating_async(
            place.scaled(REPETITIONS), read, round_trip, read_together
        )
    return [
        Figure(
            name=f"oracle read, {kind}",
            unit="ms",
            runs=alone,
            target=ORACLE_MS if kind == "SQLite" else 2 * trip.median,
            baseline_name=f"{kind} SELECT 1",
            baseline=trip,
        ),
        Figure(
            name=f"  {CALLERS} callers at once",
            unit="ms",
            runs=together,
            baseline_name=f"{CALLERS} x {kind} SELECT 1",
            baseline=Runs(tuple([ms * CALLERS for ms in run] for run in trip.observed)),
        ),
    ]


@contextmanager
def _one_core(place: Place) -> Iterator[None]:
    """This process and the server's on one core, as long as it lasts.

    A question to a process on the other core takes twice as long, and whether that happens is the
    scheduler's whim for each connection: without this the ratio says where processes were put.
    """
    with psycopg.connect(place.postgres) as link:
        told = link.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
        )
        pids = [os.getpid(), *(pid for (pid,) in told)]
    before = os.sched_getaffinity(0)
    _put(pids, {min(before)})
    try:
        yield
    finally:
        _put(pids, before)


def _put(pids: Iterable[int], cores: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.sched_setaffinity(pid, cores)


@asynccontextmanager
async def _opened(place: Place, kind: str) -> AsyncIterator[tuple[Store, AsyncStep, AsyncStep]]:
    """A store, one commit of its own, and one question to it, all as cheap as can be."""
    if kind == "SQLite":
        store: Store = SqliteStore(place.directory / "bench-consensus.db")
        own = sqlite3.connect(
            place.directory / "bench-own.db", isolation_level=None, check_same_thread=False
        )
        yield store, _sqlite_commit(own), _sqlite_question(own)
        own.close()
    else:
        store = PostgresStore(place.postgres)
        await store.prepare()
        async with await psycopg.AsyncConnection.connect(place.postgres, autocommit=True) as link:
            link.prepare_threshold = 0
            await link.execute("CREATE TABLE own (id int PRIMARY KEY, seqno int, value bytea)")
            await link.execute("INSERT INTO own VALUES (1, 0, '')")
            yield store, _postgres_commit(link), lambda: link.execute("SELECT 1")
    await store.close()


def _sqlite_commit(own: sqlite3.Connection) -> AsyncStep:
    own.execute("PRAGMA journal_mode = WAL")
    own.execute("PRAGMA synchronous = FULL")
    own.execute("CREATE TABLE own (id INTEGER PRIMARY KEY, seqno INTEGER, value BLOB)")
    own.execute("INSERT INTO own VALUES (1, 0, x'')")

    async def commit() -> None:
        own.execute("UPDATE own SET seqno = seqno + 1, value = ? WHERE id = 1", (bytes(100),))

    return commit


def _sqlite_question(own: sqlite3.Connection) -> AsyncStep:
    async def ask() -> None:
        own.execute("SELECT 1").fetchone()

    return ask


def _postgres_commit(link: psycopg.AsyncConnection[tuple[object, ...]]) -> AsyncStep:
    statement = "UPDATE own SET seqno = seqno + 1, value = %b WHERE id = 1"
    return lambda: link.execute(statement, (bytes(100),))
