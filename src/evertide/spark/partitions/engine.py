"""Several resident tasks as one engine, each with its share of every dataflow's state.

The driver has no state of its own: it sends each task the changes whose keys are that task's, and
carries what one stage of a tick gives to the tasks that need it for the next. No task begins a
stage before all have done the one before it, and none changes its state before the last, so "old"
and "new" mean the same to all of them.

Whatever loses one of the tasks loses the engine: what the others keep is of no use without it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.lookup import Lookup, Span, point
from evertide.dataflow.plan_codec import encode_plan
from evertide.dataflow.stages import StagedPlan, cut
from evertide.expr.relation import Types
from evertide.expr.row_key import column_encoder
from evertide.expr.scalar import ColumnRef
from evertide.persist.coding.batch import UpdateBatch, concat_batches, no_updates, to_batch
from evertide.spark.arrangements.key_order import LookupRefused
from evertide.spark.building.state_files import read_states, write_states
from evertide.spark.channel import (
    CompactRequest,
    CreateRequest,
    DropRequest,
    LoadRequest,
    PeekRequest,
    SizesReply,
    SizesRequest,
    StageReply,
    StageRequest,
    decode_rows,
    updates_told,
)
from evertide.spark.engine import Inputs, Peeked
from evertide.spark.operators.arrange import Wanted
from evertide.spark.operators.changes import delta_of, updates_of
from evertide.spark.operators.delta import consolidated
from evertide.spark.partitions.asking import peek_reply, send_files
from evertide.spark.partitions.coding import encode_delta
from evertide.spark.partitions.connection import Asked
from evertide.spark.partitions.share import Router, owner_of_key
from evertide.spark.partitions.states import split_states
from evertide.spark.tables import desc_of
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp

# More rows than this are taken apart or put together on a thread, so that the loop goes on.
LARGE_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class _Shared:
    """A dataflow whose state the tasks have. `routers` are those of what comes from outside."""

    plan: DeltaPlan
    index_key: tuple[int, ...] | None
    staged: StagedPlan
    routers: Mapping[int, Router]

    @classmethod
    def of(cls, plan: DeltaPlan, index_key: tuple[int, ...] | None, count: int) -> "_Shared":
        staged = cut(plan, index_key)
        routers = {
            position: Router(feed.types, _refs(feed.types, feed.key), count)
            for position, feed in staged.feeds.items()
        }
        return cls(plan, index_key, staged, routers)


class PartitionedEngine:
    """As an Engine. `tasks` are asked in parallel, each of them in order."""

    executor = "resident"

    def __init__(self, tasks: Sequence[Asked]) -> None:
        self._tasks = tasks
        self._dataflows: dict[GlobalId, _Shared] = {}
        self._due: dict[GlobalId, Timestamp | None] = {}

    async def create(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        whole_from: Timestamp | None = None,  # noqa: ARG002  # shares are not shared again
    ) -> None:
        count = len(self._tasks)
        self._dataflows[dataflow_id] = _Shared.of(plan, index_key, count)
        encoded = encode_plan(plan)
        await asyncio.gather(
            *(
                task.ask(CreateRequest(dataflow_id, encoded, index_key, as_of, number, count))
                for number, task in enumerate(self._tasks)
            )
        )

    async def load(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        directory: Path,
    ) -> None:
        """Make a dataflow whose first tick follows what Spark hydrated: the files of `directory`.

        They go through the channel: nobody knows whether all tasks see a directory of ours.
        """
        await self.drop(dataflow_id)  # and what is left of a load that failed
        count = len(self._tasks)
        self._dataflows[dataflow_id] = _Shared.of(plan, index_key, count)
        encoded = encode_plan(plan)
        states = await asyncio.to_thread(read_states, directory, plan)
        parts = await asyncio.to_thread(split_states, plan, states, count)

        async def load_part(number: int) -> None:
            own = directory / f"task-{number}"
            await asyncio.to_thread(write_states, own, plan, parts[number])
            await send_files(self._tasks[number], dataflow_id, own)
            request = LoadRequest(dataflow_id, encoded, index_key, as_of, None, number, count)
            await self._tasks[number].ask(request)

        # All of them have ended before their files go.
        ended = await asyncio.gather(*map(load_part, range(count)), return_exceptions=True)
        for outcome in ended:
            if outcome is not None:
                raise outcome

    async def prepared(self, dataflow_id: GlobalId, inputs: Inputs) -> Inputs:
        del dataflow_id
        return inputs

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Inputs,
        lower: Timestamp,
        upper: Timestamp,
    ) -> UpdateBatch:
        """Stage by stage. Those in which nobody has anything to do are one turn."""
        shared = self._dataflows[dataflow_id]
        staged = shared.staged
        if sum(map(len, inputs.values())) > LARGE_ROWS:
            received = await asyncio.to_thread(_fed, shared, inputs, len(self._tasks))
        else:
            received = _fed(shared, inputs, len(self._tasks))
        first, quiet = 0, False
        while True:
            last = staged.last if quiet and not any(received) else first
            replies = await asyncio.gather(
                *(
                    self._turn(task, StageRequest(dataflow_id, first, last, part, lower, upper))
                    for task, part in zip(self._tasks, received, strict=True)
                )
            )
            if last == staged.last:
                break
            received = _carried(replies, len(self._tasks))
            first, quiet = last + 1, all(reply.quiet for reply in replies)
        return await self._output(dataflow_id, replies)

    async def _turn(self, task: Asked, request: StageRequest) -> StageReply:
        reply = await task.ask(request)
        assert isinstance(reply, StageReply), "a stage gives rows to carry on"
        return reply

    async def _output(self, dataflow_id: GlobalId, replies: Sequence[StageReply]) -> UpdateBatch:
        shared = self._dataflows[dataflow_id]
        outputs = [reply.output for reply in replies if reply.output is not None]
        due = [output.due for output in outputs if output.due is not None]
        self._due[dataflow_id] = Timestamp(min(due)) if due else None
        types = shared.plan.types
        batches = [updates_told(desc_of(types), output) for output in outputs if output.count]
        if len(batches) < 2:
            return batches[0] if batches else no_updates(desc_of(types))
        failed = any(reply.failed for reply in replies)
        settled = shared.staged.settled and not failed
        if sum(map(len, batches)) > LARGE_ROWS:
            return await asyncio.to_thread(_together, types, batches, settled)
        return _together(types, batches, settled)

    def due(self, dataflow_id: GlobalId) -> Timestamp | None:
        return self._due.get(dataflow_id)

    async def peek(self, dataflow_id: GlobalId, keys: Wanted, as_of: Timestamp) -> Peeked:
        """A task is asked for the keys that it has, and for its errors."""
        shared = self._dataflows[dataflow_id]
        requests = _peeks(dataflow_id, shared, keys, as_of, len(self._tasks))
        replies = await asyncio.gather(
            *(peek_reply(task, r) for task, r in zip(self._tasks, requests, strict=True))
        )
        found = [decode_rows(shared.plan.types, reply.updates) for reply in replies]
        errors: dict[str, int] = {}
        for error, count in [error for _, part in found for error in part]:
            errors[error] = errors.get(error, 0) + count
        rows = [row for part, _ in found for row in part]
        if isinstance(keys, Lookup) and keys.most is not None and len(rows) > keys.most:
            raise LookupRefused(f"the lookup would find {len(rows)} rows")
        if len(rows) > LARGE_ROWS:
            rows = await asyncio.to_thread(_in_key_order, shared, rows)
        else:
            rows = _in_key_order(shared, rows)
        return Peeked(rows, [error for error in errors.items() if error[1]])

    async def allow_compaction(self, dataflow_id: GlobalId, since: Timestamp) -> None:
        await asyncio.gather(*(t.ask(CompactRequest(dataflow_id, since)) for t in self._tasks))

    async def drop(self, dataflow_id: GlobalId) -> None:
        self._dataflows.pop(dataflow_id, None)
        self._due.pop(dataflow_id, None)
        await asyncio.gather(*(t.ask(DropRequest(dataflow_id)) for t in self._tasks))

    async def sizes(self, dataflow_id: GlobalId) -> Mapping[str, int]:
        """Of all tasks together."""
        replies = await asyncio.gather(*(t.ask(SizesRequest(dataflow_id)) for t in self._tasks))
        total: dict[str, int] = {}
        for reply in replies:
            assert isinstance(reply, SizesReply), "sizes give sizes"
            for name, size in reply.sizes.items():
                total[name] = total.get(name, 0) + size
        return total


def _refs(types: Types, columns: Sequence[int]) -> tuple[ColumnRef, ...]:
    return tuple([ColumnRef(column, types[column]) for column in columns])


def _fed(shared: _Shared, inputs: Inputs, count: int) -> list[dict[int, list[bytes]]]:
    """For each task what comes to it from outside, by position."""
    received: list[dict[int, list[bytes]]] = [{} for _ in range(count)]
    deltas = {g: delta_of(updates) for g, updates in inputs.items() if len(updates)}
    for position, feed in shared.staged.feeds.items():
        if feed.global_id in deltas:
            parts = shared.routers[position].split(deltas[feed.global_id])
            for number, part in enumerate(parts):
                if not part.is_nothing:
                    received[number][position] = [encode_delta(feed.types, part)]
    return received


def _carried(replies: Sequence[StageReply], count: int) -> list[dict[int, list[bytes]]]:
    """For each task what the others sent it; nobody here looks into it."""
    received: list[dict[int, list[bytes]]] = [{} for _ in range(count)]
    for reply in replies:
        for position, parts in reply.sent.items():
            for number, part in enumerate(parts):
                if part:
                    received[number].setdefault(position, []).append(part)
    return received


def _together(types: Types, batches: Sequence[UpdateBatch], settled: bool) -> UpdateBatch:
    """The outputs of all tasks; where the same row may come from several, added up."""
    together = concat_batches(desc_of(types), batches)
    if settled:
        return together
    added_up = consolidated(delta_of(together), types)
    return to_batch(desc_of(types), updates_of(added_up, types))


def _peeks(
    dataflow_id: GlobalId, shared: _Shared, keys: Wanted, as_of: Timestamp, count: int
) -> list[PeekRequest]:
    """What each task is asked: all of them, since errors stay where they were met."""
    everywhere = PeekRequest(dataflow_id, None, as_of)
    if keys is None:
        return [everywhere] * count
    if isinstance(keys, Lookup) and not keys.exact:
        return [PeekRequest(dataflow_id, None, as_of, keys)] * count
    if isinstance(keys, Lookup):
        spans = {span.lower: span for span in keys.spans}
    else:
        spans = _spans(shared, keys)
    owned: list[list[Span]] = [[] for _ in range(count)]
    for lower, span in sorted(spans.items()):
        owned[owner_of_key(lower, count)].append(span)
    return [
        PeekRequest(dataflow_id, None, as_of, Lookup(tuple(mine), exact=True)) for mine in owned
    ]


def _spans(shared: _Shared, keys: Sequence[Row]) -> dict[bytes, Span]:
    """Whole keys as a lookup asks for them."""
    assert shared.index_key is not None, "only an index is asked for keys"
    types = tuple([shared.plan.types[column] for column in shared.index_key])
    encode = column_encoder(types, tuple(range(len(types))))
    return {(encoded := encode(key)): point(encoded) for key in keys}


def _in_key_order(shared: _Shared, rows: list[tuple[Row, int]]) -> list[tuple[Row, int]]:
    assert shared.index_key is not None, "only an index is asked for rows"
    encode = column_encoder(shared.plan.types, shared.index_key)
    return sorted(rows, key=lambda counted: encode(counted[0]))
