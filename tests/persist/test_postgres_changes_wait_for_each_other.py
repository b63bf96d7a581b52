"""What changes, settling and takeovers do when they meet inside the server.

Each test holds a transaction open by hand, so that the meeting happens for certain.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

import psycopg
import pytest

from evertide.persist.faults import Fenced, StoreFailing, StoreFull
from evertide.persist.store.attempts import Attempt, Change, NotReached
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.postgres_pool import Pool
from evertide.persist.store.postgres_port import PostgresPort
from evertide.persist.store.protocol import (
    AllSet,
    AppliedWrite,
    ClaimedWrite,
    ClaimLost,
    CompareAndSet,
    Head,
    SetMismatch,
)
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.support.cut_proxy import running_cut_proxy

T = TypeVar("T")
A, B, C = ShardId("a"), ShardId("b"), ShardId("c")
DATA, CATALOG = Timeline.EPOCH_MS, Timeline.CATALOG
CHANGE = """
    SELECT change(%s, %s, %s, false, %s::text[], %s::bigint[], %s::bytea[], '{}', '{}', NULL, NULL)
"""


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(postgres_url)
    await opened.prepare()
    yield opened
    await opened.close()


@pytest.fixture
async def port(postgres_url: str) -> AsyncIterator[PostgresPort]:
    pool = Pool(postgres_url)
    yield PostgresPort(pool)
    await pool.close()


@pytest.fixture
async def other(store: PostgresStore, postgres_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """A client whose transactions last as long as the test wants."""
    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        yield connection


async def begin_change(
    other: psycopg.AsyncConnection, epoch: Epoch, attempt: Attempt, change: CompareAndSet
) -> None:
    """A change that is done, and not yet committed."""
    arguments = ([change.shard_id], [change.expected_seqno], [change.value])
    await other.execute(CHANGE, (epoch, attempt.writer, attempt.number, *arguments))


async def waits(call: Awaitable[T]) -> asyncio.Task[T]:
    """The call, which does not come to an end by itself."""
    task = asyncio.ensure_future(call)
    done, _ = await asyncio.wait([task], timeout=0.3)
    assert not done, f"it should have waited: {done}"
    return task


@pytest.mark.parametrize("commit", [True, False])
async def test_a_creation_waits_for_another_of_the_same_shard(
    store: PostgresStore, other: psycopg.AsyncConnection, commit: bool
) -> None:
    """The loser undoes all it did: other shards, applied writes and its claim."""
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)
    await consensus.compare_and_set_all([CompareAndSet(C, None, b"c")])
    await begin_change(other, epoch, Attempt("other", 1), CompareAndSet(B, None, b"theirs"))
    ours = await waits(
        consensus.compare_and_set_all(
            [CompareAndSet(s, None, b"ours") for s in (B, A)] + [CompareAndSet(C, 1, b"ours")],
            applied=[AppliedWrite(CATALOG, Timestamp(5))],
            claimed=ClaimedWrite(DATA, Timestamp(5)),
        )
    )
    if commit:
        await other.commit()
        assert await ours == SetMismatch((B,))
        heads = await consensus.heads({A: None, B: None, C: None})
        assert heads == {A: None, B: Head(1, b"theirs"), C: Head(1, b"c")}
    else:
        await other.rollback()
        assert await ours == AllSet()
        assert await consensus.head(B) == Head(1, b"ours")
    for timeline in (DATA, CATALOG):
        assert (await rows.read(timeline)).write_ts == (0 if commit else 5)


async def test_a_creation_each_for_itself_reports_the_one_it_lost(
    store: PostgresStore, other: psycopg.AsyncConnection
) -> None:
    epoch = await store.raise_epoch()
    consensus = store.consensus(epoch)
    await begin_change(other, epoch, Attempt("other", 1), CompareAndSet(B, None, b"theirs"))
    ours = await waits(
        consensus.compare_and_set_each([CompareAndSet(s, None, b"ours") for s in (C, B, A)])
    )
    await other.commit()
    assert await ours == SetMismatch((B,))
    heads = await consensus.heads({A: None, B: None, C: None})
    assert heads == {A: Head(1, b"ours"), B: Head(1, b"theirs"), C: Head(1, b"ours")}


@pytest.mark.parametrize("shards", [[A], [A, B]])
@pytest.mark.parametrize("commit", [True, False])
async def test_a_change_waits_for_another_of_the_same_shard(
    store: PostgresStore, other: psycopg.AsyncConnection, commit: bool, shards: list[ShardId]
) -> None:
    """And compares with what that one left, not with what it found when it began."""
    epoch = await store.raise_epoch()
    consensus = store.consensus(epoch)
    await consensus.compare_and_set_all([CompareAndSet(s, None, b"1") for s in (A, B)])
    await begin_change(other, epoch, Attempt("other", 1), CompareAndSet(A, 1, b"theirs"))
    ours = await waits(
        consensus.compare_and_set_all([CompareAndSet(s, 1, b"ours") for s in shards])
    )
    await (other.commit() if commit else other.rollback())
    assert await ours == (SetMismatch((A,)) if commit else AllSet())
    assert await consensus.head(A) == Head(2, b"theirs" if commit else b"ours")


@pytest.mark.parametrize("commit", [True, False])
async def test_settling_waits_for_a_change_that_is_under_way(
    store: PostgresStore, port: PostgresPort, other: psycopg.AsyncConnection, commit: bool
) -> None:
    epoch, attempt = await store.raise_epoch(), Attempt("w", 1)
    await begin_change(other, epoch, attempt, CompareAndSet(A, None, b"1"))
    settling = await waits(port.settle(attempt))
    await (other.commit() if commit else other.rollback())
    assert await settling == (AllSet() if commit else None)
    assert await port.settle(attempt) == (AllSet() if commit else None)
    with pytest.raises(NotReached):
        await port.change(attempt, Change(epoch, [CompareAndSet(B, None, b"late")]))
    assert await port.shard_ids() == ([A] if commit else [])


async def test_a_change_that_waits_when_it_is_settled_changes_nothing(
    store: PostgresStore, port: PostgresPort, other: psycopg.AsyncConnection
) -> None:
    epoch, attempt = await store.raise_epoch(), Attempt("w", 1)
    await store.consensus(epoch).compare_and_set_all([CompareAndSet(A, None, b"1")])
    await other.execute("SELECT FROM shards WHERE shard_id = 'a' FOR UPDATE")
    changing = await waits(port.change(attempt, Change(epoch, [CompareAndSet(A, 1, b"2")])))
    assert await port.settle(attempt) is None
    await other.rollback()
    with pytest.raises(NotReached):
        await changing
    assert await port.head(A, None) == Head(1, b"1")


async def test_a_takeover_waits_for_changes_under_way_and_no_later_one_gets_in(
    store: PostgresStore, port: PostgresPort, other: psycopg.AsyncConnection
) -> None:
    """What read the old epoch has ended when raise_epoch returns; what comes after reads the new.

    The later change asks while the takeover waits, so its snapshot of the old epoch could be older
    than the takeover's commit.
    """
    epoch = await store.raise_epoch()
    await begin_change(other, epoch, Attempt("other", 1), CompareAndSet(A, None, b"in time"))
    raising = await waits(store.raise_epoch())
    later = await waits(
        port.change(Attempt("w", 1), Change(epoch, [CompareAndSet(B, None, b"too late")]))
    )
    assert (await port.read_timeline(epoch, DATA)).read_ts == 0, "reading waits for nobody"
    await other.commit()
    assert await raising == epoch + 1
    with pytest.raises(Fenced):
        await later
    assert await port.shard_ids() == [A]


async def test_a_transaction_that_never_ends_does_not_stop_a_takeover(
    store: PostgresStore, other: psycopg.AsyncConnection
) -> None:
    """As a client does that was frozen between two packets."""
    epoch = await store.raise_epoch()
    await begin_change(other, epoch, Attempt("other", 1), CompareAndSet(A, None, b"never"))
    async with asyncio.timeout(30):
        assert await store.raise_epoch() == epoch + 1
    with pytest.raises(psycopg.OperationalError):
        await other.commit()
    assert await store.consensus(epoch).shard_ids() == []


async def test_raising_again_with_one_token_raises_once(store: PostgresStore) -> None:
    """A repeated question, and one that arrives after other generations, change nothing."""
    assert await store._raise(Epoch(0), "mine")
    assert await store._raise(Epoch(0), "mine")
    assert not await store._raise(Epoch(0), "theirs")
    assert await store.current_epoch() == 1
    assert await store.raise_epoch() == 2
    assert not await store._raise(Epoch(0), "mine")
    assert await store.current_epoch() == 2


async def test_writers_of_older_generations_are_cleared_away(
    store: PostgresStore, port: PostgresPort, other: psycopg.AsyncConnection
) -> None:
    """Those of the generation just fenced may still ask what became of their attempts."""
    for _ in range(3):
        epoch = await store.raise_epoch()
        attempt = Attempt(f"w{epoch}", 1)
        await port.change(attempt, Change(epoch, [CompareAndSet(ShardId(f"s{epoch}"), None, b"")]))
    await store.raise_epoch()
    cursor = await other.execute("SELECT writer FROM writers")
    assert await cursor.fetchall() == [("w3",)]
    assert await port.settle(Attempt("w3", 1)) == AllSet()


async def test_changes_of_many_shards_never_deadlock(
    store: PostgresStore, port: PostgresPort
) -> None:
    """Any order of shards, creations among them, claims and applied writes of both timelines."""
    epoch, rng = await store.raise_epoch(), random.Random(5)
    shards = [ShardId(name) for name in "abcdefghij"]
    # Timelines are locked in order as soon as they exist.
    for timeline in Timeline:
        await port.apply(epoch, timeline, Timestamp(1))

    async def work(writer: int) -> None:
        for number in range(1, 40):
            chosen = rng.sample(shards, rng.randrange(1, 8))
            sets = [
                CompareAndSet(s, h.seqno if isinstance(h, Head) else None, b"")
                for s, h in (await port.heads(dict.fromkeys(chosen))).items()
            ]
            change = Change(epoch, sets, each=True)
            if rng.random() < 0.7:
                claim, apply = rng.sample([DATA, CATALOG], 2)
                now = Timestamp(rng.randrange(1, 10_000))
                change = Change(epoch, sets, [AppliedWrite(apply, now)], ClaimedWrite(claim, now))
            # A deadlock would be NotReached.
            outcome = await port.change(Attempt(f"w{writer}", number), change)
            assert isinstance(outcome, AllSet | SetMismatch | ClaimLost)

    await asyncio.gather(*map(work, range(4)))


@pytest.mark.parametrize(("state", "fault"), [("53100", StoreFull), ("58030", StoreFailing)])
async def test_a_failing_disk_of_the_server_is_told(
    store: PostgresStore, other: psycopg.AsyncConnection, state: str, fault: type[Exception]
) -> None:
    """At once, with nothing done; and it works again when the server does."""
    consensus = store.consensus(await store.raise_epoch())
    await consensus.compare_and_set_all([CompareAndSet(A, None, b"1")])
    failing = f"""
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'could not extend file' USING ERRCODE = '{state}'; END $$;
        CREATE TRIGGER fail AFTER UPDATE ON shards FOR EACH ROW EXECUTE FUNCTION fail()"""
    await other.execute(failing.encode())
    await other.commit()
    with pytest.raises(fault, match="could not extend file"):
        await consensus.compare_and_set_all([CompareAndSet(A, 1, b"2")])
    await other.execute("DROP TRIGGER fail ON shards")
    await other.commit()
    assert await consensus.head(A) == Head(1, b"1")
    assert await consensus.compare_and_set_all([CompareAndSet(A, 1, b"2")]) == AllSet()


async def test_a_process_uses_few_connections(
    store: PostgresStore, other: psycopg.AsyncConnection
) -> None:
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)
    asked: list[Awaitable[object]] = [rows.allocate(DATA, Timestamp(0)) for _ in range(40)]
    asked += [consensus.head(A) for _ in range(40)]
    await asyncio.gather(*asked)
    assert 1 <= len(store._pool._idle) <= 4


async def test_an_unchanged_value_does_not_travel(store: PostgresStore, postgres_url: str) -> None:
    epoch = await store.raise_epoch()
    big = bytes(2 * 1024**2)
    sets = [CompareAndSet(s, None, big) for s in (A, B)]
    await store.consensus(epoch).compare_and_set_all(sets)
    async with running_cut_proxy(postgres_url) as proxy:
        by_proxy = PostgresStore(proxy.url(postgres_url))
        consensus = by_proxy.consensus(epoch)
        await consensus.head(A, 1)
        await consensus.heads({A: 1, B: 1})
        assert proxy.answered_bytes < 20_000
        assert await consensus.head(A, 7) == Head(1, big)
        assert proxy.answered_bytes > len(big)
        await by_proxy.close()


async def test_other_tables_change_under_the_epoch(
    store: PostgresStore, other: psycopg.AsyncConnection
) -> None:
    epoch = await store.raise_epoch()
    await other.execute("CREATE TABLE others (key text PRIMARY KEY)")
    await other.commit()

    async def put(connection: psycopg.AsyncConnection) -> str:
        await connection.execute("INSERT INTO others VALUES ('k')")
        return "put"

    async def fail(connection: psycopg.AsyncConnection) -> None:
        await connection.execute("INSERT INTO others VALUES ('x')")
        raise KeyError("mine")

    assert await store._transact(epoch, put) == "put"
    with pytest.raises(KeyError):
        await store._transact(epoch, fail)
    await store.raise_epoch()
    with pytest.raises(Fenced):
        await store._transact(epoch, put)
    assert await (await other.execute("SELECT key FROM others")).fetchall() == [("k",)]
