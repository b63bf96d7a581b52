"""Every way a shard's state may change, and every way it refuses to."""

from typing import Any

from evertide.persist.state import (
    Batch,
    BatchesGone,
    Changed,
    Forgotten,
    HoldBelowSince,
    InlinePart,
    PendingWrite,
    ShardState,
    UpperMismatch,
    WriterMismatch,
    advance_since,
    allowed_since,
    append,
    compact,
    drop_expired,
    forget,
    initial_state,
    release_hold,
    restore,
    set_hold,
    set_writer,
)
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp

OLD, NEW = GlobalId("u1"), GlobalId("u2")
PART = InlinePart(b"p", 1)


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def made(changed: Changed) -> ShardState:
    assert isinstance(changed, ShardState), changed
    return changed


def appended(state: ShardState, lower: int, upper: int, **options: Any) -> Changed:
    writer = options.pop("writer", state.writer)
    return append(state, lower=ts(lower), upper=ts(upper), writer=writer, **options)


def test_an_append_moves_the_upper_and_keeps_its_batch() -> None:
    state = made(appended(initial_state(since=ts(5)), 5, 8, parts=(PART,)))
    assert (state.since, state.upper) == (5, 8)
    assert state.batches == (Batch(ts(5), ts(8), ts(0), (PART,)),)


def test_an_append_without_updates_leaves_no_batch() -> None:
    state = made(appended(initial_state(), 0, 8))
    assert (state.upper, state.batches) == (8, ())


def test_an_append_at_another_upper_is_refused() -> None:
    state = made(appended(initial_state(), 0, 8))
    assert appended(state, 7, 9) == UpperMismatch(ts(8))
    assert appended(state, 9, 10) == UpperMismatch(ts(8))


def test_a_stranger_learns_that_the_shard_is_not_its_own_before_anything_else() -> None:
    state = initial_state(writer=OLD)
    assert appended(state, 3, 4, writer=NEW) == WriterMismatch(OLD)
    assert appended(state, 0, 4, writer=None) == WriterMismatch(OLD)


def test_cut_over_freezes_the_upper_until_the_completing_append() -> None:
    state = made(appended(initial_state(writer=OLD), 0, 8))
    assert set_writer(state, writer=NEW, expected_upper=ts(7), pending=True) == UpperMismatch(ts(8))
    state = made(set_writer(state, writer=NEW, expected_upper=ts(8), pending=True))
    assert appended(state, 8, 9, writer=OLD) == WriterMismatch(NEW)
    assert appended(state, 8, 9) == PendingWrite(ts(8))
    state = made(appended(state, 8, 9, completes_pending=True))
    assert (state.upper, state.pending) == (9, None)
    assert made(appended(state, 9, 10)).upper == 10


def test_a_hold_keeps_since_back_until_released() -> None:
    state = made(appended(initial_state(since_lag=10), 0, 100))
    state = made(set_hold(state, owner="view", hold_ts=ts(30)))
    assert allowed_since(state, now_ms=0) == 30
    state = made(set_hold(state, owner="view", hold_ts=ts(50)))
    assert advance_since(state, to=ts(89)).since == 50
    state = release_hold(release_hold(state, owner="view"), owner="view")
    assert allowed_since(state, now_ms=0) == 89
    state = advance_since(state, to=ts(89))
    assert state.since == 89
    assert set_hold(state, owner="view", hold_ts=ts(88)) == HoldBelowSince(ts(89))


def test_a_lease_ends_by_itself() -> None:
    state = made(appended(initial_state(since_lag=0), 0, 100))
    state = made(set_hold(state, owner="lease", hold_ts=ts(30), expires_ms=1_000))
    assert allowed_since(state, now_ms=999) == 30
    assert allowed_since(state, now_ms=1_000) == 99
    assert drop_expired(state, now_ms=999) is state
    assert drop_expired(state, now_ms=1_000).holds == ()


def test_since_trails_the_upper_and_never_goes_back() -> None:
    state = made(appended(initial_state(since=ts(50), since_lag=60), 50, 100))
    assert allowed_since(state, now_ms=0) == 50
    assert advance_since(state, to=ts(500)).since == 99
    assert advance_since(state, to=ts(1)).since == 50


def test_a_sealed_shard_keeps_its_since() -> None:
    state = made(appended(initial_state(since=ts(50)), 50, EMPTY_FRONTIER))
    assert allowed_since(state, now_ms=0) == 50


def test_compaction_replaces_a_run_of_batches_or_nothing() -> None:
    state = initial_state()
    for lower in range(4):
        state = made(appended(state, lower, lower + 1, parts=(InlinePart(bytes([lower]), 1),)))
    first, second, third, fourth = state.batches
    merged = Batch(ts(1), ts(3), ts(0), (PART,))
    done = made(compact(state, replaced=(second, third), replacement=(merged,)))
    assert done.batches == (first, merged, fourth)
    gone = made(compact(state, replaced=(second, third), replacement=()))
    assert gone.batches == (first, fourth)
    assert compact(done, replaced=(second, third), replacement=()) == BatchesGone()
    assert compact(state, replaced=(first, third), replacement=()) == BatchesGone()


def test_a_forgotten_table_takes_no_appends_until_restored() -> None:
    state = forget(made(appended(initial_state(), 0, 8, parts=(PART,))))
    assert appended(state, 8, 9) == Forgotten()
    assert set_writer(state, writer=NEW, expected_upper=ts(8), pending=False) == Forgotten()
    back = restore(state)
    assert back.batches == state.batches
    assert made(appended(back, 8, 9)).upper == 9
