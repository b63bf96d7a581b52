"""What shards and tables promise, wherever they live: every combination of stores on offer."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from evertide.oracle.durable import DurableOracle
from evertide.persist.faults import BelowSince, Fenced, ShardMissing
from evertide.persist.handle import Append, Appended, PersistClient
from evertide.persist.state import Missing, UpperMismatch, create, initial_state
from evertide.persist.store.protocol import AppliedWrite
from evertide.persist.txn import (
    Committed,
    TableForgotten,
    TableWrite,
    TimestampTaken,
    Txns,
    TxnsUpperMismatch,
    forget_table,
    register_table,
)
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timeline, Timestamp
from evertide.vocab.update import Update
from tests.conformance.conftest import Place
from tests.persist.racing import DESC, SHARD, append_one, check_rows, commit_one
from tests.support.owned import OURS

T1, T2, TXNS = ShardId("t1"), ShardId("t2"), ShardId("txns")
# Beyond what a state holds inline, so that these go to the blob store.
MANY = 10_000


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def one(name: str, number: int, at: int, diff: int = 1) -> Update:
    return Update((name, number), ts(at), diff)


def write(*numbers: int, diff: int = 1) -> TableWrite:
    return TableWrite(DESC, [(("w", number), diff) for number in numbers])


@pytest.fixture
async def client(place: Place) -> AsyncIterator[PersistClient]:
    epoch = await place.store.raise_epoch()
    async with PersistClient(place.store.consensus(epoch), place.blob, owner=OURS) as opened:
        yield opened


@pytest.fixture
async def txns(client: PersistClient) -> Txns:
    opened = Txns(client, TXNS)
    await opened.ensure()
    await client.append_all([], also=[register_table(T1), register_table(T2)])
    return opened


async def another(place: Place) -> PersistClient:
    """A client as another process of the same generation has it: it knows nothing yet."""
    epoch = await place.store.current_epoch()
    return PersistClient(place.store.consensus(epoch), place.blob, owner=OURS)


async def test_what_is_appended_is_read(place: Place, client: PersistClient) -> None:
    await client.create_shard(SHARD)
    small = [one("a", 1, 0), one("b", 2, 1)]
    large = [one("c", number, 2) for number in range(MANY)]
    assert await client.compare_and_append(SHARD, DESC, small, ts(0), ts(2)) == Appended(ts(2))
    assert await client.compare_and_append(SHARD, DESC, large, ts(2), ts(3)) == Appended(ts(3))
    undo = [one("a", 1, 3, -1)]
    assert await client.compare_and_append(SHARD, DESC, undo, ts(3), ts(4)) == Appended(ts(4))
    for reader in (client, await another(place)):
        assert sorted(await reader.snapshot(SHARD, DESC, ts(1))) == [one("a", 1, 1), one("b", 2, 1)]
        found = await reader.snapshot(SHARD, DESC, ts(3))
        assert sorted(found) == sorted([one("b", 2, 3), *(one("c", n, 3) for n in range(MANY))])
        assert await reader.read_updates(SHARD, DESC, ts(3), ts(4)) == undo
    assert await place.blob.keys(), "the large one went to the blob store"


async def test_an_append_elsewhere_than_at_the_upper_is_refused(client: PersistClient) -> None:
    await client.create_shard(SHARD)
    await client.compare_and_append(SHARD, DESC, [one("a", 1, 4)], ts(0), ts(5))
    for lower in (ts(0), ts(4), ts(6)):
        outcome = await client.compare_and_append(SHARD, DESC, [], lower, ts(9))
        assert outcome == UpperMismatch(ts(5))
    missing = ShardId("missing")
    assert await client.compare_and_append(missing, DESC, [], ts(0), ts(1)) == Missing()
    with pytest.raises(ShardMissing):
        await client.state(missing)


async def test_history_below_since_is_not_readable(client: PersistClient) -> None:
    await client.create_shard(SHARD, since=ts(7))
    await client.compare_and_append(SHARD, DESC, [one("a", 1, 7)], ts(7), ts(9))
    with pytest.raises(BelowSince):
        await client.snapshot(SHARD, DESC, ts(6))
    assert await client.snapshot(SHARD, DESC, ts(7)) == [one("a", 1, 7)]


async def test_listening_gives_every_update_once(place: Place, client: PersistClient) -> None:
    """To somebody who has to find out by himself, and to the end of the shard."""
    await client.create_shard(SHARD)
    written = [one("w", number, number) for number in range(12)]

    async def append_all() -> None:
        for update in written:
            await client.compare_and_append(SHARD, DESC, [update], update.ts, ts(update.ts + 1))
        await client.compare_and_append(SHARD, DESC, [], ts(12), EMPTY_FRONTIER)

    appending = asyncio.create_task(append_all())
    heard: list[Update] = []
    async with asyncio.timeout(30):
        async for updates, _ in (await another(place)).listen(SHARD, DESC, ts(0)):
            heard += updates
    await appending
    assert heard == written


async def test_racing_appends_are_all_there_once(place: Place, client: PersistClient) -> None:
    await client.create_shard(SHARD)
    clients = [client, await another(place), await another(place)]

    async def append(number: int) -> None:
        for row in range(8):
            await append_one(clients[number], f"w{number}", row)

    await asyncio.gather(*map(append, range(3)))
    found = await client.snapshot(SHARD, DESC, ts(23))
    written = {(f"w{number}", row) for number in range(3) for row in range(8)}
    check_rows(found, written, written)


async def test_appends_each_for_itself(client: PersistClient) -> None:
    for shard_id in (T1, T2):
        await client.create_shard(shard_id)
    await client.compare_and_append(T1, DESC, [], ts(0), ts(5))
    outcomes = await client.append_each(
        [
            Append(T1, DESC, [one("a", 1, 0)], ts(0), ts(9)),
            Append(T2, DESC, [one("a", 1, 0)], ts(0), ts(9)),
            Append(ShardId("missing"), DESC, [], ts(0), ts(9)),
        ]
    )
    assert outcomes == [UpperMismatch(ts(5)), Appended(ts(9)), Missing()]


async def test_a_commit_is_at_one_timestamp_or_not_at_all(
    place: Place, client: PersistClient, txns: Txns
) -> None:
    assert await txns.commit({T1: write(1), T2: write(*range(MANY))}, at=ts(5)) == Committed(ts(5))
    assert await txns.commit({T1: write(2)}, at=ts(5)) == TxnsUpperMismatch(ts(6))
    outcome = await txns.commit({T1: write(2)}, at=ts(8), expected_upper=ts(5))
    assert outcome == TxnsUpperMismatch(ts(6))
    await client.append_all([], also=[forget_table(T2)])
    assert await txns.commit({T1: write(2), T2: write(2)}, at=ts(8)) == TableForgotten(T2)
    assert await txns.commit({T1: write(1, diff=-1)}, at=ts(9)) == Committed(ts(9))
    seen = Txns(await another(place), TXNS)
    assert await seen.upper() == 10
    assert await seen.table_snapshot(T1, DESC, ts(8)) == [one("w", 1, 8)]
    assert await seen.table_snapshot(T1, DESC, ts(9)) == []
    assert len(await seen.table_snapshot(T2, DESC, ts(9))) == MANY
    assert await seen.table_snapshot(T2, DESC, ts(4)) == []


async def test_racing_commits_write_all_tables_or_none(place: Place, txns: Txns) -> None:
    everyone = [txns, Txns(await another(place), TXNS)]

    async def commit(number: int) -> None:
        for row in range(6):
            await commit_one(everyone[number % 2], [T1, T2], f"w{number}", row)

    await asyncio.gather(*map(commit, range(4)))
    last = ts(await txns.upper() - 1)
    first, second = [await txns.table_snapshot(table, DESC, last) for table in (T1, T2)]
    assert sorted(first) == sorted(second)
    written = {(f"w{number}", row) for number in range(4) for row in range(6)}
    check_rows(first, written, written)
    for at in range(last):
        counts = [len(await txns.table_snapshot(table, DESC, ts(at))) for table in (T1, T2)]
        assert counts[0] == counts[1], f"tables differ at {at}"


async def test_a_commit_takes_its_timestamp_in_its_own_transaction(
    place: Place, txns: Txns
) -> None:
    rows = place.store.oracle_rows(await place.store.current_epoch())
    oracle = DurableOracle(rows, ManualClock(start_ms=10))
    assert await oracle.write_ts(Timeline.EPOCH_MS) == 10
    assert await txns.commit_claiming({T1: write(1)}, at=ts(10)) == TimestampTaken(ts(10))
    assert await txns.table_updates(T1, DESC, ts(0), await txns.upper()) == []
    assert await txns.commit_claiming({T1: write(1)}, at=ts(11)) == Committed(ts(11))
    assert await oracle.read_ts(Timeline.EPOCH_MS) == 11
    assert await oracle.write_ts(Timeline.EPOCH_MS) == 12
    applied = [AppliedWrite(Timeline.EPOCH_MS, ts(12))]
    assert await txns.commit({T1: write(2)}, at=ts(12), applied=applied) == Committed(ts(12))
    assert await oracle.read_ts(Timeline.EPOCH_MS) == 12


async def test_a_fenced_process_writes_nothing(
    place: Place, client: PersistClient, txns: Txns
) -> None:
    await client.create_shard(SHARD)
    await txns.commit({T1: write(1)}, at=ts(5))
    new = await place.store.raise_epoch()
    with pytest.raises(Fenced):
        await txns.commit({T1: write(2)}, at=ts(6))
    with pytest.raises(Fenced):
        await txns.commit_claiming({T1: write(2)}, at=ts(6))
    with pytest.raises(Fenced):
        await client.compare_and_append(SHARD, DESC, [one("a", 1, 0)], ts(0), ts(1))
    with pytest.raises(Fenced):
        await client.machine.apply_all([create(ShardId("new"), initial_state())])
    heir = PersistClient(place.store.consensus(new), place.blob, owner=OURS)
    assert (await heir.state(SHARD)).upper == 0
    assert await Txns(heir, TXNS).upper() == 6
    assert await Txns(heir, TXNS).table_snapshot(T1, DESC, ts(5)) == [one("w", 1, 5)]


@pytest.mark.parametrize("seed", range(2))
async def test_lost_answers_neither_lose_nor_double_rows(
    place: Place, client: PersistClient, txns: Txns, seed: int
) -> None:
    await client.create_shard(SHARD)
    epoch, rng = await place.store.current_epoch(), random.Random(seed)
    clients = [
        PersistClient(place.unreliable(epoch, rng), place.blob, owner=OURS) for _ in range(2)
    ]

    async def work(number: int) -> None:
        unlucky = clients[number % 2]
        for row in range(6):
            await append_one(unlucky, f"w{number}", row)
            await commit_one(Txns(unlucky, TXNS), [T1, T2], f"w{number}", row)

    await asyncio.gather(*map(work, range(3)))
    # What arrives late has arrived by now.
    await asyncio.sleep(0.2)
    written = {(f"w{number}", row) for number in range(3) for row in range(6)}
    upper = (await client.state(SHARD)).upper
    assert upper == len(written), "each append moves the upper by one"
    check_rows(await client.snapshot(SHARD, DESC, ts(upper - 1)), written, written)
    for table in (T1, T2):
        found = await txns.table_snapshot(table, DESC, ts(await txns.upper() - 1))
        check_rows(found, written, written)
    for unlucky in clients:
        await unlucky.__aexit__()
