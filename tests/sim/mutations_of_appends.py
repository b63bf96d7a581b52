"""Bugs on the short way of single appends, where the store tells what came of them."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, cast

from evertide.persist import machine, state_encoder
from evertide.persist.state import ShardState, UpperMismatch, encode_batch
from evertide.persist.store import memory
from evertide.persist.store.protocol import AllSet, Head, SetMismatch, SetOutcome
from tests.sim.planting import mutation, mutations_in
from tests.sim.shape import Shape, on_feeds


def _with_takeovers(shape: Shape) -> Shape:
    shape = on_feeds(shape)
    return replace(shape, troubles=replace(shape.troubles, takeover_s=0.2))


def _many_batches(shape: Shape) -> Shape:
    """So many that the bytes of earlier ones are kept."""
    work = replace(on_feeds(shape).work, writers=0, compactors=0)
    return replace(on_feeds(shape), pause_s=0.02, duration_s=1.5, work=work)


@mutation((memory.MemoryConsensus, "compare_and_set_each"), focus=_with_takeovers)
def skip_the_epoch_check_of_a_single_set(real: Any) -> Any:
    async def unchecked(self: Any, sets: Any) -> SetOutcome:
        if len(sets) != 1:
            return cast(SetOutcome, await real(self, sets))
        (one,) = sets
        if not self._cells.matches(one):
            return SetMismatch((one.shard_id,))
        self._cells.heads[one.shard_id] = Head(one.next_seqno, one.value)
        return AllSet()

    return unchecked


@mutation((machine.Machine, "_set_one"), focus=on_feeds)
def acknowledge_a_single_append_before_its_commit(set_one: Any) -> Any:
    async def hasty(self: Any, change: Any, after: Any) -> SetOutcome:
        asked = asyncio.ensure_future(set_one(self, change, after))
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        return AllSet()

    return hasty


@mutation((machine.Machine, "_set_one"), focus=on_feeds)
def take_a_single_append_that_lost_for_done(set_one: Any) -> Any:
    async def hopeful(self: Any, change: Any, after: Any) -> SetOutcome:
        await set_one(self, change, after)
        return AllSet()

    return hopeful


@mutation((machine.Machine, "_set_one"), focus=on_feeds)
def remember_a_single_append_that_lost(_: Any) -> Any:
    """As if the head were what this process wanted it to be: the next one is set over another's."""

    def set_one(self: Any, change: Any, after: ShardState) -> Awaitable[SetOutcome]:
        def heard(_: SetOutcome) -> None:
            self._known[change.shard_id] = machine.Known(change.next_seqno, after)
            self._own.add(change.shard_id)
            self._on_change([change.shard_id])

        return cast("Awaitable[SetOutcome]", self._try_each((change,), heard))

    return set_one


@mutation((machine.Machine, "_set_one"), focus=on_feeds)
def remember_a_single_append_before_its_commit(set_one: Any) -> Any:
    def early(self: Any, change: Any, after: ShardState) -> Awaitable[SetOutcome]:
        self._known[change.shard_id] = machine.Known(change.next_seqno, after)
        return cast("Awaitable[SetOutcome]", set_one(self, change, after))

    return early


@mutation((machine.Machine, "apply_one"), focus=on_feeds)
def refuse_by_the_state_that_was_set_last(apply_one: Any) -> Any:
    async def refuse(self: Any, change: Any) -> Any:
        if change.shard_id in self._own:
            after = change.transition(self._known[change.shard_id].state)
            if isinstance(after, UpperMismatch):
                return after
        return await apply_one(self, change)

    return refuse


@mutation((state_encoder, "_encode"), focus=_many_batches)
def keep_the_bytes_of_batches_that_another_replaced(encode: Any) -> Any:
    def by_their_number(batches: Any, kept: Any) -> bytes:
        before, encoded = kept
        if before and len(batches) == len(before) + 1:
            return cast(bytes, encoded) + encode_batch(batches[-1])
        return cast(bytes, encode(batches, kept))

    return by_their_number


MUTATIONS = mutations_in(globals())
