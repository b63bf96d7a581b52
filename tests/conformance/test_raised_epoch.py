"""What every store promises about a change that opens the next generation."""

import asyncio

import pytest

from evertide.persist.faults import Fenced
from evertide.persist.store.protocol import (
    AllSet,
    ClaimedWrite,
    CompareAndSet,
    Head,
    SetMismatch,
    Store,
)
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline
from tests.conformance.stash_rows import ITEM, append, row, ts

A, B = ShardId("a"), ShardId("b")


async def test_the_change_is_done_and_its_handle_is_fenced(store: Store) -> None:
    old = await store.raise_epoch()
    consensus = store.consensus(old)
    await store.stash().ensure([ITEM])
    outcome = await consensus.compare_and_set_all(
        [CompareAndSet(A, None, b"a")],
        claimed=ClaimedWrite(Timeline.CATALOG, ts(1)),
        stash=append(0, [row(1, "k")], at=1),
        raises_epoch=True,
    )
    assert outcome == AllSet()
    assert await store.current_epoch() == old + 1
    for late in (
        consensus.compare_and_set_all([CompareAndSet(A, 1, b"x")]),
        consensus.compare_and_set_each([CompareAndSet(A, 1, b"x")]),
        consensus.compare_and_set_all([], stash=append(2, [row(2, "x")])),
        consensus.compare_and_set_all([], raises_epoch=True),
        store.oracle_rows(old).read(Timeline.CATALOG),
    ):
        with pytest.raises(Fenced) as fenced:
            await late
        assert fenced.value.current_epoch == old + 1
    new = Epoch(old + 1)
    assert await store.consensus(new).head(A) == Head(1, b"a")
    assert (await store.stash().read()).rows == [row(1, "k")]
    assert (await store.oracle_rows(new).read(Timeline.CATALOG)).read_ts == 1
    set_again = await store.consensus(new).compare_and_set_all([CompareAndSet(A, 1, b"new")])
    assert set_again == AllSet()


async def test_a_change_that_is_not_done_fences_nobody(store: Store) -> None:
    epoch = await store.raise_epoch()
    consensus = store.consensus(epoch)
    await consensus.compare_and_set_all([CompareAndSet(A, None, b"a")])
    outcome = await consensus.compare_and_set_all([CompareAndSet(A, 7, b"x")], raises_epoch=True)
    assert outcome == SetMismatch((A,))
    assert await store.current_epoch() == epoch
    assert await consensus.compare_and_set_all([CompareAndSet(A, 1, b"b")]) == AllSet()


async def test_the_first_generation_opens_so(store: Store) -> None:
    assert await store.consensus(Epoch(0)).compare_and_set_all([], raises_epoch=True) == AllSet()
    assert await store.current_epoch() == 1
    assert await store.raise_epoch() == 2


async def test_of_racing_openers_one_wins_and_the_others_learn_it(store: Store) -> None:
    """Whether they race by a change or by raise_epoch, no two get the same epoch."""
    await store.stash().ensure([ITEM])

    async def opens(name: str) -> Epoch:
        while True:
            seen = await store.current_epoch()
            upper = await store.stash().upper()
            try:
                outcome = await store.consensus(seen).compare_and_set_all(
                    [], stash=append(upper, [row(upper, name)]), raises_epoch=True
                )
            except Fenced:
                continue
            if outcome == AllSet():
                return Epoch(seen + 1)

    raced = await asyncio.gather(
        *(opens(f"o{i}") for i in range(5)), *(store.raise_epoch() for _ in range(3))
    )
    assert sorted(raced) == list(range(1, 9))
    assert await store.current_epoch() == 8
    names = [found.key for found in (await store.stash().read()).rows]
    assert sorted(names) == [f"o{i}" for i in range(5)]


async def test_a_raised_epoch_fences_what_is_asked_beside_it(store: Store) -> None:
    """In one breath: what the store takes up after the raise is refused, before it is done."""
    epoch = await store.raise_epoch()
    consensus = store.consensus(epoch)
    outcomes = await asyncio.gather(
        consensus.compare_and_set_all([CompareAndSet(A, None, b"a")], raises_epoch=True),
        *(
            consensus.compare_and_set_all([CompareAndSet(ShardId(f"s{i}"), None, b"")])
            for i in range(10)
        ),
        return_exceptions=True,
    )
    assert outcomes[0] == AllSet()
    done = [f"s{i}" for i, outcome in enumerate(outcomes[1:]) if outcome == AllSet()]
    assert all(outcome == AllSet() or isinstance(outcome, Fenced) for outcome in outcomes)
    assert await consensus.shard_ids() == sorted(["a", *done])


async def test_a_note_changes_together_with_the_epoch(store: Store) -> None:
    old = await store.raise_epoch()
    await store.set_note(old, "name", "before")
    await store.set_note(old, "name", "after", raises_epoch=True)
    assert await store.current_epoch() == old + 1
    assert await store.find_note("name") == "after"
    with pytest.raises(Fenced):
        await store.set_note(old, "name", "late", raises_epoch=True)
    with pytest.raises(Fenced):
        await store.consensus(old).compare_and_set_all([CompareAndSet(A, None, b"late")])
    assert await store.current_epoch() == old + 1
    assert await store.find_note("name") == "after"


async def test_of_two_who_change_a_note_with_the_epoch_one_does(store: Store) -> None:
    old = await store.raise_epoch()
    outcomes = await asyncio.gather(
        *(store.set_note(old, "name", text, raises_epoch=True) for text in "ab"),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Fenced", "NoneType"]
    winner = "ab"[outcomes.index(None)]
    assert await store.find_note("name") == winner
    assert await store.current_epoch() == old + 1
