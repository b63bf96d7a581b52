"""Bugs in shards themselves: appends, holds, merges, garbage, reads, waiting."""

import asyncio
from dataclasses import replace
from functools import wraps
from typing import Any

import msgspec

from evertide.controller import stillness
from evertide.persist import append as appending
from evertide.persist import leases, machine, prepare, read, txn
from evertide.persist.push import watch
from evertide.persist.state import BlobPart, ShardState, advance_since, append
from evertide.persist.upkeep import compaction, merge, sweep
from evertide.vocab.timestamp import Timestamp
from tests.sim.planting import mutation, mutations_in
from tests.sim.shape import Shape, Tells, on_drops, on_parts, on_views


def _replaced_views(shape: Shape) -> Shape:
    shape = on_views(shape)
    return replace(
        shape,
        pause_s=0.02,
        duration_s=1.5,
        work=replace(shape.work, writers=1, readers=0, replacers=1),
        faults=replace(shape.faults, cut=0.02, refused=0.0),
    )


def _slow_processes(shape: Shape) -> Shape:
    """Parts wait for long before states refer to them, and the sweeper does not."""
    shape = on_parts(shape)
    return replace(
        shape,
        processes=4,
        duration_s=2.0,
        work=replace(shape.work, compactors=4, droppers=0),
        limits=replace(shape.limits, part_bytes=500),
        faults=replace(shape.faults, refused=0.0, cut=0.02, full=0.0),
        troubles=replace(shape.troubles, freeze_s=0.05, takeover_s=None, outage_s=None),
    )


def _slow_stores(shape: Shape) -> Shape:
    """The same for changes on their way, where nobody else changes anything meanwhile."""
    shape = _slow_processes(shape)
    faults = replace(shape.faults, slow=0.05)
    work = replace(
        shape.work, writers=1, counters=0, compactors=0, historians=0, followers=0, replacers=0
    )
    troubles = replace(shape.troubles, freeze_s=None, crash_s=None)
    return replace(
        shape,
        processes=1,
        views=0,
        duration_s=4.0,
        work=work,
        faults=faults,
        troubles=troubles,
    )


def _quick_history(shape: Shape) -> Shape:
    """What is kept in memory is merged meanwhile."""
    return replace(
        shape,
        processes=2,
        tables=1,
        duration_s=1.5,
        pause_s=0.02,
        work=replace(shape.work, counters=1, readers=2, compactors=2, followers=2, droppers=0),
        limits=replace(shape.limits, since_lag=0, cache_bytes=2**28, inline_bytes=2**16),
        faults=replace(shape.faults, refused=0.0, cut=0.0, full=0.0),
    )


def _two_who_write(shape: Shape) -> Shape:
    """What one tells of its changes overtakes what it told before."""
    return replace(
        shape,
        processes=2,
        tables=1,
        duration_s=1.0,
        pause_s=0.02,
        tells=Tells.EVERYBODY,
        work=replace(shape.work, writers=2, readers=2, droppers=0),
        faults=replace(shape.faults, refused=0.0, cut=0.0, full=0.0, lost_hint=0.1),
    )


def _slow_readers(shape: Shape) -> Shape:
    """Leases are first taken while others are looked after."""
    work = replace(shape.work, readers=3, droppers=0, compactors=0, sweepers=0)
    faults = replace(shape.faults, slow=0.1, cut=0.0)
    return replace(shape, tables=4, pause_s=0.2, work=work, faults=faults)


@mutation((compaction, "advance_since"), first_seed=93)
def move_since_over_a_hold_that_came_meanwhile(_: Any) -> Any:
    def advance(state: ShardState, *, to: Timestamp) -> ShardState:
        moved = advance_since(msgspec.structs.replace(state, holds=()), to=to)
        return msgspec.structs.replace(moved, holds=state.holds)

    return advance


@mutation((appending, "append"))
def drop_a_hold_on_append(_: Any) -> Any:
    def forgetful(state: ShardState, **how: Any) -> Any:
        return append(msgspec.structs.replace(state, holds=()), **how)

    return forgetful


@mutation((compaction, "_replace"))
def merge_without_moving_since(real: Any) -> Any:
    def stay(due: Any, parts: Any, retractions: Any, claimed: Any, state: Any, now_ms: int) -> Any:
        after = real(due, parts, retractions, claimed, state, now_ms)
        if isinstance(after, ShardState):
            return msgspec.structs.replace(after, since=state.since)
        return after

    return stay


@mutation((appending, "append"))
def skip_the_upper_check(_: Any) -> Any:
    def careless(state: ShardState, *, lower: Timestamp, upper: Timestamp, **how: Any) -> Any:
        blind = msgspec.structs.replace(state, upper=lower)
        after = append(blind, lower=lower, upper=upper, **how)
        if isinstance(after, ShardState) and upper <= state.upper:
            return msgspec.structs.replace(after, upper=state.upper)
        return after

    return careless


