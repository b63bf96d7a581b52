"""Goal: what was dropped can be had back for a while, and then its parts are gone for good."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from evertide.persist.faults import BelowSince, DamagedState
from evertide.persist.handle import PersistClient, Refused
from evertide.persist.machine import Applied, Machine
from evertide.persist.purge import DROP_GRACE_MS, is_purged, note_forgotten, purge
from evertide.persist.state import (
    Changed,
    Forgotten,
    HoldBelowSince,
    InlinePart,
    NotPurgeable,
    Purged,
    ShardChange,
    ShardState,
    allowed_since,
    append,
    decode_state,
    encode_state,
    existing,
    forget,
    initial_state,
    release_hold,
    restore,
    set_hold,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import ChangeOutcome, CompareAndSet, Head
from evertide.persist.txn import TableForgotten, TableWrite, Txns, forget_table, register_table
from evertide.persist.upkeep.sweep import Sweeper, SweepTimes
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC
from tests.support.owned import OURS
from tests.support.refusing import RefusingConsensus

TABLE, VIEW = ShardId("table"), ShardId("view")
DAY_MS = DROP_GRACE_MS


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def made(changed: Changed) -> ShardState:
    assert isinstance(changed, ShardState), changed
    return changed


def dropped_state() -> ShardState:
    part = InlinePart(b"p", 1)
    state = append(initial_state(), lower=ts(0), upper=ts(8), writer=None, parts=(part,))
    return note_forgotten(forget(made(state)), now_ms=100)


def test_a_purge_waits_for_its_time() -> None:
    state = dropped_state()
    assert purge(state, now_ms=100 + DAY_MS - 1) == NotPurgeable()
    assert is_purged(made(purge(state, now_ms=100 + DAY_MS)))
    assert purge(state, now_ms=105, grace_ms=6) == NotPurgeable()
    assert is_purged(made(purge(state, now_ms=106, grace_ms=6)))


def test_only_what_was_dropped_is_purged() -> None:
    state = dropped_state()
    back = made(restore(state))
    assert back.forgotten_at_ms is None
    assert purge(back, now_ms=2**60) == NotPurgeable()
    assert note_forgotten(back, now_ms=7) is back
    again = note_forgotten(forget(back), now_ms=500)
    assert again.forgotten_at_ms == 500, "the time runs anew"
    assert note_forgotten(again, now_ms=900) is again
    assert purge(forget(initial_state()), now_ms=2**60) == NotPurgeable(), "nobody took the time"


def test_what_somebody_holds_is_not_purged() -> None:
    late = 100 + 2 * DAY_MS
    held = made(set_hold(dropped_state(), owner="view", hold_ts=ts(3)))
    leased = made(set_hold(dropped_state(), owner="l", hold_ts=ts(3), expires_ms=late + 1))
    assert purge(held, now_ms=late) == purge(leased, now_ms=late) == NotPurgeable()
    assert is_purged(made(purge(release_hold(held, owner="view"), now_ms=late)))
    assert is_purged(made(purge(leased, now_ms=late + 1)))


def test_a_purged_shard_is_empty_and_refuses_everything() -> None:
    state = made(purge(dropped_state(), now_ms=2**50))
    assert (state.since, state.upper, state.batches) == (EMPTY_FRONTIER, EMPTY_FRONTIER, ())
    assert restore(state) == Purged()
    assert append(state, lower=ts(8), upper=ts(9), writer=None) == Forgotten()
    assert set_hold(state, owner="h", hold_ts=ts(8)) == HoldBelowSince(EMPTY_FRONTIER)
    assert allowed_since(state, 0) == EMPTY_FRONTIER
    assert decode_state(encode_state(state)) == state
    assert purge(state, now_ms=2**50) == state


class Place:
    """A table and a view with parts, both dropped, and what is to happen to them."""

    def __init__(self) -> None:
        self.store, self.blob = MemoryStore(), MemoryBlob()
        self.clock = ManualClock(time.time_ns() // 1_000_000)

    async def open(self) -> "Place":
        self.consensus = self.store.consensus(await self.store.raise_epoch())
        self.client = PersistClient(self.consensus, self.blob, clock=self.clock, owner=OURS)
        self.txns = Txns(self.client, ShardId("txns"))
        await self.txns.ensure()
        await self.client.append_all([], also=[register_table(TABLE)])
        rows = [((f"row {i}", i), 1) for i in range(10_000)]
        await self.txns.commit({TABLE: TableWrite(DESC, rows)}, at=ts(5))
        await self.client.create_shard(VIEW, writer=GlobalId("u1"))
        updates = [Update(row, ts(0), 1) for row, _ in rows]
        await self.client.compare_and_append(
            VIEW, DESC, updates, ts(0), ts(1), writer=GlobalId("u1")
        )
        forgotten = [ShardChange(VIEW, existing(forget)), forget_table(TABLE)]
        await self.client.append_all([], also=forgotten)
        self.sweeper = Sweeper(self.client, self.consensus, self.clock, SweepTimes())
        return self


async def test_parts_of_dropped_tables_and_views_are_gone_in_the_end() -> None:
    place = await Place().open()
    assert len(await place.blob.keys()) == 2
    assert (await place.sweeper.sweep_once()).purged == []
    place.clock.advance(DAY_MS - 1)
    assert (await place.sweeper.sweep_once()).purged == []
    assert len(await place.txns.table_snapshot(TABLE, DESC, ts(5))) == 10_000, "readable until then"
    place.clock.advance(1)
    assert (await place.sweeper.sweep_once()).purged == [TABLE, VIEW]
    for _ in range(3):
        assert (await place.sweeper.sweep_once()).deleted == [], "somebody may still be reading"
        place.clock.advance(200_000)
    assert len((await place.sweeper.sweep_once()).deleted) == 2
    assert await place.blob.keys() == []
    with pytest.raises(BelowSince):
        await place.client.snapshot(VIEW, DESC, ts(0))
    with pytest.raises(BelowSince):
        await place.txns.table_snapshot(TABLE, DESC, ts(5))
    write = {TABLE: TableWrite(DESC, [(("x", 1), 1)])}
    assert await place.txns.commit(write, at=ts(9)) == TableForgotten(TABLE)
    refused = await place.client.append_all([], also=[register_table(TABLE)])
    assert refused == Refused(TABLE, Purged())
    assert (await place.sweeper.sweep_once()).purged == []


class RecordingConsensus(RefusingConsensus):
    """Keeps the last changes that it was asked for."""

    sets: Sequence[CompareAndSet] = ()

    async def compare_and_set_all(
        self,
        sets: Sequence[CompareAndSet],
        **riders: Any,
    ) -> ChangeOutcome:
        self.sets = sets
        return await super().compare_and_set_all(sets, **riders)


async def test_a_damaged_shard_is_ended_without_contents() -> None:
    place = await Place().open()
    await place.client.append_all([], also=[register_table(TABLE)])
    head = await place.consensus.head(TABLE)
    assert isinstance(head, Head)
    await place.consensus.compare_and_set_all([CompareAndSet(TABLE, head.seqno, b"damaged")])
    consensus = RecordingConsensus(place.consensus)
    machine = Machine(consensus, lambda _: None)
    other = ShardChange(ShardId("other"), lambda _: initial_state())
    ended = ShardChange(TABLE, existing(forget))
    with pytest.raises(DamagedState):
        await machine.apply_all([other, ended])
    assert consensus.changes == 0
    assert isinstance(await machine.apply_all([other, ended._replace(ends=True)]), Applied)
    assert [one.news for one in consensus.sets if one.shard_id == TABLE] == [None], (
        "who knows it as it was would put its batches back"
    )
    state = await place.client.state(TABLE)
    assert state.forgotten
    assert is_purged(state)
    place.clock.advance(DAY_MS)
    await place.sweeper.sweep_once()
    place.clock.advance(600_000)
    assert [key.partition("/")[0] for key in (await place.sweeper.sweep_once()).deleted] == [TABLE]


async def test_a_restored_table_is_not_purged() -> None:
    place = await Place().open()
    await place.sweeper.sweep_once()
    place.clock.advance(DAY_MS)
    await place.client.append_all([], also=[register_table(TABLE)])
    assert (await place.sweeper.sweep_once()).purged == [VIEW]
    assert len(await place.txns.table_snapshot(TABLE, DESC, ts(5))) == 10_000


async def test_a_restart_does_not_begin_the_time_anew() -> None:
    place = await Place().open()
    await place.sweeper.sweep_once()
    place.clock.advance(DAY_MS)
    fresh = Sweeper(place.client, place.consensus, place.clock)
    assert (await fresh.sweep_once()).purged == [TABLE, VIEW]


async def test_a_view_that_still_holds_a_dropped_input_keeps_it() -> None:
    place = await Place().open()
    hold = partial(set_hold, owner="u2", hold_ts=ts(5))
    await place.client.machine.apply_all([ShardChange(TABLE, existing(hold))])
    await place.sweeper.sweep_once()
    place.clock.advance(2 * DAY_MS)
    assert (await place.sweeper.sweep_once()).purged == [VIEW]
    release = partial(release_hold, owner="u2")
    await place.client.machine.apply_all([ShardChange(TABLE, existing(release))])
    assert (await place.sweeper.sweep_once()).purged == [TABLE]
