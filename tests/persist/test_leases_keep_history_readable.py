"""Goal: what a reader holds stays readable, at the price of few store writes, and no longer than
somebody wants it or its process lives.
"""

import asyncio
import random

import pytest

from evertide.persist.faults import BelowSince, ShardMissing
from evertide.persist.leases import LEASE_MS, Leases, ReadHold
from evertide.persist.machine import Machine
from evertide.persist.state import (
    Changed,
    InlinePart,
    ShardChange,
    ShardState,
    advance_since,
    allowed_since,
    append,
    create,
    drop_expired,
    existing,
    initial_state,
)
from evertide.persist.store.memory import MemoryStore
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from tests.support.jitter import JitteryConsensus

A, B = ShardId("a"), ShardId("b")
PART = InlinePart(b"", 1)
LAG = 1_000


class Place:
    """Two shards, a clock, and a writer that moves uppers and sinces along with the clock."""

    def __init__(self, machine: Machine, clock: ManualClock) -> None:
        self.machine = machine
        self.clock = clock
        self.writes = 0

    @staticmethod
    async def make(seed: int | None = None) -> "Place":
        store = MemoryStore()
        consensus = store.consensus(await store.raise_epoch())
        clock = ManualClock(start_ms=1_000_000)
        if seed is not None:
            consensus = JitteryConsensus(consensus, random.Random(seed))  # type: ignore[assignment]
        place = Place(Machine(consensus, lambda _: place.wrote()), clock)
        for shard_id in (A, B):
            await place.machine.apply_all([create(shard_id, initial_state(since_lag=LAG))])
        await place.go_on(0)
        return place

    def wrote(self) -> None:
        self.writes += 1

    async def go_on(self, ms: int) -> None:
        """Let time pass: appends come, and since follows as far as it may."""
        self.clock.advance(ms)
        for shard_id in (A, B):
            await self.machine.apply_all([ShardChange(shard_id, existing(self._move))])

    def _move(self, state: ShardState) -> Changed:
        upper = Timestamp(self.clock.now_ms())
        if upper > state.upper:
            appended = append(state, lower=state.upper, upper=upper, writer=None, parts=(PART,))
            assert isinstance(appended, ShardState)
            state = appended
        now_ms = self.clock.now_ms()
        return advance_since(drop_expired(state, now_ms), to=allowed_since(state, now_ms))

    async def since(self, shard_id: ShardId) -> Timestamp:
        state = (await self.machine.read(shard_id)).state
        assert state is not None
        return state.since

    def now(self) -> Timestamp:
        return Timestamp(self.clock.now_ms())


async def test_what_is_held_stays_readable_until_released() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    as_of = place.now()
    with await leases.hold([A], as_of):
        for _ in range(50):
            await place.go_on(10_000)
            await leases.look_after()
        assert await place.since(A) <= as_of
        assert await place.since(B) > as_of
    await leases.look_after()
    await place.go_on(10_000)
    assert await place.since(A) > as_of + 400_000
    await leases.close()


async def test_later_readers_write_nothing() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    first = await leases.hold([A, B], place.now())
    before = place.writes
    for _ in range(100):
        place.clock.advance(10)
        (await leases.hold([A, B], place.now())).release()
    assert place.writes == before
    first.release()
    await leases.close()


async def test_leases_of_many_shards_are_one_write() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    before = place.writes
    (await leases.hold([A, B, A], place.now())).release()
    assert place.writes == before + 1
    await place.go_on(60_000)
    before = place.writes
    await leases.look_after()
    assert place.writes == before + 1
    await leases.close()


async def test_what_is_gone_is_refused() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    long_ago = place.now()
    await place.go_on(60_000)
    with pytest.raises(BelowSince):
        await leases.hold([A], long_ago)
    with pytest.raises(ShardMissing):
        await leases.hold([ShardId("none")], place.now())
    await leases.look_after()
    await place.go_on(60_000)
    assert await place.since(A) > long_ago + 60_000
    await leases.close()


