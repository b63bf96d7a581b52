"""What every store promises about shard states."""

import asyncio

import pytest

from evertide.persist.faults import Fenced
from evertide.persist.store.protocol import (
    AllSet,
    AppliedWrite,
    ClaimedWrite,
    ClaimLost,
    CompareAndSet,
    Head,
    OracleRow,
    SetMismatch,
    Store,
    Unchanged,
)
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timeline, Timestamp

A, B, C = ShardId("a"), ShardId("b"), ShardId("c")
DATA = Timeline.EPOCH_MS


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
    assert await consensus.heads({A: 1, B: 1}) == {A: Head(2, b"2"), B: None}
    assert await consensus.heads({A: None, B: None}) == {A: Head(2, b"2"), B: None}
    assert await consensus.heads({}) == {}


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
    for change in (CompareAndSet(A, 1, b"x"), CompareAndSet(B, None, b"x")):
        for alone in (consensus.compare_and_set_each, consensus.compare_and_set_all):
            with pytest.raises(Fenced):
                await alone([change])
    with pytest.raises(Fenced):
        await consensus.compare_and_set_each([])
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


async def test_a_claim_is_won_beyond_everything_handed_out(store: Store) -> None:
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)
    await rows.allocate(DATA, Timestamp(5))
    outcome = await consensus.compare_and_set_all(
        [CompareAndSet(A, None, b"a")], claimed=ClaimedWrite(DATA, Timestamp(6))
    )
    assert outcome == AllSet()
    assert await rows.read(DATA) == OracleRow(Timestamp(6), Timestamp(6))
    assert await rows.allocate(DATA, Timestamp(0)) == 7


@pytest.mark.parametrize("claim", [3, 5])
async def test_a_lost_claim_changes_nothing_and_names_the_last(store: Store, claim: int) -> None:
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)
    await consensus.compare_and_set_all([CompareAndSet(B, None, b"b")])
    assert await rows.allocate(DATA, Timestamp(5)) == 5
    outcome = await consensus.compare_and_set_all(
        [CompareAndSet(A, None, b"a"), CompareAndSet(B, 1, b"x")],
        applied=[AppliedWrite(Timeline.CATALOG, Timestamp(9))],
        claimed=ClaimedWrite(DATA, Timestamp(claim)),
    )
    assert outcome == ClaimLost(Timestamp(5))
    assert await consensus.heads({A: None, B: None}) == {A: None, B: Head(1, b"b")}
    assert await rows.read(DATA) == OracleRow(Timestamp(0), Timestamp(5))
    assert (await rows.read(Timeline.CATALOG)).read_ts == 0


async def test_a_shard_in_the_way_is_reported_before_a_claim(store: Store) -> None:
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)
    await consensus.compare_and_set_all([CompareAndSet(A, None, b"a")])
    await rows.allocate(DATA, Timestamp(5))
    for claim in (Timestamp(5), Timestamp(6)):
        outcome = await consensus.compare_and_set_all(
            [CompareAndSet(A, 7, b"x"), CompareAndSet(B, None, b"b")],
            claimed=ClaimedWrite(DATA, claim),
        )
        assert outcome == SetMismatch((A,))
    assert (await rows.read(DATA)).write_ts == 5


async def test_a_claim_and_an_applied_write_of_another_timeline(store: Store) -> None:
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)
    for number in (1, 2):
        outcome = await consensus.compare_and_set_all(
            [],
            applied=[AppliedWrite(Timeline.CATALOG, Timestamp(number))],
            claimed=ClaimedWrite(DATA, Timestamp(number)),
        )
        assert outcome == AllSet()
    assert (await rows.read(Timeline.CATALOG)).read_ts == 2
    assert (await rows.read(DATA)).read_ts == 2


async def test_of_racing_claims_each_timestamp_is_won_once(store: Store) -> None:
    consensus = store.consensus(await store.raise_epoch())

    async def claim(name: str) -> list[Timestamp]:
        won, write_ts, seqno = list[Timestamp](), Timestamp(1), None
        while len(won) < 5:
            outcome = await consensus.compare_and_set_all(
                [CompareAndSet(ShardId(name), seqno, b"")], claimed=ClaimedWrite(DATA, write_ts)
            )
            match outcome:
                case AllSet():
                    won.append(write_ts)
                    seqno = len(won)
                case ClaimLost(last):
                    assert last >= write_ts
                    write_ts = Timestamp(last + 1)
                case SetMismatch():
                    raise AssertionError("nobody else sets this shard")
        return won

    won = await asyncio.gather(*map(claim, "abcdefgh"))
    assert all(timestamps == sorted(timestamps) for timestamps in won)
    assert len({write_ts for timestamps in won for write_ts in timestamps}) == 40


async def test_an_old_epoch_wins_no_claim(store: Store) -> None:
    old = store.consensus(await store.raise_epoch())
    new = await store.raise_epoch()
    with pytest.raises(Fenced):
        await old.compare_and_set_all([], claimed=ClaimedWrite(DATA, Timestamp(5)))
    assert (await store.oracle_rows(new).read(DATA)).write_ts == 0


async def test_racing_epochs_are_all_different(store: Store) -> None:
    raised = await asyncio.gather(*(store.raise_epoch() for _ in range(8)))
    assert sorted(raised) == list(range(1, 9))
    assert await store.current_epoch() == 8


