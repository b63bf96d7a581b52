"""What need not be kept any longer: history of views' inputs, and of indexes."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

from evertide.dataflow.description import ShardExport, hold_owner
from evertide.persist.handle import PersistClient
from evertide.persist.state import (
    Changed,
    Missing,
    ShardChange,
    ShardState,
    Transition,
    existing,
    move_hold,
    release_hold,
)
from evertide.persist.trouble import PASSING, Trouble
from evertide.spark.asked_in_vain import asked_in_vain
from evertide.spark.engine import EngineFailing, EngineLost
from evertide.spark.partitions.connection import ResidentFault
from evertide.spark.running import Placement, RunningDataflow
from evertide.spark.worker import Worker
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp, step_back

PAUSE_SECONDS = 5.0
# Views without inputs stand at the end of all times.
_LAST = Timestamp(EMPTY_FRONTIER - 1)


async def keep_holds(persist: PersistClient, worker: Worker) -> None:
    """Move every view's holds to where a restart would begin, and indexes' sinces, for ever."""
    trouble = Trouble("moving read holds")
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        try:
            await _move_all(persist, worker)
            trouble.over()
        except PASSING as fault:
            trouble.met(fault)  # history is kept for longer, that is all


async def _move_all(persist: PersistClient, worker: Worker) -> None:
    for dataflow in worker.dataflows():
        _move_lease(dataflow)
        await _compact_index(dataflow, worker)
    changes = [change for dataflow in worker.dataflows() for change in hold_changes(dataflow)]
    if changes:
        # One commit: views may share inputs, and there may be hundreds of them.
        await persist.machine.apply_each(together(changes))


def together(changes: Iterable[ShardChange]) -> list[ShardChange]:
    """One change for each shard that makes all of its changes; a refused one is left out."""
    by_shard: dict[ShardId, list[Transition]] = {}
    for change in changes:
        by_shard.setdefault(change.shard_id, []).append(change.transition)
    return [ShardChange(shard, partial(_each_that_can, ts)) for shard, ts in by_shard.items()]


def _each_that_can(transitions: Sequence[Transition], state: ShardState | None) -> Changed:
    """A view's hold that cannot move must not keep those of others where they are."""
    outcome: Changed = Missing()
    for transition in transitions:
        changed = transition(state)
        if isinstance(changed, ShardState):
            outcome = state = changed
    return outcome


def _move_lease(dataflow: RunningDataflow) -> None:
    """A view goes on from its frontier; what an index needs follows its since."""
    placement = dataflow.placement
    if placement is not None and dataflow.index_key is None and dataflow.frontier:
        placement.hold.move(step_back(min(dataflow.frontier, _LAST)))


async def _compact_index(dataflow: RunningDataflow, worker: Worker) -> None:
    """Let an index forget what nobody asks for; peeks below are refused from this moment on."""
    placement = dataflow.placement
    if placement is None or dataflow.index_key is None or dataflow.stopped is not None:
        return
    if dataflow.frontier == EMPTY_FRONTIER:
        return
    since = Timestamp(dataflow.frontier - 1 - dataflow.history_ms)
    if since <= placement.since:
        return
    placement.hold.move(since)
    dataflow.placement = Placement(placement.engine, since, placement.hold)
    try:
        await placement.engine.allow_compaction(dataflow.description.global_id, since)
    except EngineLost:
        pass  # the next incarnation starts without that history anyway
    except (EngineFailing, ResidentFault) as fault:
        asked_in_vain(worker, dataflow, placement.engine, fault)


def hold_changes(dataflow: RunningDataflow) -> list[ShardChange]:
    """A restart hydrates at max(as_of, output upper - 1): nothing below that is needed."""
    sink = dataflow.sink
    if sink is None or dataflow.stopped is not None:
        return []
    assert isinstance(dataflow.description.export, ShardExport)
    owner = hold_owner(dataflow.description.global_id)
    if sink.upper == EMPTY_FRONTIER:
        if dataflow.description.refresh is None:
            return []  # nor has it inputs that go on
        transition = existing(partial(_let_go, owner=owner))
    else:
        hold_ts = max(dataflow.description.as_of, step_back(sink.upper))
        transition = existing(partial(move_hold, owner=owner, hold_ts=hold_ts))
    return [ShardChange(i.shard_id, transition) for i in dataflow.description.imports]


def _let_go(state: ShardState, *, owner: str) -> Changed:
    """A finished view needs nothing any more; without a hold there is nothing to be written."""
    held = any(hold.owner == owner for hold in state.holds)
    return release_hold(state, owner=owner) if held else Missing()
