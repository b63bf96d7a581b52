"""What appends to the stash and changes that raise the epoch do when they meet others in the
server, and when their connection is cut.

Meetings are made certain by a transaction that is held open by hand.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

import psycopg
import pytest

from evertide.persist.faults import Fenced, StoreUnreachable
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.protocol import AllSet, ClaimedWrite, CompareAndSet, StashMismatch
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline
from tests.conformance.stash_rows import ITEM, append, row, ts
from tests.support.cut_proxy import Fate, is_change, running_cut_proxy

T = TypeVar("T")
A, B = ShardId("a"), ShardId("b")
LOST = [fate for fate in Fate if fate is not Fate.ARRIVES]
CHANGE = """
    SELECT change_with_stash(%s, 'other', 1, ARRAY['b'], ARRAY[NULL]::bigint[], ARRAY['b'::bytea],
        '{}', '{}', NULL, NULL, 0, 0, 0, '{item}', '{theirs}', '{v}', '{1}', false)"""


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(postgres_url)
    await opened.stash().ensure([ITEM])
    yield opened
    await opened.close()


@pytest.fixture
async def other(store: PostgresStore, postgres_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """A client whose transactions last as long as the test wants."""
    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        yield connection


async def waits(call: Awaitable[T]) -> asyncio.Task[T]:
    """The call, which does not come to an end by itself."""
    task = asyncio.ensure_future(call)
    done, _ = await asyncio.wait([task], timeout=0.3)
    assert not done, f"it should have waited: {done}"
    return task


@pytest.mark.parametrize("commit", [True, False])
async def test_an_append_waits_for_another_and_is_decided_by_what_that_left(
    store: PostgresStore, other: psycopg.AsyncConnection, commit: bool
) -> None:
    epoch = await store.raise_epoch()
    await other.execute(CHANGE, (epoch,))
    ours = await waits(
        store.consensus(epoch).compare_and_set_all([], stash=append(0, [row(0, "ours")]))
    )
    assert await store.stash().upper() == 0, "reading waits for nobody"
    await (other.commit() if commit else other.rollback())
    assert await ours == (StashMismatch(ts(1)) if commit else AllSet())
    keys = [found.key for found in (await store.stash().read()).rows]
    assert keys == ["theirs" if commit else "ours"]


async def test_changes_without_the_stash_do_not_wait_for_it(
    store: PostgresStore, other: psycopg.AsyncConnection
) -> None:
    epoch = await store.raise_epoch()
    await other.execute(CHANGE, (epoch,))
    async with asyncio.timeout(5):
        made = await store.consensus(epoch).compare_and_set_all([CompareAndSet(A, None, b"a")])
    assert made == AllSet()


async def test_a_change_that_raises_the_epoch_waits_for_changes_under_way(
    store: PostgresStore, other: psycopg.AsyncConnection
) -> None:
    """It sees what they left; and what asks while it waits is fenced."""
    epoch = await store.raise_epoch()
    consensus = store.consensus(epoch)
    await other.execute(CHANGE, (epoch,))
    raising = await waits(
        consensus.compare_and_set_all([], stash=append(1, [row(1, "k")]), raises_epoch=True)
    )
    later = await waits(consensus.compare_and_set_all([CompareAndSet(A, None, b"too late")]))
    await other.commit()
    assert await raising == AllSet()
    with pytest.raises(Fenced):
        await later
    assert await store.current_epoch() == epoch + 1
    assert await consensus.shard_ids() == [B]


async def test_a_transaction_that_never_ends_does_not_stop_a_change_that_raises_the_epoch(
    store: PostgresStore, other: psycopg.AsyncConnection
) -> None:
    """As a client does that was frozen between two packets."""
    epoch = await store.raise_epoch()
    await other.execute(CHANGE, (epoch,))
    async with asyncio.timeout(30):
        outcome = await store.consensus(epoch).compare_and_set_all(
            [], stash=append(0, [row(0, "ours")]), raises_epoch=True
        )
    assert outcome == AllSet()
    with pytest.raises(psycopg.OperationalError):
        await other.commit()
    assert (await store.stash().read()).rows == [row(0, "ours")]
    assert await store.consensus(epoch).shard_ids() == []


async def test_what_cannot_be_ended_is_told_in_the_end(
    store: PostgresStore, other: psycopg.AsyncConnection, postgres_url: str
) -> None:
    """A lock that is no change's is nobody's to end; patience has a limit, and nothing was done."""
    epoch = await store.raise_epoch()
    await other.execute("LOCK TABLE epoch IN ROW EXCLUSIVE MODE")
    hasty = PostgresStore(postgres_url, patience_s=0.1)
    with pytest.raises(StoreUnreachable, match="hold up the epoch"):
        await hasty.consensus(epoch).compare_and_set_all([], stash=append(0, []), raises_epoch=True)
    await hasty.close()
    await other.rollback()
    assert await store.current_epoch() == epoch
    assert await store.stash().upper() == 0


async def test_appends_beside_changes_of_shards_and_timelines_never_deadlock(
    store: PostgresStore,
) -> None:
    """All kinds of locks at once, in every order in which changes name them."""
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)

    async def stash(name: str) -> None:
        done = 0
        while done < 8:
            upper = await store.stash().upper()
            last = (await rows.read(Timeline.CATALOG)).write_ts
            at = max(upper, last + 1)
            outcome = await consensus.compare_and_set_all(
                [CompareAndSet(ShardId(f"{name} {done}"), None, b"")],
                claimed=ClaimedWrite(Timeline.CATALOG, ts(at)),
                stash=append(upper, [row(at, f"{name} {done}")], at=at, since=at),
            )
            done += outcome == AllSet()

    async def advance() -> None:
        for _ in range(60):
            await rows.allocate(Timeline.CATALOG, ts(0))
            await rows.apply(Timeline.CATALOG, ts(1))

    async with asyncio.timeout(60):
        await asyncio.gather(stash("x"), stash("y"), stash("z"), advance())
    assert len((await store.stash().read()).rows) == len(await consensus.shard_ids()) == 24


@pytest.mark.parametrize("raises_epoch", [False, True])
@pytest.mark.parametrize("fate", LOST)
async def test_one_append_and_one_cut(postgres_url: str, fate: Fate, raises_epoch: bool) -> None:
    """Each way of losing a change: the rows are there once, and the epoch moved once or not."""
    async with running_cut_proxy(postgres_url) as proxy:
        store = PostgresStore(proxy.url(postgres_url))
        await store.stash().ensure([ITEM])
        epoch = await store.raise_epoch()
        cuts = iter([fate])
        proxy.choose = lambda sent: next(cuts, Fate.ARRIVES) if is_change(sent) else Fate.ARRIVES
        outcome = await store.consensus(epoch).compare_and_set_all(
            [CompareAndSet(A, None, b"a")],
            stash=append(0, [row(0, "k")]),
            raises_epoch=raises_epoch,
        )
        assert outcome == AllSet()
        await asyncio.sleep(proxy.late_s * 2)
        assert proxy.fates[0] is fate
        now = Epoch(epoch + raises_epoch)
        assert await store.current_epoch() == now
        assert (await store.stash().read()).rows == [row(0, "k")]
        again = append(1, [row(1, "k2")])
        assert await store.consensus(now).compare_and_set_all([], stash=again) == AllSet()
        await store.close()
