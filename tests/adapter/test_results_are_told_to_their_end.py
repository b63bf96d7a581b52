"""Goal: the rows of a large query are those that the interpreter would tell, in the same order, cut
at the same places, however they were cut into batches and however they are taken; and never fewer
without an error.

Method: batches that the test makes of random rows, at random borders, beside `finish`.
"""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from evertide.adapter.reading.result_rows import PIECE_ROWS, Batch, Finisher
from evertide.adapter.reading.result_stream import ResultStream, drain
from evertide.expr.interpret import Collection, finish
from evertide.expr.relation import Finishing, OrderKey
from evertide.persist.coding.arrow_inline import encode_arrow
from evertide.persist.coding.inline import encode_inline
from evertide.persist.coding.parts import columns_to_table
from evertide.persist.coding.updates import to_columns
from evertide.vocab.datum import Row
from evertide.vocab.errors import DivisionByZero, IoError, SqlError, encode_error
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4, INT8, NUMERIC, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

TYPES = (INT4, TEXT, NUMERIC)
DESC = relation_desc(("c0", INT4), ("c1", TEXT), ("c2", NUMERIC))
AS_OF = Timestamp(7)
PATIENCE_S = 10

Counted = tuple[Row, int]


@dataclass
class Batches:
    """A result's batches, and what keeps the last ones from coming, if anything does."""

    left: list[bytes]
    failure: SqlError | None = None
    asked: int = 0
    closed: int = 0
    # Each batch takes so many turns of the event loop to come.
    turns: int = 0

    async def next_batch(self) -> bytes | None:
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.asked += 1
        if self.left:
            return self.left.pop(0)
        if self.failure is not None:
            raise self.failure
        return None

    def close(self) -> None:
        self.closed += 1


def encoded(counted: Sequence[Counted], *, in_columns: bool = True) -> bytes:
    updates = [Update(row, AS_OF, count) for row, count in counted]
    if in_columns:
        return encode_arrow(columns_to_table(DESC, to_columns(updates)))
    return encode_inline(updates)


def numbered(values: Iterable[int], count: int = 1) -> list[Counted]:
    return [((value, f"row {value}", None), count) for value in values]


def stream_of(
    parts: Sequence[Sequence[Counted]], finishing: Finishing | None = None
) -> tuple[ResultStream, Batches]:
    batches = Batches([encoded(part) for part in parts])
    return ResultStream(batches, Finisher(finishing or Finishing(), TYPES)), batches


def random_rows(rng: random.Random) -> list[Counted]:
    def row() -> Row:
        number = rng.choice([None, rng.randrange(20)])
        return (number, rng.choice([None, "a", "é", "b" * rng.randrange(30)]), None)

    return [
        (row(), rng.choice([1, 1, 1, 2, rng.randrange(1, 3_000)])) for _ in range(rng.randrange(40))
    ]


def random_finishing(rng: random.Random) -> Finishing:
    order = tuple(
        OrderKey(column, rng.random() < 0.5, rng.random() < 0.5)
        for column in rng.sample(range(3), rng.randrange(3))
    )
    limit = rng.choice([None, 0, 1, rng.randrange(50), rng.randrange(5_000)])
    offset = rng.choice([0, 0, 1, rng.randrange(5_000)])
    project = rng.choice([None, (), (1,), (2, 0), (0, 1, 0)])
    return Finishing(order, limit, offset, project)


def random_parts(rng: random.Random, rows: Sequence[Row]) -> list[bytes]:
    """The rows in this order, neighbours that are the same mostly counted together."""
    parts: list[bytes] = []
    at = 0
    while at < len(rows) or rng.random() < 0.2:
        taken = rows[at : at + rng.choice([0, 1, 10, 5_000, 50_000])]
        at += len(taken)
        counted: list[Counted] = []
        for row in taken:
            if counted and counted[-1][0] == row and rng.random() < 0.999:
                counted[-1] = row, counted[-1][1] + 1
            else:
                counted.append((row, 1))
        # The other form keeps no order among rows that are there differently often.
        plain = len({count for _, count in counted}) <= 1 and rng.random() < 0.5
        parts.append(encoded(counted, in_columns=not plain))
    return parts


