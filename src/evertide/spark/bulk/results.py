"""A query's result on its way to whoever asked: batches in order, one in memory at a time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from evertide.expr.interpret import in_finishing_order
from evertide.expr.relation import OrderKey, Relation
from evertide.persist.coding.inline import encode_inline
from evertide.spark.building.result_files import read_frames
from evertide.spark.bulk.host import Finished
from evertide.spark.engine import Peeked
from evertide.vocab.errors import decode_error
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# Interpreted rows that are encoded together.
_BATCH_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Select:
    """What is asked: see dataflow/protocol.SelectCommand."""

    relation: Relation
    order: tuple[tuple[int, bool, bool], ...] = ()
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """Rows with positive multiplicities, in so many payloads, which may be read once."""

    batches: int
    rows: int
    size_bytes: int
    payloads: AsyncIterator[bytes]


def written_result(finished: Finished) -> Result:
    """What a job's tasks have written; raises the SqlError that the result is."""
    if finished.done.error is not None:
        raise decode_error(finished.done.error)
    files = finished.done.files
    return Result(
        sum(file.batches for file in files),
        sum(file.rows for file in files),
        sum(file.bytes for file in files),
        _read_files(finished),
    )


def interpreted_result(select: Select, peeked: Peeked, as_of: Timestamp) -> Result:
    """The same of rows that are at hand."""
    order = tuple(OrderKey(*key) for key in select.order)
    counted = in_finishing_order(peeked.rows, peeked.errors, order, select.relation.types)
    updates = [Update(row, as_of, count) for row, count in counted]
    pieces = [updates[i : i + _BATCH_ROWS] for i in range(0, len(updates), _BATCH_ROWS)]
    return Result(len(pieces), len(updates), 0, _encode(pieces))


async def _read_files(finished: Finished) -> AsyncIterator[bytes]:
    for file in finished.done.files:
        frames = read_frames(finished.directory / file.name)
        while (payload := await asyncio.to_thread(next, frames, None)) is not None:
            yield payload


async def _encode(pieces: Sequence[Sequence[Update]]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield await asyncio.to_thread(encode_inline, piece)
