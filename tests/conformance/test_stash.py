"""What every store promises about its tables for rows of text."""

import asyncio

import pytest

from evertide.persist.faults import BelowSince, Corrupt, Fenced
from evertide.persist.store.protocol import (
    AllSet,
    AppliedWrite,
    ClaimedWrite,
    ClaimLost,
    CompareAndSet,
    Head,
    OracleRow,
    SetMismatch,
    StashMismatch,
    StashPage,
    Store,
)
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timeline
from tests.conformance.stash_rows import ITEM, NOTHING, ROLE, append, contents, row, ts

A, B = ShardId("a"), ShardId("b")
DATA, CATALOG = Timeline.EPOCH_MS, Timeline.CATALOG


async def test_a_stash_nobody_wrote_to_is_empty(store: Store) -> None:
    stash = store.stash()
    assert await stash.upper() == 0
    assert await stash.read() == NOTHING
    await stash.ensure([ITEM, ROLE])
    await stash.ensure([ROLE, ITEM])
    assert await stash.upper() == 0
    assert await stash.read() == await stash.read(kinds=[ITEM, "unknown"]) == NOTHING


async def test_what_was_appended_is_read(store: Store) -> None:
    consensus, stash = store.consensus(await store.raise_epoch()), store.stash()
    await stash.ensure([ITEM, ROLE])
    first = [row(0, "k1"), row(0, "r", kind=ROLE)]
    second = [row(4, "k1", diff=-1), row(4, "k1", "new")]
    assert await consensus.compare_and_set_all([], stash=append(0, first)) == AllSet()
    assert await consensus.compare_and_set_all([], stash=append(1, second, at=4)) == AllSet()
    assert await stash.upper() == 5
    page = await stash.read()
    assert (page.since, page.upper) == (0, 5)
    assert sorted(page.rows) == sorted(first + second)
    assert [found.ts for found in page.rows] == [0, 0, 4, 4]
    assert await stash.read(kinds=[ROLE]) == StashPage([first[1]], ts(0), ts(5))
    assert sorted((await stash.read(ts(1))).rows) == sorted(second)
    assert await stash.read(ts(5)) == await stash.read(kinds=[]) == StashPage([], ts(0), ts(5))


async def test_any_text_comes_back_as_it_was(store: Store) -> None:
    consensus, stash = store.consensus(await store.raise_epoch()), store.stash()
    await stash.ensure([ITEM])
    texts = ["", "é\u4e2d\U0001f600", "'\"\\%s{}\n\t", "k" * 20_000, "NULL", "k ", "k"]
    rows = [row(0, key, value) for key in texts for value in texts]
    await consensus.compare_and_set_all([], stash=append(0, rows))
    assert sorted((await stash.read()).rows) == sorted(rows)


async def test_rows_shards_and_the_oracle_change_together(store: Store) -> None:
    epoch = await store.raise_epoch()
    consensus, rows, stash = store.consensus(epoch), store.oracle_rows(epoch), store.stash()
    await stash.ensure([ITEM])
    outcome = await consensus.compare_and_set_all(
        [CompareAndSet(A, None, b"a"), CompareAndSet(B, None, b"b")],
        applied=[AppliedWrite(DATA, ts(9))],
        claimed=ClaimedWrite(CATALOG, ts(3)),
        stash=append(0, [row(3, "k")], at=3),
    )
    assert outcome == AllSet()
    assert (await stash.read()).rows == [row(3, "k")]
    assert await consensus.shard_ids() == [A, B]
    assert await rows.read(CATALOG) == OracleRow(ts(3), ts(3))
    assert (await rows.read(DATA)).read_ts == 9


@pytest.mark.parametrize("raises_epoch", [False, True])
@pytest.mark.parametrize("obstacle", ["stash", "shard", "new shard", "claim", "epoch", "table"])
async def test_all_or_nothing(store: Store, obstacle: str, raises_epoch: bool) -> None:
    """Whatever stands in the way: no row, no shard, no timestamp and no epoch changes."""
    epoch = await store.raise_epoch()
    consensus, stash = store.consensus(epoch), store.stash()
    await stash.ensure([ITEM])
    await consensus.compare_and_set_all([CompareAndSet(A, None, b"a")])
    await consensus.compare_and_set_all(
        [], claimed=ClaimedWrite(CATALOG, ts(5)), stash=append(0, [row(5, "kept")], at=5)
    )
    if obstacle == "epoch":
        epoch = await store.raise_epoch()
    before = await stash.read()
    expected = {
        "stash": StashMismatch(ts(6)),
        "shard": SetMismatch((A,)),
        "new shard": SetMismatch((A,)),
        "claim": ClaimLost(ts(5)),
    }
    sets = {"shard": CompareAndSet(A, 7, b"x"), "new shard": CompareAndSet(A, None, b"x")}
    change = consensus.compare_and_set_all(
        [CompareAndSet(B, None, b"b"), sets.get(obstacle, CompareAndSet(A, 1, b"x"))],
        applied=[AppliedWrite(DATA, ts(9))],
        claimed=ClaimedWrite(CATALOG, ts(5 if obstacle == "claim" else 8)),
        stash=append(
            4 if obstacle == "stash" else 6,
            [row(8, "new"), *([row(8, "x", kind="unknown")] if obstacle == "table" else [])],
            at=8,
            since=8,
        ),
        raises_epoch=raises_epoch,
    )
    if obstacle in expected:
        assert await change == expected[obstacle]
    else:
        fault, words = (
            (Fenced, "fenced") if obstacle == "epoch" else (Corrupt, "no table for unknown")
        )
        with pytest.raises(fault, match=words):
            await change
    assert await store.current_epoch() == epoch
    rows, consensus = store.oracle_rows(epoch), store.consensus(epoch)
    assert await stash.read() == before
    assert await consensus.heads({A: None, B: None}) == {A: Head(1, b"a"), B: None}
    assert await rows.read(CATALOG) == OracleRow(ts(5), ts(5))
    assert (await rows.read(DATA)).write_ts == 0
    again = append(6, [row(6, "later")])
    assert await consensus.compare_and_set_all([], stash=again) == AllSet()


