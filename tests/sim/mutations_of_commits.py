"""Bugs in how writes get their timestamps, reach the store and are acknowledged."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import msgspec

from evertide.adapter.writing import committer, group_commit
from evertide.catalog.durable import persist as durable_catalog
from evertide.catalog.service import CatalogService
from evertide.oracle import batching, durable
from evertide.persist import machine, txn
from evertide.persist.state import ShardState
from evertide.persist.store import attempts, memory
from evertide.persist.store.protocol import AllSet, Head, SetMismatch
from evertide.persist.txn import Committed, TxnsUpperMismatch
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp
from tests.sim.planting import mutation, mutations_in
from tests.sim.shape import Shape, Tells, on_timestamps
from tests.support.memory_port import MemoryPort


def _many_cuts(shape: Shape) -> Shape:
    """Of a network: in a file nothing arrives late."""
    faults = replace(shape.faults, cut=0.5, refused=0.0)
    return replace(shape, faults=faults, pause_s=0.02, duration_s=2.0, tells=Tells.NOBODY)


def _oracle_apart(shape: Shape) -> Shape:
    return replace(on_timestamps(shape), oracle_apart=True)


@mutation((memory._Cells, "check"))
def skip_the_epoch_check(_: Any) -> Any:
    return lambda *_: None


@mutation((txn.Txns, "commit_claiming"), (txn.Txns, "commit"))
def acknowledge_before_the_commit(commit: Any) -> Any:
    async def hasty(self: Any, writes: Any, *, at: Timestamp, **other: Any) -> Committed:
        if not writes:
            return await commit(self, writes, at=at, **other)
        task = asyncio.ensure_future(commit(self, writes, at=at, **other))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return Committed(at)

    return hasty


@mutation((attempts.Attempts, "_attempt"))
def repeat_when_the_outcome_is_unknown(_: Any) -> Any:
    async def attempt(self: Any, writer: Any, change: Any) -> Any:
        return await self._port.change(writer.next(), change)

    return attempt


@mutation((MemoryPort, "settle"))
def ask_without_barring(_: Any) -> Any:
    async def settle(self: Any, attempt: Any) -> Any:
        number, outcome = self._kept.get(attempt.writer, (0, None))
        return outcome if number == attempt.number else None

    return settle


@mutation((MemoryPort, "settle"), focus=_many_cuts, first_seed=90)
def let_a_late_question_unbar(_: Any) -> Any:
    async def settle(self: Any, attempt: Any) -> Any:
        number, outcome = self._kept.get(attempt.writer, (0, None))
        if number == attempt.number:
            return outcome
        self._kept[attempt.writer] = (attempt.number, None)
        return None

    return settle


@mutation((attempts.Attempts, "_attempt"))
def take_an_unknown_outcome_for_done(_: Any) -> Any:
    async def attempt(self: Any, writer: Any, change: Any) -> Any:
        try:
            return await self._port.change(writer.next(), change)
        except attempts.OutcomeUnknown:
            return AllSet()

    return attempt


@mutation((memory.MemoryConsensus, "compare_and_set_all"))
def do_a_part_of_all(real: Any) -> Any:
    async def partly(
        self: Any, sets: Any, *, applied: Any = (), claimed: Any = None, **others: Any
    ) -> Any:
        if others["stash"] is not None or others["raises_epoch"]:
            return await real(self, sets, applied=applied, claimed=claimed, **others)
        self._cells.check(self._epoch)
        lost = tuple(s.shard_id for s in sets if not self._cells.matches(s))
        for one in sets:
            if one.shard_id not in lost:
                self._cells.heads[one.shard_id] = Head(one.next_seqno, one.value)
        for write in [*applied, *([] if claimed is None else [claimed])]:
            self._cells.apply(write.timeline, write.write_ts)
        return SetMismatch(lost) if lost else AllSet()

    return partly


@mutation((machine.Machine, "_apply_all"))
def take_a_lost_race_for_won(_: Any) -> Any:
    async def apply_all(self: Any, changes: Any, riders: Any) -> Any:
        known = await self.read_all(sorted({change.shard_id for change in changes}))
        decided = machine._decide_all(known, changes)
        if isinstance(decided, machine.Refused):
            return decided
        await self._set_all(self._sets(known, decided), decided, riders)
        return machine.Applied(decided)

    return apply_all


@mutation((machine.Machine, "read"))
def read_states_from_memory(real: Any) -> Any:
    async def stale(self: Any, shard_id: Any) -> Any:
        return self._known.get(shard_id) or await real(self, shard_id)

    return stale


@mutation((txn, "_advance"))
def ignore_what_was_read(advance: Any) -> Any:
    return lambda state, at, _: advance(state, at, None)


@mutation((txn, "_advance"))
def write_in_the_past(advance: Any) -> Any:
    def anywhere(state: ShardState, at: Timestamp, expected_upper: Any) -> Any:
        after = advance(msgspec.structs.replace(state, upper=MIN_TS), at, None)
        upper = max(after.upper, state.upper)
        return msgspec.structs.replace(after, upper=upper)

    return anywhere


@mutation((committer.AskingCommitter, "_apply"))
def forget_to_tell_the_oracle(_: Any) -> Any:
    async def nothing(self: Any, write_ts: Timestamp) -> None:
        pass

    return nothing


@mutation((committer.AskingCommitter, "_apply"))
def tell_the_oracle_after_the_client(apply: Any) -> Any:
    async def later(self: Any, write_ts: Timestamp) -> None:
        task = asyncio.ensure_future(apply(self, write_ts))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    return later


@mutation((committer.AskingCommitter, "commit"))
def tell_the_oracle_before_the_commit(_: Any) -> Any:
    async def commit(self: Any, writes: Any, expected_upper: Any) -> Any:
        write_ts = await self._oracle.write_ts(Timeline.EPOCH_MS)
        await self._oracle.apply_write(Timeline.EPOCH_MS, write_ts)
        return await self._txns.commit(writes, at=write_ts, expected_upper=expected_upper)

    return commit


@mutation((memory.MemoryOracleRows, "allocate"))
def hand_out_a_timestamp_twice(_: Any) -> Any:
    async def allocate(self: Any, timeline: Any, at_least: Timestamp, count: int = 1) -> Any:
        self._cells.check(self._epoch)
        row = self._cells.timelines.get(timeline, memory._UNUSED_TIMELINE)
        return max(Timestamp(row.read_ts + 1), at_least)

    return allocate


@mutation((durable.DurableOracle, "read_ts"))
def read_at_the_wall_clock(_: Any) -> Any:
    async def read_ts(self: Any, timeline: Any) -> Timestamp:
        await self._rows.read(timeline)
        return Timestamp(self._clock.now_ms())

    return read_ts


@mutation((batching.BatchingOracle, "read_ts"))
def join_the_reading_under_way(real: Any) -> Any:
    async def early(self: Any, timeline: Timeline) -> Timestamp:
        under_way = vars(self).setdefault("_under_way", {})
        running = under_way.get(timeline)
        if running is None or running.done():
            running = under_way[timeline] = asyncio.ensure_future(real(self, timeline))
        return cast(Timestamp, await asyncio.shield(running))

    return early


@mutation((batching.BatchingOracle, "write_ts"), focus=_oracle_apart)
def share_a_write_timestamp(_: Any) -> Any:
    async def shared(self: Any, timeline: Timeline) -> Timestamp:
        first, _ = await self._writes[timeline].join()
        return first

    return shared


@mutation((group_commit, "merged"))
def lose_all_but_the_last_of_a_round(merged: Any) -> Any:
    return lambda pending: merged(pending[-1:])


@mutation((group_commit.GroupCommit, "_commit_round"))
def commit_table_by_table(commit_round: Any) -> Any:
    async def by_table(self: Any, pending: Any) -> None:
        real = self._committer

        class Split:
            async def commit(self, writes: Mapping[Any, Any], upper: Any) -> Any:
                outcome = None
                for shard_id, write in writes.items():
                    outcome = await real.commit({shard_id: write}, upper)
                    if not isinstance(outcome, Committed):
                        return outcome
                return outcome or await real.commit(writes, upper)

        self._committer = Split()
        try:
            await commit_round(self, pending)
        finally:
            self._committer = real

    return by_table


@mutation((committer.AskingCommitter, "_apply"), first_seed=11)
def call_a_done_write_refused(_: Any) -> Any:
    async def apply(self: Any, write_ts: Timestamp) -> None:
        await self._oracle.apply_write(Timeline.EPOCH_MS, write_ts)

    return apply


@mutation((committer.ClaimingCommitter, "commit"), (committer.AskingCommitter, "commit"))
def take_a_lost_commit_for_done(commit: Any) -> Any:
    async def hopeful(self: Any, writes: Any, expected_upper: Any) -> Any:
        outcome = await commit(self, writes, expected_upper)
        return Committed(outcome.actual) if isinstance(outcome, TxnsUpperMismatch) else outcome

    return hopeful


@mutation((committer.ClaimingCommitter, "commit"), first_seed=19)
def lose_to_the_same_commit_again(commit: Any) -> Any:
    async def forgetful(self: Any, writes: Any, expected_upper: Any) -> Any:
        last, outcome = self._last, await commit(self, writes, expected_upper)
        if isinstance(outcome, TxnsUpperMismatch):
            self._last = last
        return outcome

    return forgetful


def _much_ddl(shape: Shape) -> Shape:
    work = replace(shape.work, ddls=2, readers=0, counters=0)
    return replace(shape, processes=max(2, shape.processes), pause_s=0.02, work=work)


@mutation((CatalogService, "current"), focus=_much_ddl)
def plan_with_an_old_catalog(_: Any) -> Any:
    async def current(self: Any) -> Any:
        return self.newest

    return current


@mutation((durable_catalog.PersistLog, "append"), focus=_much_ddl)
def change_a_catalog_that_somebody_changed(append: Any) -> Any:
    async def anywhere(self: Any, changes: Any, *, expected_upper: Timestamp, **other: Any) -> Any:
        upper = max(expected_upper, await self.upper())
        return await append(self, changes, expected_upper=upper, **other)

    return anywhere


MUTATIONS = mutations_in(globals())