async def test_nothing_of_an_old_epoch_commits_after_the_next_was_raised(store: Store) -> None:
    """Writers race with the takeover; what they wrote when it returned is all there ever is."""
    old = await store.raise_epoch()
    consensus = store.consensus(old)

    async def write(name: str) -> None:
        seqno = None
        while True:
            change = CompareAndSet(ShardId(name), seqno, b"x")
            assert await consensus.compare_and_set_all([change]) == AllSet()
            seqno = change.next_seqno
            await asyncio.sleep(0)

    writers = [asyncio.create_task(write(name)) for name in "abcdef"]
    await asyncio.sleep(0.02)
    reader = store.consensus(await store.raise_epoch())
    known = await reader.heads({ShardId(name): None for name in "abcdef"})
    outcomes = await asyncio.gather(*writers, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Fenced] * 6
    assert await reader.heads({ShardId(name): None for name in "abcdef"}) == known


async def test_large_and_empty_values_come_back(store: Store) -> None:
    consensus = store.consensus(await store.raise_epoch())
    values = {ShardId(f"s{size}"): bytes(range(256)) * size for size in (0, 1, 31, 40, 5_000)}
    sets = [CompareAndSet(shard_id, None, value) for shard_id, value in values.items()]
    assert await consensus.compare_and_set_all(sets) == AllSet()
    heads = await consensus.heads(dict.fromkeys(values))
    assert heads == {shard_id: Head(1, value) for shard_id, value in values.items()}


async def test_ids_are_kept_and_ordered_as_they_are(store: Store) -> None:
    consensus = store.consensus(await store.raise_epoch())
    names = ["Z", "a", "B", "u1-é", "quote'\"\\", "{a,b}", "NULL", "", "_", "ß", "zz", "z z"]
    shards = [ShardId(name) for name in names]
    await consensus.compare_and_set_all([CompareAndSet(shard, None, b"") for shard in shards])
    assert await consensus.shard_ids() == sorted(shards)
    outcome = await consensus.compare_and_set_each([CompareAndSet(s, 9, b"x") for s in shards])
    assert outcome == SetMismatch(tuple(shards))


async def test_racing_creations_each_for_itself(store: Store) -> None:
    """Each shard has one creator, and each creator knows which shards it made."""
    consensus = store.consensus(await store.raise_epoch())
    shards = [ShardId(name) for name in "abcdefgh"]

    async def create(number: int) -> list[ShardId]:
        order = shards[number:] + shards[:number]
        value = bytes([number])
        outcome = await consensus.compare_and_set_each(
            [CompareAndSet(s, None, value) for s in order]
        )
        lost = outcome.shard_ids if isinstance(outcome, SetMismatch) else ()
        assert list(lost) == [s for s in order if s in lost]
        return [s for s in shards if s not in lost]

    made = await asyncio.gather(*map(create, range(8)))
    assert sorted(s for one in made for s in one) == shards
    heads = await consensus.heads(dict.fromkeys(shards))
    for number, one in enumerate(made):
        assert [heads[s] for s in one] == [Head(1, bytes([number]))] * len(one)


@pytest.mark.parametrize("each", [False, True])
async def test_setting_a_shard_twice_in_one_call_is_refused(store: Store, each: bool) -> None:
    consensus = store.consensus(await store.raise_epoch())
    twice = [CompareAndSet(A, None, b"1"), CompareAndSet(A, None, b"2")]
    call = consensus.compare_and_set_each if each else consensus.compare_and_set_all
    with pytest.raises(AssertionError):
        await call(twice)
    assert await consensus.head(A) is None


async def test_a_cancelled_caller_disturbs_nobody(store: Store) -> None:
    """Answers go to those who asked, however many of the others give up in the middle."""
    epoch = await store.raise_epoch()
    consensus, rows = store.consensus(epoch), store.oracle_rows(epoch)
    shards = [ShardId(f"s{i}") for i in range(30)]
    await consensus.compare_and_set_all([CompareAndSet(s, None, s.encode()) for s in shards])
    for steps in range(12):
        asking: list[asyncio.Task] = [asyncio.create_task(consensus.head(s)) for s in shards]
        asking.append(asyncio.create_task(rows.allocate(DATA, Timestamp(0))))
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in asking[::2]:
            task.cancel()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        for shard_id, answer in zip(shards[1::2], answers[1::2], strict=False):
            assert answer == Head(1, shard_id.encode())
    assert await consensus.head(A) is None


async def test_a_note_is_kept_as_first_written(store: Store) -> None:
    epoch = await store.raise_epoch()
    assert await store.note("name", "first ' text") == "first ' text"
    assert await store.note("name", "second") == "first ' text"
    assert await store.note("other", "") == ""
    await store.set_note(epoch, "name", "third é")
    await store.set_note(epoch, "fresh", "one")
    assert await store.note("name", "x") == "third é"
    assert await store.note("fresh", "x") == "one"


async def test_of_racing_notes_one_is_kept(store: Store) -> None:
    kept = await asyncio.gather(*(store.note("name", str(i)) for i in range(10)))
    assert len(set(kept)) == 1
    assert await store.note("name", "x") == kept[0]


async def test_an_old_epoch_sets_no_note(store: Store) -> None:
    old = await store.raise_epoch()
    await store.note("name", "kept")
    await store.raise_epoch()
    with pytest.raises(Fenced):
        await store.set_note(old, "name", "x")
    assert await store.note("name", "x") == "kept"
