"""What a commit over several tables promises."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from evertide.oracle.durable import DurableOracle
from evertide.persist.handle import Append, Appended, PersistClient, Refused
from evertide.persist.state import Forgotten, UpperMismatch, create, initial_state
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import AppliedWrite
from evertide.persist.txn import (
    Committed,
    TableForgotten,
    TableWrite,
    Txns,
    TxnsUpperMismatch,
    forget_table,
    register_table,
)
from evertide.vocab.clock import ManualClock
from evertide.vocab.datum import Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timeline, Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("a", INT8))
T1, T2, TXNS, CATALOG = ShardId("t1"), ShardId("t2"), ShardId("txns"), ShardId("catalog")


def write(*rows: Row, diff: int = 1) -> TableWrite:
    return TableWrite(DESC, [(row, diff) for row in rows])


def ts(value: int) -> Timestamp:
    return Timestamp(value)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def client(store: MemoryStore) -> AsyncIterator[PersistClient]:
    epoch = await store.raise_epoch()
    async with PersistClient(store.consensus(epoch), MemoryBlob()) as opened:
        yield opened


@pytest.fixture
async def txns(client: PersistClient) -> Txns:
    opened = Txns(client, TXNS)
    await opened.ensure()
    await opened.ensure()
    await client.append_all([], also=[register_table(T1), register_table(T2)])
    return opened


async def test_a_commit_moves_the_upper_of_every_table(txns: Txns) -> None:
    assert await txns.commit({T1: write((1,))}, at=ts(5)) == Committed(ts(5))
    assert await txns.upper() == 6
    assert await txns.table_snapshot(T1, DESC, ts(5)) == [Update((1,), ts(5), 1)]
    assert await txns.table_snapshot(T1, DESC, ts(4)) == []
    assert await txns.table_snapshot(T2, DESC, ts(5)) == []


async def test_contents_move_with_time_though_the_table_is_not_written(txns: Txns) -> None:
    await txns.commit({T1: write((1,))}, at=ts(5))
    await txns.commit({}, at=ts(90))
    assert await txns.table_snapshot(T1, DESC, ts(90)) == [Update((1,), ts(90), 1)]
    await txns.commit({T1: write((1,), diff=-1)}, at=ts(95))
    assert await txns.table_snapshot(T1, DESC, ts(95)) == []
    assert await txns.table_snapshot(T1, DESC, ts(94)) == [Update((1,), ts(94), 1)]
    updates = await txns.table_updates(T1, DESC, ts(0), ts(96))
    assert updates == [Update((1,), ts(5), 1), Update((1,), ts(95), -1)]


async def test_a_timestamp_that_is_complete_already_is_refused(txns: Txns) -> None:
    await txns.commit({}, at=ts(5))
    assert await txns.commit({T1: write((1,))}, at=ts(5)) == TxnsUpperMismatch(ts(6))
    assert await txns.commit({T1: write((1,))}, at=ts(6)) == Committed(ts(6))


async def test_an_optimistic_write_fails_if_anything_was_committed_since_its_read(
    txns: Txns,
) -> None:
    seen = await txns.upper()
    await txns.commit({T2: write((1,))}, at=ts(5))
    lost = await txns.commit({T1: write((1,))}, at=ts(9), expected_upper=seen)
    assert lost == TxnsUpperMismatch(ts(6))
    assert await txns.commit({T1: write((1,))}, at=ts(9), expected_upper=ts(6)) == Committed(ts(9))


async def test_a_dropped_table_refuses_the_whole_commit(client: PersistClient, txns: Txns) -> None:
    await client.append_all([], also=[forget_table(T2)])
    both = {T1: write((1,)), T2: write((1,))}
    assert await txns.commit(both, at=ts(5)) == TableForgotten(T2)
    assert await txns.commit({T2: write()}, at=ts(5)) == TableForgotten(T2)
    assert await txns.commit({ShardId("t9"): write()}, at=ts(5)) == TableForgotten(ShardId("t9"))
    assert await txns.upper() == 0


async def test_a_table_registered_again_has_its_contents(client: PersistClient, txns: Txns) -> None:
    await txns.commit({T1: write((1,))}, at=ts(5))
    await client.append_all([], also=[forget_table(T1)])
    await txns.commit({}, at=ts(50))
    await client.append_all([], also=[register_table(T1)])
    await txns.commit({T1: write((2,))}, at=ts(60))
    assert [u.row for u in await txns.table_snapshot(T1, DESC, ts(60))] == [(1,), (2,)]


async def test_the_catalog_and_its_tables_change_in_one_transaction(
    client: PersistClient, txns: Txns
) -> None:
    """A lost catalog race must leave no table behind, and a won one must have made it."""
    await client.append_all([], also=[create(CATALOG, initial_state())])
    row = [Update((1,), ts(3), 1)]
    t3 = register_table(ShardId("t3"))
    lost = await client.append_all([Append(CATALOG, DESC, row, ts(2), ts(4))], also=[t3])
    assert lost == Refused(CATALOG, UpperMismatch(ts(0)))
    assert await txns.commit({t3.shard_id: write()}, at=ts(5)) == TableForgotten(t3.shard_id)
    won = await client.append_all([Append(CATALOG, DESC, row, ts(0), ts(4))], also=[t3])
    assert won == Appended(ts(4))
    assert await txns.commit({t3.shard_id: write((1,))}, at=ts(5)) == Committed(ts(5))
    refused = await client.append_all(
        [Append(CATALOG, DESC, [], ts(4), ts(5)), Append(T1, DESC, [], ts(0), ts(1))],
        also=[forget_table(T1)],
    )
    assert refused == Refused(T1, Forgotten())


async def test_the_oracle_hears_of_the_commit_in_the_same_transaction(
    store: MemoryStore, txns: Txns
) -> None:
    oracle = DurableOracle(store.oracle_rows(await store.current_epoch()), ManualClock(100))
    at = await oracle.write_ts(Timeline.EPOCH_MS)
    applied = [AppliedWrite(Timeline.EPOCH_MS, at)]
    assert await txns.commit({T1: write((1,))}, at=at, applied=applied) == Committed(at)
    assert await oracle.read_ts(Timeline.EPOCH_MS) == at
    later = [AppliedWrite(Timeline.EPOCH_MS, ts(900))]
    lost = await txns.commit({T1: write((1,))}, at=at, applied=later)
    assert isinstance(lost, TxnsUpperMismatch)
    assert await oracle.read_ts(Timeline.EPOCH_MS) == at


async def test_a_table_is_followed_through_times_in_which_it_is_not_written(txns: Txns) -> None:
    heard: list[tuple[list[Update], Timestamp]] = []

    async def follow() -> None:
        async for change in txns.table_listen(T1, DESC, ts(0)):
            heard.append(change)

    task = asyncio.create_task(follow())
    await txns.commit({T1: write((1,))}, at=ts(5))
    await asyncio.sleep(0.01)
    await txns.commit({T2: write((7,))}, at=ts(8))
    await asyncio.sleep(0.01)
    await txns.commit({T1: write((2,))}, at=ts(9))
    await asyncio.sleep(0.01)
    task.cancel()
    assert [u for updates, _ in heard for u in updates] == [
        Update((1,), ts(5), 1),
        Update((2,), ts(9), 1),
    ]
    assert [upper for _, upper in heard] == [6, 9, 10]


async def test_a_read_waits_until_its_time_is_complete(txns: Txns) -> None:
    read = asyncio.create_task(txns.table_snapshot(T1, DESC, ts(7)))
    await txns.commit({T1: write((1,))}, at=ts(6))
    await asyncio.sleep(0.01)
    assert not read.done()
    await txns.commit({T1: write((2,))}, at=ts(7))
    async with asyncio.timeout(0.5):
        assert [u.row for u in await read] == [(1,), (2,)]