async def test_a_lease_that_moved_on_is_taken_back_while_history_is_there() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    early = place.now()
    (await leases.hold([A], early)).release()
    place.clock.advance(900)
    later = await leases.hold([A], place.now())
    place.clock.advance(LEASE_MS // 2 + 1)
    await leases.look_after()
    with await leases.hold([A], early):
        await place.go_on(30_000)
        assert await place.since(A) <= early
    later.release()
    await leases.close()


async def test_a_hold_moves_forward_only() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    start = place.now()
    hold = await leases.hold([A], start)
    await place.go_on(50_000)
    hold.move(Timestamp(start + 40_000))
    hold.move(start)
    await leases.look_after()
    await place.go_on(20_000)
    assert start < await place.since(A) <= start + 40_000
    hold.release()
    hold.release()
    await leases.close()


async def test_the_lease_of_a_dead_process_runs_out() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    as_of = place.now()
    await leases.hold([A], as_of)
    await place.go_on(LEASE_MS - 1)
    assert await place.since(A) <= as_of
    await place.go_on(2)
    assert await place.since(A) > as_of
    await leases.close()


async def test_a_late_renewal_remembers_earlier_readers() -> None:
    """A lease about to run out is renewed by whoever reads next, for all who read before."""
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    as_of = place.now()
    hold = await leases.hold([A], as_of)
    await place.go_on(LEASE_MS - 10)
    (await leases.hold([A], place.now())).release()
    await place.go_on(LEASE_MS - 10)
    assert await place.since(A) <= as_of
    hold.release()
    await leases.close()


async def test_a_process_that_ends_gives_its_leases_up() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    await leases.hold([A, B], place.now())
    await leases.close()
    for shard_id in (A, B):
        state = (await place.machine.read(shard_id)).state
        assert state is not None
        assert state.holds == ()


async def test_leases_nobody_uses_are_given_up() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    (await leases.hold([A], place.now())).release()
    place.clock.advance(LEASE_MS // 2 + 1)
    await leases.look_after()
    state = (await place.machine.read(A)).state
    assert state is not None
    assert state.holds == ()
    await leases.close()


async def test_a_reader_that_lost_its_history_costs_others_nothing() -> None:
    """A process was frozen for longer than its lease, with a reader that stays."""
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    lost = await leases.hold([A], place.now())
    await place.go_on(LEASE_MS + 10)
    assert await place.since(A) > lost.hold_ts
    with await leases.hold([A], place.now()) as hold:
        await leases.look_after()
        await place.go_on(10_000)
        assert await place.since(A) <= hold.hold_ts
        with pytest.raises(BelowSince):
            await leases.hold([A, B], lost.hold_ts)
    lost.release()
    await leases.close()


async def test_a_lease_that_others_took_for_expired_is_taken_again() -> None:
    """Their clock may be wrong by more than a lease lasts."""
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    hold = await leases.hold([A], place.now())
    await place.machine.apply_all(
        [ShardChange(A, existing(lambda s: drop_expired(s, place.clock.now_ms() + LEASE_MS)))]
    )
    await leases.look_after()
    await place.go_on(10_000)
    assert await place.since(A) <= hold.hold_ts
    hold.release()
    await leases.close()


async def test_a_lease_asked_for_while_it_is_given_up_is_held() -> None:
    place = await Place.make()
    leases = Leases(place.machine, place.clock)
    (await leases.hold([A], place.now())).release()
    await place.go_on(LEASE_MS // 2 + 1)
    giving_up = asyncio.create_task(leases.look_after())
    await asyncio.sleep(0)  # the release is on its way
    assert not giving_up.done()
    hold = await leases.hold([A], place.now())
    await giving_up
    await place.go_on(10_000)
    assert await place.since(A) <= hold.hold_ts
    hold.release()
    await leases.close()


@pytest.mark.parametrize("seed", range(60))
async def test_readers_racing_with_renewals_lose_nothing(seed: int) -> None:
    """Every hold that was granted is respected from then until it is released."""
    place = await Place.make(seed)
    rng = random.Random(seed)
    leases = Leases(place.machine, place.clock)
    held: set[ReadHold] = set()

    async def read() -> None:
        for _ in range(8):
            shards = rng.sample([A, B], rng.randrange(1, 3))
            as_of = Timestamp(place.now() - rng.choice([0, 500, 900, 5_000]))
            try:
                hold = await leases.hold(shards, as_of)
            except BelowSince:
                continue
            held.add(hold)
            for _ in range(rng.randrange(6)):
                for shard_id in shards:
                    assert await place.since(shard_id) <= hold.hold_ts
                if rng.random() < 0.3:
                    hold.move(Timestamp(hold.hold_ts + rng.randrange(20_000)))
            held.discard(hold)
            hold.release()

    async def maintain() -> None:
        for _ in range(25):
            await place.go_on(rng.choice([0, 100, 8_000, 40_000]))
            await leases.look_after()

    await asyncio.gather(read(), read(), read(), maintain())
    await leases.close()