async def taken_at_random(rng: random.Random, stream: ResultStream) -> list[Row]:
    """All rows, some at a time; some waits are given up, and begun anew."""
    found: list[Row] = []
    while True:
        most = rng.choice([None, 1, 7, 2_000])
        taking = asyncio.ensure_future(stream.take(most))
        for _ in range(rng.randrange(6)):
            await asyncio.sleep(0)
        if not taking.done() and rng.random() < 0.5:
            taking.cancel()
        try:
            taken = await taking
        except asyncio.CancelledError:
            continue
        if taken is None:
            return found
        assert 1 <= len(taken) <= min(most or PIECE_ROWS, PIECE_ROWS)
        found += taken


@pytest.mark.parametrize("seed", range(150))
async def test_any_result_is_told_as_the_interpreter_tells_it(seed: int) -> None:
    rng = random.Random(seed)
    rows, finishing = random_rows(rng), random_finishing(rng)
    ordered = finish(Collection(rows), Finishing(finishing.order), TYPES)
    expected = finish(Collection(rows), finishing, TYPES)
    most = None if finishing.limit is None else finishing.offset + finishing.limit
    more = 0 if most is None else rng.randrange(10)
    wanted = ordered if most is None else ordered[: most + more]
    batches = Batches(random_parts(rng, wanted), turns=rng.randrange(4))
    stream = ResultStream(batches, Finisher(finishing, TYPES))
    found = await taken_at_random(rng, stream)
    assert await stream.take(None) is None
    assert batches.closed
    if finishing.order:
        assert found == expected
    else:
        assert len(found) == len(expected)
        project = finishing.project or ((0, 1, 2) if finishing.project is None else ())
        there = Counter(tuple(row[column] for column in project) for row in ordered)
        assert not Counter(found) - there


@pytest.mark.parametrize("offset", [0, 1_000_000_000 - 2, 3_000_000_000 - 4])
async def test_a_row_that_is_there_very_often_is_never_all_in_memory(offset: int) -> None:
    often = numbered(range(3), 1_000_000_000)
    stream, _ = stream_of([often[:1], often[1:]], Finishing(offset=offset, limit=5))
    found = await drain(stream)
    expected = {
        0: [0] * 5,
        1_000_000_000 - 2: [0, 0, 1, 1, 1],
        3_000_000_000 - 4: [2] * 4,
    }
    assert [row[0] for row in found] == expected[offset]
    everything, _ = stream_of([often])
    taken = await everything.take(None)
    assert taken is not None
    assert len(taken) == PIECE_ROWS


async def test_no_batch_is_asked_for_before_the_one_before_is_told() -> None:
    stream, batches = stream_of([numbered(range(2_500)), numbered(range(2_500, 3_000))])
    found: list[Row] = []
    while len(found) < 2_500:
        found += await stream.take(1_000) or ()
        assert batches.asked == 1
        assert stream.ready == (len(found) < 2_500)
    found += await stream.take(None) or ()
    assert batches.asked == 2
    assert [row[0] for row in found] == list(range(3_000))


async def test_the_rest_is_forgotten_once_the_limit_is_reached() -> None:
    stream, batches = stream_of([numbered(range(4)), numbered(range(9))], Finishing(limit=4))
    assert len(await stream.take(None) or ()) == 4
    assert (batches.asked, batches.closed) == (1, 1)
    assert await stream.take(None) is None
    assert batches.asked == 1
    nothing, unasked = stream_of([numbered(range(4))], Finishing(limit=0))
    assert await nothing.take(None) is None
    assert (unasked.asked, unasked.closed) == (0, 1)


async def test_what_keeps_the_rest_from_coming_is_told_after_what_came_and_never_as_the_end() -> (
    None
):
    stream, batches = stream_of([numbered(range(5))])
    batches.failure = IoError("the replica that holds the result went away")
    assert len(await stream.take(None) or ()) == 5
    for _ in range(2):
        with pytest.raises(IoError):
            await stream.take(None)
    stream.close()
    with pytest.raises(IoError):
        await stream.take(None)


