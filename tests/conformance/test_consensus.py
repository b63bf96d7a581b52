"""What every store promises about shard states."""

import asyncio

import pytest

from evertide.persist.faults import Fenced
from evertide.persist.store.protocol import (
    AllSet,
    AppliedWrite,
    CompareAndSet,
    Head,
    SetMismatch,
    Store,
    Unchanged,
)
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timeline, Timestamp

A, B, C = ShardId("a"), ShardId("b"), ShardId("c")


async def test_an_unknown_shard_has_no_head(store: Store) -> None:
    consensus = store.consensus(await store.raise_epoch())
    assert await consensus.head(A) is None
    assert await consensus.heads({A: None, B: 3}) == {A: None, B: None}
    assert await consensus.shard_ids() == []


async def test_seqnos_count_changes(store: Store) -> None:
    consensus = store.consensus(await store.raise_epoch())
    assert await consensus.compare_and_set_all([CompareAndSet(A, None, b"1")]) == AllSet()
    assert await consensus.compare_and_set_all([CompareAndSet(A, 1, b"2")]) == AllSet()
    assert await consensus.head(A) == Head(2, b"2")
    assert await consensus.head(A, 1) == Head(2, b"2")
    assert await consensus.head(A, 2) == Unchanged()
    assert await consensus.heads({A: 2, B: None}) == {A: Unchanged(), B: None}


@pytest.mark.parametrize("expected", [None, 1, 3])
async def test_another_seqno_than_expected_sets_nothing(store: Store, expected: int | None) -> None:
    consensus = store.consensus(await store.raise_epoch())
    await consensus.compare_and_set_all([CompareAndSet(A, None, b"1")])
    await consensus.compare_and_set_all([CompareAndSet(A, 1, b"2")])
    outcome = await consensus.compare_and_set_all([CompareAndSet(A, expected, b"3")])
    assert outcome == SetMismatch((A,))
    assert await consensus.head(A) == Head(2, b"2")


async def test_all_or_nothing(store: Store) -> None:
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)
    await consensus.compare_and_set_all([CompareAndSet(B, None, b"b")])
    outcome = await consensus.compare_and_set_all(
        [CompareAndSet(C, None, b"c"), CompareAndSet(B, 7, b"x"), CompareAndSet(A, None, b"a")],
        applied=[AppliedWrite(Timeline.EPOCH_MS, Timestamp(9))],
    )
    assert outcome == SetMismatch((B,))
    assert await consensus.shard_ids() == [B]
    assert (await rows.read(Timeline.EPOCH_MS)).read_ts == 0


async def test_many_shards_and_an_oracle_write_in_one_transaction(store: Store) -> None:
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)
    outcome = await consensus.compare_and_set_all(
        [CompareAndSet(B, None, b"b"), CompareAndSet(A, None, b"a")],
        applied=[AppliedWrite(Timeline.EPOCH_MS, Timestamp(9))],
    )
    assert outcome == AllSet()
    assert await consensus.heads({A: None, B: None}) == {A: Head(1, b"a"), B: Head(1, b"b")}
    assert (await rows.read(Timeline.EPOCH_MS)).read_ts == 9
    assert await rows.allocate(Timeline.EPOCH_MS, Timestamp(0)) == 10


async def test_each_for_itself(store: Store) -> None:
    consensus = store.consensus(await store.raise_epoch())
    await consensus.compare_and_set_all([CompareAndSet(B, None, b"b")])
    outcome = await consensus.compare_and_set_each(
        [CompareAndSet(C, None, b"c"), CompareAndSet(B, 7, b"x"), CompareAndSet(A, None, b"a")]
    )
    assert outcome == SetMismatch((B,))
    assert await consensus.shard_ids() == [A, B, C]
    assert await consensus.head(B) == Head(1, b"b")


async def test_of_racing_sets_one_wins(store: Store) -> None:
    consensus = store.consensus(await store.raise_epoch())
    racing = [[CompareAndSet(A, None, bytes([i])), CompareAndSet(B, None, b"")] for i in range(20)]
    outcomes = await asyncio.gather(*map(consensus.compare_and_set_all, racing))
    winners = [i for i, outcome in enumerate(outcomes) if outcome == AllSet()]
    assert len(winners) == 1
    assert await consensus.head(A) == Head(1, bytes(winners))


async def test_an_old_epoch_can_write_nothing(store: Store) -> None:
    """Not one shard, not several, not an oracle row; and it learns the epoch that rules."""
    old = await store.raise_epoch()
    consensus, rows = store.consensus(old), store.oracle_rows(old)
    await consensus.compare_and_set_all([CompareAndSet(A, None, b"kept")])
    await rows.apply(Timeline.EPOCH_MS, Timestamp(5))
    new = await store.raise_epoch()
    assert new > old
    assert await store.current_epoch() == new
    with pytest.raises(Fenced) as fenced:
        await consensus.compare_and_set_all(
            [CompareAndSet(A, 1, b"x"), CompareAndSet(B, None, b"")]
        )
    assert fenced.value.current_epoch == new
    with pytest.raises(Fenced):
        await consensus.compare_and_set_each([CompareAndSet(A, 1, b"x")])
    with pytest.raises(Fenced):
        await consensus.compare_and_set_all(
            [], applied=[AppliedWrite(Timeline.EPOCH_MS, Timestamp(9))]
        )
    for call in (
        rows.read(Timeline.EPOCH_MS),
        rows.allocate(Timeline.EPOCH_MS, Timestamp(0)),
        rows.apply(Timeline.EPOCH_MS, Timestamp(9)),
    ):
        with pytest.raises(Fenced):
            await call
    assert await store.consensus(new).head(A) == Head(1, b"kept")
    assert await store.consensus(new).shard_ids() == [A]
    assert (await store.oracle_rows(new).read(Timeline.EPOCH_MS)).write_ts == 5


async def test_a_fenced_request_does_not_disturb_others_of_its_group(store: Store) -> None:
    old = store.consensus(await store.raise_epoch())
    new = store.consensus(await store.raise_epoch())
    outcomes = await asyncio.gather(
        new.compare_and_set_all([CompareAndSet(A, None, b"a")]),
        old.compare_and_set_all([CompareAndSet(B, None, b"b")]),
        new.compare_and_set_all([CompareAndSet(C, None, b"c")]),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [AllSet, Fenced, AllSet]
    assert await new.shard_ids() == [A, C]


async def test_the_first_epoch_is_one(store: Store) -> None:
    assert await store.current_epoch() == 0
    assert await store.raise_epoch() == 1


async def test_allocated_timestamps_never_overlap(store: Store) -> None:
    rows = store.oracle_rows(await store.raise_epoch())
    blocks = await asyncio.gather(
        *(rows.allocate(Timeline.CATALOG, Timestamp(i), count=3) for i in range(30))
    )
    handed_out = [first + i for first in blocks for i in range(3)]
    assert len(set(handed_out)) == 90
    assert (await rows.read(Timeline.CATALOG)).write_ts == max(handed_out)
    assert (await rows.read(Timeline.CATALOG)).read_ts == 0