async def test_the_stash_is_reported_first(store: Store) -> None:
    consensus, stash = store.consensus(await store.raise_epoch()), store.stash()
    await stash.ensure([ITEM])
    claimed = ClaimedWrite(CATALOG, ts(3))
    await consensus.compare_and_set_all([], claimed=claimed, stash=append(0, [], at=3))
    sets = [CompareAndSet(A, 7, b"x")]
    outcome = await consensus.compare_and_set_all(sets, claimed=claimed, stash=append(2, [], at=3))
    assert outcome == StashMismatch(ts(4))
    outcome = await consensus.compare_and_set_all(sets, claimed=claimed, stash=append(4, []))
    assert outcome == SetMismatch((A,))
    outcome = await consensus.compare_and_set_all([], claimed=claimed, stash=append(4, []))
    assert outcome == ClaimLost(ts(3))


async def test_an_append_without_rows_moves_the_upper(store: Store) -> None:
    consensus, stash = store.consensus(await store.raise_epoch()), store.stash()
    assert await consensus.compare_and_set_all([], stash=append(0, [], at=7)) == AllSet()
    assert await stash.read() == StashPage([], ts(0), ts(8))


async def test_of_racing_appends_one_wins(store: Store) -> None:
    consensus, stash = store.consensus(await store.raise_epoch()), store.stash()
    await stash.ensure([ITEM])
    for upper in range(4):
        racing = (
            consensus.compare_and_set_all([], stash=append(upper, [row(upper, f"{upper} {i}")]))
            for i in range(12)
        )
        outcomes = await asyncio.gather(*racing)
        assert outcomes.count(AllSet()) == 1
        assert outcomes.count(StashMismatch(ts(upper + 1))) == 11
        winner = f"{upper} {outcomes.index(AllSet())}"
        assert (await stash.read(ts(upper))).rows == [row(upper, winner)]


async def test_a_page_is_of_one_moment(store: Store) -> None:
    """Two tables say the same number at every timestamp; a page torn between them would not."""
    consensus, stash = store.consensus(await store.raise_epoch()), store.stash()
    kinds = [ITEM, ROLE]
    await stash.ensure(kinds)
    await consensus.compare_and_set_all(
        [], stash=append(0, [row(0, "k", "0", kind=k) for k in kinds])
    )
    ended = False

    async def write() -> None:
        nonlocal ended
        for at in range(1, 600):
            rows = [row(at, "k", str(at - 1), -1, k) for k in kinds]
            rows += [row(at, "k", str(at), 1, k) for k in kinds]
            outcome = await consensus.compare_and_set_all([], stash=append(at, rows, since=at))
            assert outcome == AllSet()
        ended = True

    async def look() -> None:
        while not ended:
            page = await stash.read()
            number = str(page.upper - 1)
            assert contents(page) == {(k, "k", number): 1 for k in kinds}
            # A store in memory answers without a pause, in which nobody else would write.
            await asyncio.sleep(0)

    await asyncio.gather(write(), look(), look())
    assert (await stash.read()).since >= 256, "history was merged meanwhile"


async def test_merged_history_is_not_read_as_if_it_were_exact(store: Store) -> None:
    consensus, stash = store.consensus(await store.raise_epoch()), store.stash()
    await stash.ensure([ITEM])
    for at in range(300):
        stored = append(at, [row(at, f"k{at}")], since=max(at - 10, 0))
        await consensus.compare_and_set_all([], stash=stored)
    since = (await stash.read()).since
    assert since == 256
    for lower in (1, since - 1, since):
        with pytest.raises(BelowSince) as below:
            await stash.read(ts(lower))
        assert below.value.since == since
    assert (await stash.read(ts(since + 1))).rows == [row(at, f"k{at}") for at in range(257, 300)]
    whole = await stash.read()
    assert {found.ts for found in whole.rows} == set(range(256, 300))
    assert len(contents(whole)) == 300
