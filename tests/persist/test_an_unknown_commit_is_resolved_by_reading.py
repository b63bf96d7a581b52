"""Goal: a COMMIT that fails halfway is neither repeated when it happened nor lost when it did not.

Method: two stores on one file whose commits fail at random: before, after, or by a rollback.
"""

import asyncio
import random
import sqlite3
import threading
from pathlib import Path

import pytest

from evertide.persist.faults import StoreFailing, StoreUnreachable
from evertide.persist.handle import PersistClient
from evertide.persist.store import sqlite_writer
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.protocol import (
    AllSet,
    AppliedWrite,
    CompareAndSet,
    Head,
    SetMismatch,
)
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.store.sqlite_requests import Mark
from evertide.persist.store.sqlite_sets import set_if_expected
from evertide.persist.store.sqlite_writer import Commit, connect
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline, Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD, append_one, check_rows


def failing_commit(rng: random.Random) -> Commit:
    def commit(
        connection: sqlite3.Connection, statement: str, arguments: tuple[object, ...]
    ) -> int:
        fate = rng.choice(["well", "before", "after", "undone"])
        changed = 0
        if fate in ("well", "after"):
            changed = connection.execute(statement, arguments).rowcount
        if fate == "undone" and connection.in_transaction:
            connection.execute("ROLLBACK")
        if fate != "well":
            raise sqlite3.OperationalError("disk I/O error")
        return changed

    return commit


