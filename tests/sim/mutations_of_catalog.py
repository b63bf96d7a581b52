"""Bugs in how DDL is decided, appended, acknowledged and followed."""

import asyncio
from dataclasses import replace
from typing import Any

from evertide.adapter import dispatch
from evertide.adapter.ddl import entry as ddl
from evertide.adapter.writing import shard_changes as changes_of_shards
from evertide.catalog.durable import shadow
from evertide.catalog.durable.place import CatalogKind
from evertide.catalog.service import CatalogService
from evertide.oracle import batching
from evertide.persist.append import Appended
from evertide.persist.state import UpperMismatch
from evertide.persist.store import memory
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.sim.node import CATALOG
from tests.sim.planting import mutation, mutations_in
from tests.sim.shape import Shape


def _many_races(shape: Shape) -> Shape:
    return replace(shape, pause_s=0.01, faults=replace(shape.faults, full=0.0, refused=0.0))


def _many_takeovers(shape: Shape) -> Shape:
    troubles = replace(shape.troubles, takeover_s=0.2, freeze_s=0.2, outage_s=None)
    return replace(shape, pause_s=0.01, troubles=troubles)


def _in_a_shadow(shape: Shape) -> Shape:
    kinds = list(CatalogKind)
    seed = shape.seed * len(kinds) + kinds.index(CatalogKind.SHADOW)
    return replace(_many_races(shape), seed=seed, troubles=replace(shape.troubles, crash_s=0.1))


@mutation((CatalogService, "compare_and_append"), focus=_many_races)
def append_what_an_old_snapshot_said(append: Any) -> Any:
    async def stubborn(self: Any, updates: Any, *, expected_upper: Timestamp, **other: Any) -> Any:
        outcome = await append(self, updates, expected_upper=expected_upper, **other)
        while isinstance(outcome, UpperMismatch):
            outcome = await append(self, updates, expected_upper=outcome.actual, **other)
        return outcome

    return stubborn


@mutation((dispatch, "run_ddl"), focus=_many_races)
def keep_the_first_plan(run_ddl: Any) -> Any:
    async def once(plan_again: Any, session: Any, env: Any, snapshot: Any) -> Any:
        plans: list[Any] = []

        def plan_once(snapshot: Any) -> Any:
            plans.append(plans[0] if plans else plan_again(snapshot))
            return plans[0]

        return await run_ddl(plan_once, session, env, snapshot)

    return once


@mutation((CatalogService, "compare_and_append"))
def acknowledge_before_the_append(append: Any) -> Any:
    async def hasty(self: Any, updates: Any, *, expected_upper: Timestamp, **other: Any) -> Any:
        task = asyncio.ensure_future(append(self, updates, expected_upper=expected_upper, **other))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return Appended(Timestamp(expected_upper + 1))

    return hasty


@mutation((CatalogService, "compare_and_append"), focus=_many_races)
def take_a_lost_race_for_won(append: Any) -> Any:
    async def hopeful(self: Any, updates: Any, **other: Any) -> Any:
        outcome = await append(self, updates, **other)
        return Appended(outcome.actual) if isinstance(outcome, UpperMismatch) else outcome

    return hopeful


@mutation((ddl, "MAX_ATTEMPTS"), focus=_many_races)
def give_up_after_a_lost_race(_: Any) -> Any:
    return 1


@mutation((batching.BatchingOracle, "read_ts"), focus=_many_races)
def serve_readings_from_a_cache(read_ts: Any) -> Any:
    async def cached(self: Any, timeline: Timeline) -> Timestamp:
        kept, now_s = getattr(self, "kept", {}), asyncio.get_running_loop().time()
        if timeline is not Timeline.CATALOG or kept.get("until_s", 0.0) < now_s:
            kept["reading"], kept["until_s"] = await read_ts(self, timeline), now_s + 0.05
            self.kept = kept if timeline is Timeline.CATALOG else {}
        reading: Timestamp = kept["reading"]
        return reading

    return cached


@mutation((CatalogService, "current"), focus=_many_races)
def plan_with_what_is_known_here(_: Any) -> Any:
    async def current(self: Any) -> Any:
        return self.newest

    return current


@mutation((memory.MemoryConsensus, "compare_and_set_all"), focus=_many_takeovers)
def append_under_any_epoch(set_all: Any) -> Any:
    async def unfenced(self: Any, sets: Any, **other: Any) -> Any:
        if other.get("stash") is not None or any(one.shard_id == CATALOG for one in sets):
            self = memory.MemoryConsensus(self._cells, self._cells.epoch)
        return await set_all(self, sets, **other)

    return unfenced


@mutation((CatalogService, "compare_and_append"))
def change_shards_afterwards(append: Any) -> Any:
    async def twice(
        self: Any, updates: Any, *, expected_upper: Timestamp, shard_changes: Any = ()
    ) -> Any:
        outcome = first = await append(self, updates, expected_upper=expected_upper)
        while isinstance(first, Appended) and shard_changes:
            upper = outcome.upper if isinstance(outcome, Appended) else outcome.actual
            outcome = await append(self, (), expected_upper=upper, shard_changes=shard_changes)
            if isinstance(outcome, Appended):
                break
        return first

    return twice


@mutation((changes_of_shards, "_created"))
def leave_inputs_without_holds(created: Any) -> Any:
    return lambda item, _: created(item, ())


@mutation((changes_of_shards, "_dropped"))
def keep_the_shards_of_what_was_dropped(_: Any) -> Any:
    return lambda *_, **__: []


@mutation((CatalogService, "compare_and_append"), focus=_many_races)
def tell_followers_only_of_others(append: Any) -> Any:
    async def quiet(self: Any, updates: Any, **other: Any) -> Any:
        inboxes, self._inboxes = self._inboxes, set()
        try:
            return await append(self, updates, **other)
        finally:
            self._inboxes |= inboxes

    return quiet


@mutation((CatalogService, "_advance"), focus=_many_races)
def pass_over_a_transaction(advance: Any) -> Any:
    def forgetful(self: Any, progress: Any) -> None:
        inboxes = self._inboxes
        if progress.upper % 3 == 0:
            self._inboxes = set()
        advance(self, progress)
        self._inboxes = inboxes

    return forgetful


@mutation((shadow.ShadowLog, "append"), focus=_in_a_shadow)
def leave_the_secondary_behind(append: Any) -> Any:
    async def hasty(self: Any, changes: Any, *, expected_upper: Timestamp, **other: Any) -> Any:
        self._level_at = expected_upper
        return await append(self, changes, expected_upper=expected_upper, **other)

    return hasty


MUTATIONS = mutations_in(globals())
