"""What every way into a store promises whose answers may get lost."""

import asyncio
import random
from dataclasses import replace

import pytest

from evertide.persist.faults import Fenced
from evertide.persist.store.attempts import Attempt, Attempts, Change, NotReached, OutcomeUnknown
from evertide.persist.store.protocol import (
    AllSet,
    AppliedWrite,
    ClaimedWrite,
    ClaimLost,
    CompareAndSet,
    Head,
    SetMismatch,
    StashMismatch,
)
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.conformance.conftest import OpenedPort
from tests.conformance.stash_rows import ITEM, NOTHING, append, row
from tests.support.memory_port import CutPort

A, B = ShardId("a"), ShardId("b")
DATA = Timeline.EPOCH_MS


def make_a(epoch: Epoch, value: bytes = b"a") -> Change:
    return Change(epoch, [CompareAndSet(A, None, value)])


async def refused(opened: OpenedPort, attempt: Attempt, change: Change) -> None:
    """It is not done, and whoever sent it does not take it for done."""
    with pytest.raises((NotReached, OutcomeUnknown)):
        await opened.port.change(attempt, change)


async def test_what_was_done_is_known_afterwards(opened_port: OpenedPort) -> None:
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    attempt = Attempt("w", 1)
    assert await port.change(attempt, make_a(epoch)) == AllSet()
    assert await port.settle(attempt) == AllSet()
    assert await port.settle(attempt) == AllSet()


async def test_what_was_done_in_part_is_known_afterwards(opened_port: OpenedPort) -> None:
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    await port.change(Attempt("w", 1), make_a(epoch))
    sets = [CompareAndSet(B, None, b"b"), CompareAndSet(A, 9, b"x")]
    attempt = Attempt("w", 2)
    assert await port.change(attempt, Change(epoch, sets, each=True)) == SetMismatch((A,))
    assert await port.settle(attempt) == SetMismatch((A,))
    assert await port.shard_ids() == [A, B]


async def test_after_settling_it_arrives_too_late(opened_port: OpenedPort) -> None:
    """Not the shards, not an applied write, not a claim; and asking again says the same."""
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    attempt = Attempt("w", 1)
    assert await port.settle(attempt) is None
    late = replace(
        make_a(epoch),
        applied=[AppliedWrite(Timeline.CATALOG, Timestamp(7))],
        claimed=ClaimedWrite(DATA, Timestamp(7)),
    )
    await refused(opened_port, attempt, late)
    await refused(opened_port, attempt, replace(make_a(epoch), each=True))
    assert await port.settle(attempt) is None
    assert await port.shard_ids() == []
    for timeline in Timeline:
        assert (await port.read_timeline(epoch, timeline)).write_ts == 0


async def test_a_stash_and_a_raised_epoch_are_known_afterwards(opened_port: OpenedPort) -> None:
    """Also once the next generation has been opened by another."""
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    await opened_port.store.stash().ensure([ITEM])
    attempt = Attempt("w", 1)
    change = replace(make_a(epoch), stash=append(0, [row(0, "k")]), raises_epoch=True)
    assert await port.change(attempt, change) == AllSet()
    assert await port.settle(attempt) == AllSet()
    await opened_port.store.raise_epoch()
    assert await port.settle(attempt) == AllSet()
    assert (await opened_port.store.stash().read()).rows == [row(0, "k")]


async def test_after_settling_neither_stash_nor_epoch_changes(opened_port: OpenedPort) -> None:
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    await opened_port.store.stash().ensure([ITEM])
    attempt = Attempt("w", 1)
    assert await port.settle(attempt) is None
    for raises_epoch in (False, True):
        stash = append(0, [row(0, "k")])
        late = replace(make_a(epoch), stash=stash, raises_epoch=raises_epoch)
        await refused(opened_port, attempt, late)
    assert await opened_port.store.stash().read() == NOTHING
    assert await opened_port.store.current_epoch() == epoch
    assert await port.shard_ids() == []


async def test_a_barred_writer_goes_on_with_its_next_number(opened_port: OpenedPort) -> None:
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    assert await port.settle(Attempt("w", 1)) is None
    assert await port.change(Attempt("w", 2), make_a(epoch)) == AllSet()
    assert await port.settle(Attempt("w", 2)) == AllSet()


