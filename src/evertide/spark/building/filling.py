"""A dataflow's state by ticks from nothing: its inputs' contents, a piece at a time.

Pieces bound what a tick holds in memory. They come as if at timestamps of their own, the last of
them at the one that the state is for; nobody sees what was before, so that only the sum counts.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.told_at_once import told_at_once
from evertide.persist.coding.batch import UpdateBatch, concat_batches, to_batch
from evertide.spark.channel import input_descs
from evertide.spark.engine import Engine, Inputs
from evertide.spark.operators.changes import delta_of, updates_of
from evertide.spark.operators.delta import consolidated
from evertide.spark.tables import desc_of
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp, step_forward
from evertide.vocab.update import Update

# So many rows are taken in at once.
PIECE_ROWS: Final = 1_000_000


async def fill(
    engine: Engine,
    dataflow_id: GlobalId,
    plan: DeltaPlan,
    inputs: Inputs,
    start: Timestamp,
    *,
    index_key: tuple[int, ...] | None,
) -> Sequence[Update]:
    """Build the state at `start` from the inputs' contents then; returns the output."""
    await engine.drop(dataflow_id)
    # What depends on the time must not be told another one.
    if plan.is_temporal or plan.recomputes or sum(map(len, inputs.values())) <= PIECE_ROWS:
        await engine.create(dataflow_id, plan, index_key=index_key, as_of=start)
        return await engine.tick(dataflow_id, inputs, start, step_forward(start))
    parts = cut(inputs, input_descs(plan), PIECE_ROWS, told_at_once(plan))
    first = Timestamp(start + 1 - len(parts))
    await engine.create(dataflow_id, plan, index_key=index_key, as_of=first, whole_from=start)
    outputs = await _ticked(engine, dataflow_id, plan, parts, first)
    # On a thread: other dataflows tick meanwhile.
    return await asyncio.to_thread(_consolidated, plan, outputs, start)


async def _ticked(
    engine: Engine,
    dataflow_id: GlobalId,
    plan: DeltaPlan,
    parts: Sequence[Mapping[GlobalId, UpdateBatch]],
    first: Timestamp,
) -> list[UpdateBatch]:
    """What each piece gives. While one is ticked, the next is made ready."""

    async def prepared(number: int) -> Inputs:
        now = Timestamp(first + number)
        moved = {g: batch.moved(now) for g, batch in parts[number].items()}
        return await engine.prepared(dataflow_id, moved)

    desc = desc_of(plan.types)
    outputs: list[UpdateBatch] = []
    ahead = asyncio.create_task(prepared(0))
    try:
        for number in range(len(parts)):
            given, now = await ahead, Timestamp(first + number)
            if number + 1 < len(parts):
                ahead = asyncio.create_task(prepared(number + 1))
            ticked = await engine.tick(dataflow_id, given, now, step_forward(now))
            outputs.append(to_batch(desc, ticked))
    finally:
        ahead.cancel()  # if one was not waited for
    return outputs


def _consolidated(
    plan: DeltaPlan, outputs: list[UpdateBatch], start: Timestamp
) -> Sequence[Update]:
    """What the pieces gave, added up at one time: some of it was taken back by later ones."""
    moved = [batch.moved(start) for batch in outputs]
    whole = delta_of(concat_batches(desc_of(plan.types), moved))
    moved.clear()
    outputs.clear()
    return updates_of(consolidated(whole, plan.types), plan.types)


def cut(
    inputs: Inputs,
    descs: Mapping[GlobalId, RelationDesc],
    most: int,
    at_once: Collection[GlobalId] = (),
) -> list[dict[GlobalId, UpdateBatch]]:
    """Pieces of at most so many rows, at least one. The largest input comes last: what it is joined
    with is there by then. After it come those whose rows show `at_once`: before, most of what they
    give would have to be taken back."""
    parts: list[dict[GlobalId, UpdateBatch]] = [{}]
    room = most
    in_turn = sorted(inputs.items(), key=lambda item: (item[0] in at_once, len(item[1])))
    for global_id, updates in in_turn:
        for piece in _pieces(to_batch(descs[global_id], updates), room, most):
            if len(piece) > room:
                parts.append({})
                room = most
            parts[-1][global_id] = piece
            room -= len(piece)
    return parts


def _pieces(batch: UpdateBatch, room: int, most: int) -> Iterator[UpdateBatch]:
    """What fits in the room that is left, then the rest."""
    if len(batch) <= room:
        yield batch
        return
    start = 0
    while start < len(batch):
        table = batch.table.slice(start, room or most)
        yield UpdateBatch(batch.desc, table=table, count=table.num_rows)
        start += table.num_rows
        room = most