@mutation((appending, "append"), focus=_replaced_views)
def skip_the_writer_check(_: Any) -> Any:
    def careless(state: ShardState, *, writer: Any, **how: Any) -> Any:
        after = append(msgspec.structs.replace(state, writer=writer), writer=writer, **how)
        if isinstance(after, ShardState):
            return msgspec.structs.replace(after, writer=state.writer)
        return after

    return careless


@mutation((appending, "append"))
def write_to_a_dropped_table(_: Any) -> Any:
    def careless(state: ShardState, **how: Any) -> Any:
        after = append(msgspec.structs.replace(state, forgotten=False), **how)
        if isinstance(after, ShardState):
            return msgspec.structs.replace(after, forgotten=state.forgotten)
        return after

    return careless


@mutation((machine.Machine, "hear"), focus=_two_who_write)
def take_news_for_the_next_whatever_was_known(_: Any) -> Any:
    def hear(self: Any, news: Any) -> None:
        for one in news:
            known = self._known.get(one.shard_id, machine.Known(None, None))
            if known.state is not None and known.seqno < one.seqno:
                state = one.state_after(known.state)
                self._known[one.shard_id] = machine.Known(one.seqno, state)
                self._own.discard(one.shard_id)

    return hear


@mutation((watch.Signal, "wait"))
def wait_to_be_told(_: Any) -> Any:
    async def wait(self: Any, at_most_s: float) -> None:
        await self._event.wait()

    return wait


@mutation((read, "batches_beyond"), focus=_quick_history, first_seed=27)
def move_contents_over_merged_history(_: Any) -> Any:
    return lambda state, after: [b for b in state.batches if b.upper > after + 1]


@mutation((txn.Txns, "wait_for_upper"))
def read_before_it_is_complete(_: Any) -> Any:
    async def at_once(self: Any, beyond: Timestamp) -> Timestamp:
        return max(await self.upper(), Timestamp(beyond + 1))

    return at_once


@mutation((prepare, "store_part"), (compaction, "store_part"), focus=on_parts)
def refer_to_a_part_before_it_is_stored(store_part: Any) -> Any:
    async def hasty(blob: Any, shard_id: Any, value: bytes, rows: int, **how: Any) -> Any:
        class Later:
            async def put(self, key: str, value: bytes) -> None:
                task = asyncio.ensure_future(blob.put(key, value))
                task.add_done_callback(lambda done: done.cancelled() or done.exception())

        return await store_part(Later(), shard_id, value, rows, **how)

    return hasty


@mutation((compaction.Compaction, "_change"), focus=on_parts)
def collect_before_the_merge_is_committed(change: Any) -> Any:
    @wraps(change)
    async def hasty(self: Any, transition: Any) -> Any:
        if getattr(transition, "func", None) is compaction._replace:
            for batch in transition.args[0].batches:
                await prepare.discard(self._blob, batch.parts)
        return await change(self, transition)

    return hasty


@mutation((merge, "consolidate_columns"))
def lose_retractions_in_a_merge(consolidate: Any) -> Any:
    def lossy(types: Any, updates: Any, since: Timestamp) -> Any:
        return consolidate(types, [u for u in updates if u[2] > 0], since)

    return lossy


@mutation((read.ShardReader, "readable"), focus=_quick_history, first_seed=22)
def read_below_since(_: Any) -> Any:
    async def anyhow(self: Any, shard_id: Any, as_of: Timestamp) -> Any:
        return (await self._machine.read(shard_id)).state

    return anyhow


@mutation((stillness.Look, "unchanged"))
def take_every_input_for_still(_: Any) -> Any:
    return lambda *_: True


@mutation((sweep.Sweeper, "_old"), focus=_slow_processes)
def sweep_what_was_just_stored(_: Any) -> Any:
    return lambda *found: found[1]


@mutation((compaction, "check_young"), (appending, "check_young"), focus=_slow_processes)
def refer_to_a_part_however_old(_: Any) -> Any:
    return lambda _: None


@mutation((compaction, "check_young"), focus=_slow_processes)
def look_only_at_the_newest_part(check_young: Any) -> Any:
    def newest(parts: Any) -> None:
        stored = [part for part in parts if isinstance(part, BlobPart)]
        check_young(stored[-1:])

    return newest


@mutation((sweep.Sweeper, "_delete"), focus=_slow_stores, first_seed=14)
def sweep_what_is_under_way(_: Any) -> Any:
    async def delete(self: Any, shard_id: Any, head: Any, garbage: Any) -> Any:
        for key in garbage:
            await self._client.blob.delete(key)
        return list(garbage)

    return delete


@mutation((sweep, "purge"), focus=on_drops, first_seed=11)
def purge_what_is_held(purge: Any) -> Any:
    def careless(state: ShardState, **how: Any) -> Any:
        return purge(msgspec.structs.replace(state, holds=()), **how)

    return careless


@mutation((leases.Leases, "look_after"), focus=_slow_readers)
def look_after_leases_that_just_came(_: Any) -> Any:
    async def look_after(self: Any) -> None:
        async with self._writing:
            known = await self._machine.read_all(list(self._leases))
            for shard_id in self._leases:
                assert known[shard_id].state is not None

    return look_after


MUTATIONS = mutations_in(globals())