async def test_what_was_given_up_is_not_at_its_end() -> None:
    for taken in (0, 3):
        stream, batches = stream_of([numbered(range(5)), numbered(range(5))])
        if taken:
            await stream.take(taken)
        for _ in range(2):
            stream.close()
        assert not stream.ready
        assert batches.closed
        with pytest.raises(SqlError, match="given up") as caught:
            await stream.take(None)
        assert caught.value.code == "55000"
    ended, _ = stream_of([numbered(range(5))])
    assert len(await drain(ended)) == 5
    ended.close()
    assert await ended.take(None) is None


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (encode_inline([Update((), AS_OF, 1, encode_error(DivisionByZero("division by zero")))]),
         "22012"),
        (encode_arrow(columns_to_table(DESC, to_columns(
            [Update((), AS_OF, 1, encode_error(DivisionByZero("division by zero")))]))), "22012"),
        (encoded(numbered(range(3), -1)), "XX000"),
        (encoded(numbered(range(3)))[:-40], "XX001"),
        (b"\x09?", "XX001"),
    ],
    ids=["error", "error in columns", "negative", "cut off", "unknown"],
)  # fmt: skip
async def test_a_batch_that_is_none_is_an_error(payload: bytes, code: str) -> None:
    batches = Batches([payload, encoded(numbered(range(3)))])
    stream = ResultStream(batches, Finisher(Finishing(), TYPES))
    for _ in range(2):
        with pytest.raises(SqlError) as caught:
            await stream.take(None)
        assert caught.value.code == code
    assert batches.closed


@dataclass
class Slow(Finisher):
    """Decodes when the test lets it."""

    let: threading.Event = field(default_factory=threading.Event)
    on_threads: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(Finishing(), TYPES)

    def decode(self, payload: bytes) -> Batch:
        self.on_threads.append(threading.get_ident())
        assert self.let.wait(PATIENCE_S)
        return super().decode(payload)


async def test_a_large_batch_is_decoded_beside_the_loop_and_only_once() -> None:
    finisher = Slow()
    batches = Batches([encoded(numbered(range(20_000)))])
    assert len(batches.left[0]) > 100_000
    stream = ResultStream(batches, finisher)
    for _ in range(3):
        taking = asyncio.create_task(stream.take(None))
        while not finisher.on_threads:
            await asyncio.sleep(0.001)
        taking.cancel()
        await asyncio.wait([taking])
    finisher.let.set()
    assert len(await asyncio.wait_for(drain(stream), PATIENCE_S)) == 20_000
    (thread,) = finisher.on_threads
    assert thread != threading.get_ident()
    assert finisher.decode(encoded(numbered([1]))).counts.tolist() == [1]


async def test_a_stream_that_is_closed_while_it_decodes_leaves_nothing_behind() -> None:
    finisher = Slow()
    stream = ResultStream(Batches([encoded(numbered(range(20_000)))]), finisher)
    taking = asyncio.create_task(stream.take(None))
    while not finisher.on_threads:
        await asyncio.sleep(0.001)
    taking.cancel()
    await asyncio.wait([taking])
    stream.close()
    finisher.let.set()
    with pytest.raises(SqlError, match="given up"):
        await stream.take(None)


def test_weights_are_those_of_the_rows_that_are_wanted() -> None:
    def weight(rows: int, size: int, **cut: int) -> int:
        return Finisher(Finishing(**cut), (INT8,)).weight_of(rows, size)  # type: ignore[arg-type]

    whole = weight(1_000, 50_000)
    assert whole > 50_000 + 1_000 * 40
    assert weight(1_000, 50_000, offset=500) == whole // 2
    assert weight(1_000, 50_000, offset=500, limit=250) == whole // 4
    assert weight(1_000, 50_000, offset=1_000) == weight(0, 0) == 0
    assert weight(1_000_000_000, 100) > 10_000_000_000
