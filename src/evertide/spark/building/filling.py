"""A dataflow's state by ticks from nothing: its inputs' contents, a piece at a time.

Pieces bound what a tick holds in memory. They come as if at timestamps of their own, the last of
them at the one that the state is for; nobody sees what was before, so that only the sum counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.persist.coding.batch import UpdateBatch, concat_batches, to_batch
from evertide.spark.channel import input_descs
from evertide.spark.engine import Engine
from evertide.spark.operators.changes import delta_of, updates_of
from evertide.spark.operators.delta import consolidated
from evertide.spark.tables import desc_of
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp, step_forward
from evertide.vocab.update import Update

Inputs: TypeAlias = Mapping[GlobalId, Sequence[Update]]

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
    parts = cut(inputs, input_descs(plan), PIECE_ROWS)
    first = Timestamp(start + 1 - len(parts))
    await engine.create(dataflow_id, plan, index_key=index_key, as_of=first, whole_from=start)
    desc = desc_of(plan.types)
    outputs: list[UpdateBatch] = []
    for number, part in enumerate(parts):
        now = Timestamp(first + number)
        given = {g: batch.moved(now) for g, batch in part.items()}
        ticked = await engine.tick(dataflow_id, given, now, step_forward(now))
        outputs.append(to_batch(desc, ticked).moved(start))
    whole = delta_of(concat_batches(desc, outputs))
    return updates_of(consolidated(whole, plan.types), plan.types)


def cut(
    inputs: Inputs, descs: Mapping[GlobalId, RelationDesc], most: int
) -> list[dict[GlobalId, UpdateBatch]]:
    """Pieces of at most so many rows, at least one. The largest input comes last: what it is joined
    with is there by then."""
    parts: list[dict[GlobalId, UpdateBatch]] = [{}]
    room = most
    for global_id, updates in sorted(inputs.items(), key=lambda item: len(item[1])):
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