async def test_an_older_number_changes_nothing(opened_port: OpenedPort) -> None:
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    await port.change(Attempt("w", 2), make_a(epoch))
    second = Change(epoch, [CompareAndSet(A, 1, b"again")])
    await refused(opened_port, Attempt("w", 1), second)
    await refused(opened_port, Attempt("w", 2), second)
    assert await port.head(A, None) == Head(1, b"a")


async def test_writers_do_not_bar_each_other(opened_port: OpenedPort) -> None:
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    assert await port.settle(Attempt("other", 5)) is None
    assert await port.change(Attempt("w", 1), make_a(epoch)) == AllSet()


async def test_what_changed_nothing_may_be_tried_again(opened_port: OpenedPort) -> None:
    """A mismatch, of shards or stash, and a lost claim leave no trace: the same writer goes on."""
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    await port.allocate(epoch, DATA, Timestamp(5), 1)
    mismatch = Change(epoch, [CompareAndSet(A, 3, b"x")])
    assert await port.change(Attempt("w", 1), mismatch) == SetMismatch((A,))
    each = replace(mismatch, each=True)
    assert await port.change(Attempt("w", 2), each) == SetMismatch((A,))
    lost = replace(make_a(epoch), claimed=ClaimedWrite(DATA, Timestamp(5)))
    assert await port.change(Attempt("w", 3), lost) == ClaimLost(Timestamp(5))
    behind = replace(make_a(epoch), stash=append(7, []), raises_epoch=True)
    assert await port.change(Attempt("w", 4), behind) == StashMismatch(Timestamp(0))
    for number in (4, 5):
        assert await port.settle(Attempt("w", number)) is None
    assert await port.change(Attempt("w", 6), make_a(epoch)) == AllSet()


async def test_an_old_epoch_is_fenced_whatever_its_number(opened_port: OpenedPort) -> None:
    old, port = await opened_port.store.raise_epoch(), opened_port.port
    await port.change(Attempt("w", 1), make_a(old))
    await opened_port.store.raise_epoch()
    with pytest.raises(Fenced):
        await port.change(Attempt("w", 2), Change(old, [CompareAndSet(A, 1, b"x")]))
    assert await port.settle(Attempt("w", 2)) is None
    assert await port.head(A, None) == Head(1, b"a")


async def test_settling_races_with_the_change_and_both_agree(opened_port: OpenedPort) -> None:
    epoch, port = await opened_port.store.raise_epoch(), opened_port.port
    for number in range(1, 40):
        shard_id, attempt = ShardId(f"s{number}"), Attempt(f"w{number}", 1)
        change = Change(epoch, [CompareAndSet(shard_id, None, b"")])
        changing = asyncio.create_task(port.change(attempt, change))
        for _ in range(number % 8):
            await asyncio.sleep(0)
        settled = await port.settle(attempt)
        done = (await asyncio.gather(changing, return_exceptions=True))[0]
        there = await port.head(shard_id, None) is not None
        assert (settled == AllSet()) == there
        assert (done == AllSet()) == there
        assert await port.settle(attempt) == settled


@pytest.mark.parametrize("seed", range(4))
async def test_attempts_over_a_cut_port_do_everything_once(
    opened_port: OpenedPort, seed: int
) -> None:
    """Changes lost, doubled by nobody, and late ones: seqnos count exactly what was told done."""
    epoch, rng = await opened_port.store.raise_epoch(), random.Random(seed)
    port = CutPort(opened_port.port, rng)
    consensus = Attempts(port, epoch)

    async def count(shard_id: ShardId) -> int:
        seqno = None
        for _ in range(12):
            change = CompareAndSet(shard_id, seqno, str(seqno).encode())
            outcome = await consensus.compare_and_set_all([change])
            assert outcome == AllSet(), "nobody else sets this shard"
            seqno = change.next_seqno
        return seqno or 0

    shards = [ShardId(name) for name in "abc"]
    assert await asyncio.gather(*map(count, shards)) == [12] * 3
    await port.all_arrived()
    for shard_id in shards:
        assert await consensus.head(shard_id) == Head(12, b"11")
