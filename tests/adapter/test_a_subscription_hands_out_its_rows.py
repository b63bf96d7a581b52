"""A subscription's rows as clients take them: in parts, up to its end or its error."""

from collections.abc import Sequence

import pytest

from evertide.adapter.subscribe.feed import Batch
from evertide.adapter.subscribe.rows import ChangeRows
from evertide.adapter.subscribe.stream import Subscription
from evertide.expr.relation import Get
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
    """A source of these batches; asked for more, the test is wrong."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = list(batches)
        self.closed = 0

    async def next_batch(self) -> Batch:
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