@pytest.mark.parametrize("seed", range(5))
async def test_every_row_is_there_once(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    stores = [SqliteStore(tmp_path / "consensus.db", commit=failing_commit(rng)) for _ in range(2)]
    epoch = await stores[0].raise_epoch()
    clients = [PersistClient(store.consensus(epoch), MemoryBlob()) for store in stores]
    await clients[0].create_shard(SHARD)

    async def write(client: PersistClient, name: str) -> None:
        for number in range(15):
            await append_one(client, name, number)

    await asyncio.gather(*(write(c, f"w{i}") for i, c in enumerate(clients * 2)))
    upper = (await clients[0].state(SHARD)).upper
    found = await clients[0].snapshot(SHARD, DESC, Timestamp(upper - 1))
    written = {(f"w{i}", number) for i in range(4) for number in range(15)}
    check_rows(found, written, written)
    for store in stores:
        await store.close()


class Overtaken:
    """Fails once, done or not, and before anybody can look others have changed the same row."""

    def __init__(self, path: Path, *, done: bool, others: int) -> None:
        self.path = path
        self.done = done
        self.others = others
        self.armed = False
        self.statements: list[str] = []

    def __call__(
        self, connection: sqlite3.Connection, statement: str, arguments: tuple[object, ...]
    ) -> int:
        self.statements.append(statement.split()[0])
        if not self.armed:
            return connection.execute(statement, arguments).rowcount
        self.armed = False
        if self.done:
            connection.execute(statement, arguments)
        elif connection.in_transaction:
            connection.execute("ROLLBACK")
        other = connect(self.path, busy_timeout_s=0)
        (seqno,) = other.execute("SELECT seqno FROM shards WHERE shard_id = ?", (NAME,)).fetchone()
        for number in range(self.others):
            mark, change = Mark(b"other %d" % number, 5), CompareAndSet(NAME, seqno, b"of others")
            assert set_if_expected(other, mark, Epoch(1), change)
            seqno += 1
        other.close()
        raise sqlite3.OperationalError("disk I/O error")


NAME = ShardId("a")


@pytest.mark.parametrize("others", [0, 1, 3])
@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("alone", [True, False])
async def test_a_commit_is_found_whatever_others_did_since(
    alone: bool, done: bool, others: int, tmp_path: Path
) -> None:
    path = tmp_path / "consensus.db"
    commit = Overtaken(path, done=done, others=others)
    store = SqliteStore(path, commit=commit)
    consensus = store.consensus(await store.raise_epoch())
    await consensus.compare_and_set_each([CompareAndSet(NAME, None, b"1")])
    commit.armed = True
    commit.statements.clear()
    change = CompareAndSet(NAME, 1, b"2")
    outcome = (
        await consensus.compare_and_set_each([change])
        if alone
        else await consensus.compare_and_set_all([change], applied=[APPLIED])
    )
    assert commit.statements[0] == ("UPDATE" if alone else "COMMIT")
    assert outcome == (AllSet() if done or not others else SetMismatch((NAME,)))
    mine = int(outcome == AllSet())
    head = Head(1 + mine + others, b"of others" if others else b"2")
    assert await consensus.head(NAME) == head
    applied = await store.oracle_rows(Epoch(1)).read(Timeline.EPOCH_MS)
    assert applied.write_ts == (0 if alone or not mine else APPLIED.write_ts)
    await store.close()


APPLIED = AppliedWrite(Timeline.EPOCH_MS, Timestamp(9))


async def test_a_mark_that_others_kept_is_not_taken_for_a_later_one(tmp_path: Path) -> None:
    """Two rows bear marks of one writer; the later is overwritten first, then the earlier."""
    path = tmp_path / "consensus.db"
    store = SqliteStore(path)
    consensus = store.consensus(await store.raise_epoch())
    names = [ShardId("a"), ShardId("b")]
    for name in names:
        await consensus.compare_and_set_each([CompareAndSet(name, None, b"1")])
    other = connect(path, busy_timeout_s=0)
    marks = {
        name: (bytes(writer), number)
        for name, writer, number in other.execute("SELECT shard_id, writer, number FROM shards")
    }
    assert marks["a"][0] == marks["b"][0]
    assert marks["a"][1] < marks["b"][1]
    for name in reversed(names):
        change = CompareAndSet(name, 1, b"2")
        assert set_if_expected(other, Mark(b"other", 5), Epoch(1), change)
    query = "SELECT number FROM writers WHERE writer = ?"
    assert other.execute(query, marks["b"][:1]).fetchall() == [marks["b"][1:]]
    other.close()
    await store.close()


async def test_a_commit_is_found_though_one_of_its_requests_was_undone(tmp_path: Path) -> None:
    """The undone request was the last to set a row, which bears no mark of the transaction then."""
    reached, may_go_on = threading.Event(), threading.Event()
    sizes: list[int] = []

    def commit(
        connection: sqlite3.Connection, statement: str, arguments: tuple[object, ...]
    ) -> int:
        changed = connection.execute(statement, arguments).rowcount
        sizes.append(changed)
        if len(sizes) == 3:
            reached.set()
            assert may_go_on.wait(60)
        if len(sizes) == 4:
            raise sqlite3.OperationalError("disk I/O error")
        return changed

    store = SqliteStore(tmp_path / "consensus.db", commit=commit)
    consensus = store.consensus(await store.raise_epoch())
    names = [ShardId(name) for name in "ab"]
    await consensus.compare_and_set_all([CompareAndSet(name, None, b"1") for name in names])
    before = asyncio.ensure_future(consensus.compare_and_set_each([CompareAndSet(NAME, 1, b"2")]))
    await asyncio.to_thread(reached.wait, 60)
    wrong = CompareAndSet(ShardId("c"), 1, b"?")
    together = asyncio.gather(
        consensus.compare_and_set_each([CompareAndSet(NAME, 2, b"3")]),
        consensus.compare_and_set_all([CompareAndSet(names[1], 1, b"?"), wrong]),
    )
    await asyncio.sleep(0)
    may_go_on.set()
    assert await before == AllSet()
    assert list(await together) == [AllSet(), SetMismatch((wrong.shard_id,))]
    assert len(sizes) == 4, "both were in one transaction, which was not repeated"
    assert await consensus.head(names[0]) == Head(3, b"3")
    assert await consensus.head(names[1]) == Head(1, b"1")
    await store.close()


async def test_a_store_that_never_answers_is_unreachable(tmp_path: Path) -> None:
    def commit(*_: object) -> int:
        raise sqlite3.OperationalError("disk I/O error")

    store = SqliteStore(tmp_path / "consensus.db", commit=commit, lock_timeout_s=0.2)
    with pytest.raises(StoreUnreachable):
        await store.raise_epoch()
    assert await store.current_epoch() == 0
    await store.close()


async def test_a_commit_that_cannot_be_looked_for_is_not_called_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever hears that there was no room takes back the parts that the state may refer to."""

    def no_room(code: int) -> sqlite3.OperationalError:
        error = sqlite3.OperationalError("no room")
        error.sqlite_errorcode = code
        return error

    def commit(
        connection: sqlite3.Connection, statement: str, arguments: tuple[object, ...]
    ) -> int:
        changed = connection.execute(statement, arguments).rowcount
        if armed:
            raise no_room(sqlite3.SQLITE_IOERR_FSYNC)
        return changed

    def look(*_: object, **__: object) -> sqlite3.Connection:
        raise no_room(sqlite3.SQLITE_IOERR_SHMSIZE)

    armed = False
    store, blob = SqliteStore(tmp_path / "consensus.db", commit=commit), MemoryBlob()
    client = PersistClient(store.consensus(await store.raise_epoch()), blob)
    await client.create_shard(SHARD)
    monkeypatch.setattr(sqlite_writer, "_SETTLE_S", 0.05)
    monkeypatch.setattr(sqlite_writer, "connect", look)
    armed = True
    updates = [Update(("w" * 100_000, 1), Timestamp(0), 1)]
    with pytest.raises(StoreFailing):
        await client.compare_and_append(SHARD, DESC, updates, Timestamp(0), Timestamp(1))
    assert await client.snapshot(SHARD, DESC, Timestamp(0)) == updates
    await store.close()


async def test_a_failing_statement_leaves_the_writer_usable(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "consensus.db")
    epoch = await store.raise_epoch()
    with pytest.raises(StoreUnreachable):
        await store.transact(epoch, lambda connection: connection.execute("SELECT nonsense"))

    def change_and_fail(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM epoch")
        raise KeyError("mine")

    consensus, shard_id = store.consensus(epoch), ShardId("a")
    outcomes = await asyncio.gather(
        store.transact(epoch, change_and_fail),
        consensus.compare_and_set_all([CompareAndSet(shard_id, None, b"1")]),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], KeyError)
    assert await consensus.head(shard_id) == Head(1, b"1")
    assert await store.current_epoch() == epoch
    await store.close()
