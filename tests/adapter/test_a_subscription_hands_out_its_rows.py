"""A subscription's rows as clients take them: in parts, up to its end or its error."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from evertide.adapter.subscribe.feed import Batch
from evertide.adapter.subscribe.rows import ChangeRows
from evertide.adapter.subscribe.stream import Subscription
from evertide.expr.relation import Get
from evertide.persist.faults import StoreFailing
from evertide.sql.plan.plans import DiffForm, SubscribePlan
from evertide.vocab.datum import Row
from evertide.vocab.errors import DivisionByZero, SqlError, encode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4, INT8
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from evertide.vocab.update import Update

COLUMNS = relation_desc(("a", INT4))


class Scripted:
    """A source of these batches; asked for more, the test is wrong.

    Until the gate opens a batch is being read; a read that is cancelled begins anew.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = list(batches)
        self.closed = 0
        self.begun = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None

    async def next_batch(self) -> Batch:
        self.begun += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return self.batches.pop(0)

    def fail(self, failure: SqlError) -> None:
        raise AssertionError(failure)

    def close(self) -> None:
        self.closed += 1


def changes(upper: int, *told: tuple[int, int]) -> Batch:
    """Insertions as (ts, value)."""
    return Batch([Update((a,), Timestamp(ts), 1) for ts, a in told], Timestamp(upper))


def following(
    *batches: Batch, up_to: int | None = None, progress: bool = False
) -> tuple[Subscription, Scripted]:
    plan = SubscribePlan(
        relation=Get(GlobalId("u1"), COLUMNS.types),
        columns=COLUMNS,
        desc=relation_desc(*((f"c{i}", INT8) for i in range(3 + progress))),
        depends_on=(),
        form=DiffForm(),
        snapshot=True,
        progress=progress,
        as_of=None,
        at_least=False,
        up_to=None,
    )
    source = Scripted(batches)
    end = None if up_to is None else Timestamp(up_to)
    return Subscription(source, ChangeRows(plan), as_of=Timestamp(5), up_to=end), source


async def test_rows_come_in_parts_and_end() -> None:
    stream, _ = following(changes(6, (5, 1), (5, 2), (5, 3)), changes(EMPTY_FRONTIER, (7, 4)))
    assert not stream.ready
    assert await stream.take(2) == [(5, 1, 1), (5, 1, 2)]
    assert stream.ready
    assert await stream.take(2) == [(5, 1, 3)]
    assert not stream.ready
    assert await stream.take(None) == [(7, 1, 4)]
    assert await stream.take(None) is None
    assert await stream.take(None) is None


async def test_nothing_at_or_beyond_the_end_is_told() -> None:
    stream, source = following(
        changes(6, (5, 1)), changes(20, (8, 2), (9, 3), (10, 4), (12, 5)), up_to=10, progress=True
    )
    rows: list[Row] = []
    while (taken := await stream.take(None)) is not None:
        rows += taken
    nothing = (None, None)
    assert rows == [
        (5, True, *nothing), (5, False, 1, 1), (6, True, *nothing),
        (8, False, 1, 2), (9, False, 1, 3), (10, True, *nothing),
    ]  # fmt: skip
    assert source.batches == []


async def test_an_end_that_is_the_beginning_tells_nothing() -> None:
    stream, _ = following(up_to=5)
    assert await stream.take(None) is None


async def test_rows_before_an_error_are_told_before_it() -> None:
    error = Update((), Timestamp(6), 1, encode_error(DivisionByZero("division by zero")))
    batch = Batch([*changes(0, (5, 1), (5, 2)).updates, error], Timestamp(9))
    stream, _ = following(batch)
    assert await stream.take(None) == [(5, 1, 1), (5, 1, 2)]
    for _ in range(2):
        with pytest.raises(SqlError, match="division by zero"):
            await stream.take(None)


async def test_many_rows_are_made_in_pieces() -> None:
    stream, _ = following(changes(6, *((5, i) for i in range(2_500))), changes(EMPTY_FRONTIER))
    sizes = []
    while (taken := await stream.take(None)) is not None:
        sizes.append(len(taken))
    assert sizes == [1_000, 1_000, 500]


async def test_closing_ends_it_once() -> None:
    stream, source = following(changes(6, (5, 1), (5, 2)))
    ended: list[bool] = []
    stream.on_close = lambda: ended.append(True)
    await stream.take(1)
    stream.close()
    stream.close()
    assert await stream.take(None) is None
    assert ended == [True]
    assert source.closed >= 1


async def test_a_batch_that_takes_longer_than_who_waits_is_read_once() -> None:
    stream, source = following(changes(6, (5, 1)))
    source.gate.clear()
    for timeout_s in (0.01, 0, 0.01):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await stream.take(None)
    assert source.begun == 1
    source.gate.set()
    await asyncio.sleep(0.01)
    async with asyncio.timeout(0):
        assert await stream.take(None) == [(5, 1, 1)]


async def test_closing_ends_a_read_and_who_waits_for_it() -> None:
    stream, source = following(changes(6, (5, 1)))
    source.gate.clear()
    waiting = asyncio.create_task(stream.take(None))
    await asyncio.sleep(0.01)
    others = asyncio.all_tasks() - {waiting, asyncio.current_task()}
    stream.close()
    assert await asyncio.wait_for(waiting, 5) is None
    await asyncio.sleep(0)
    assert [task.cancelled() for task in others] == [True], "the read"


async def test_a_cancel_does_not_wait_for_the_read() -> None:
    stream, source = following(changes(6, (5, 1)))
    source.gate.clear()
    waiting = asyncio.create_task(stream.take(None))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    stream.close()


async def test_a_read_that_fails_when_nobody_waits_is_no_oversight() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    stream, source = following()
    source.gate.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await stream.take(None)
    source.failure = DivisionByZero("division by zero")
    source.gate.set()
    await asyncio.sleep(0.01)
    del stream
    gc.collect()
    await asyncio.sleep(0.01)
    assert complaints == []


async def test_what_it_reads_is_let_go_at_its_end() -> None:
    stream, source = following(changes(20, (8, 1), (12, 2)), up_to=10)
    ended: list[bool] = []
    stream.on_close = lambda: ended.append(True)
    assert await stream.take(1) == [(8, 1, 1)]
    assert source.closed
    assert ended == [True]
    assert await stream.take(1) is None


async def test_what_it_reads_is_let_go_with_an_error() -> None:
    """The error stays: a source that is closed could not tell it again."""
    error = Update((), Timestamp(6), 1, encode_error(DivisionByZero("division by zero")))
    in_rows, rows = following(Batch([*changes(0, (5, 1)).updates, error], Timestamp(9)))
    assert await in_rows.take(1) == [(5, 1, 1)]
    from_source, source = following()
    source.failure = StoreFailing("planted")
    for _ in range(2):
        with pytest.raises(SqlError, match="division by zero"):
            await in_rows.take(1)
        with pytest.raises(StoreFailing):
            await from_source.take(1)
    assert rows.closed
    assert source.closed
    assert (rows.begun, source.begun) == (1, 1)


async def test_who_begins_at_the_end_holds_nothing() -> None:
    stream, source = following(up_to=5)
    assert await stream.take(None) is None
    assert source.closed
