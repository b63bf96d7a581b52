"""Goal: what a replacement would change is known exactly, and costs memory for what differs alone.

Method: random contents and random changes of two sides, some rows equal and some only almost, are
added up in any order, by rows and by columns, and compared with a model.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from random import Random

import pytest

from evertide.dataflow.description import ShardExport
from evertide.persist.coding.batch import to_batch
from evertide.persist.handle import Appended
from evertide.persist.state import PendingWrite, UpperMismatch, WriterMismatch
from evertide.spark.takeover import difference as module
from evertide.spark.takeover.difference import Difference, compare, row_bytes
from evertide.spark.takeover.phases import Chosen, Done, Frozen, Waiting
from evertide.spark.takeover.sink import MASKED, MOST_AHEAD_ROWS, Comparison, TakeoverSink
from evertide.vocab.datum import Interval, Row
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT8, INTERVAL, NUMERIC, TEXT, array_of
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(
    ("a", INT8), ("b", FLOAT8), ("c", NUMERIC), ("d", array_of(INT8)), ("e", INTERVAL), ("f", TEXT)
)
ROWS: list[Row] = [
    (1, 0.0, Decimal("1"), (1, None), Interval(1, 0, 0), "x"),
    (1, -0.0, Decimal("1"), (1, None), Interval(1, 0, 0), "x"),
    (1, 0.0, Decimal("1.5"), (1, None), Interval(1, 0, 0), "x"),
    (1, math.nan, Decimal("NaN"), (), Interval(0, 30, 0), None),
    (1, math.nan, Decimal("NaN"), None, Interval(0, 30, 0), None),
    (2, 0.5, None, (), None, ""),
    (None, None, None, None, None, None),
]
ERRORS = ('["22012","division by zero"]', '["22003","out of range"]')


def random_updates(draw: Random, count: int) -> list[Update]:
    found = []
    for _ in range(count):
        ts, diff = Timestamp(draw.randrange(5)), draw.choice([1, 1, 2, -1])
        if draw.random() < 0.1:
            found.append(Update((), ts, diff, draw.choice(ERRORS)))
        else:
            found.append(Update(draw.choice(ROWS), ts, diff))
    return found


def model(new: Sequence[Update], old: Sequence[Update]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for sign, side in ((1, new), (-1, old)):
        for row, _, diff, error in side:
            sums[repr((row, error))] += sign * diff
    return Counter({key: diff for key, diff in sums.items() if diff})


def shown(difference: Difference) -> Counter[str]:
    found = difference.updates(Timestamp(9))
    assert {update.ts for update in found} <= {9}
    return Counter({repr((u.row, u.error)): u.diff for u in found})


def check(difference: Difference, expected: Counter[str]) -> None:
    assert shown(difference) == expected
    assert len(difference) == len(expected), "nothing is kept of what does not differ"
    assert difference.inserted.records == sum(d for d in expected.values() if d > 0)
    assert difference.deleted.records == -sum(d for d in expected.values() if d < 0)
    sizes = [
        (u.diff, len(u.error) if u.error else row_bytes(u.row))
        for u in difference.updates(Timestamp(9))
    ]
    assert difference.inserted.size_bytes == sum(d * size for d, size in sizes if d > 0)
    assert difference.deleted.size_bytes == -sum(d * size for d, size in sizes if d < 0)


@pytest.mark.parametrize("seed", range(100))
def test_sums_are_exact_in_any_order(seed: int) -> None:
    draw = Random(seed)
    new, old = (random_updates(draw, draw.randrange(30)) for _ in range(2))
    pieces = [(1, [u]) for u in new] + [(-1, [u]) for u in old]
    draw.shuffle(pieces)
    difference = Difference(DESC)
    for sign, updates in pieces:
        difference.add(to_batch(DESC, updates), sign)
    check(difference, model(new, old))


@pytest.mark.parametrize("seed", range(40))
def test_whole_contents_are_compared_by_columns(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A share of the rows at a time: what cancels must meet in the same share."""
    draw = Random(seed)
    monkeypatch.setattr(module, "STEP_ROWS", draw.choice([1, 3, 16, 1_000]))
    new, old = (random_updates(draw, draw.randrange(60)) for _ in range(2))
    half = draw.randrange(len(new) + 1)
    batches = [to_batch(DESC, new[:half]), to_batch(DESC, new[half:])]
    check(compare(DESC, batches, to_batch(DESC, old)), model(new, old))


def test_equal_contents_differ_in_nothing() -> None:
    desc = relation_desc(("a", INT8), ("b", TEXT))
    rows = [Update((i, f"row {i}"), Timestamp(3), 1) for i in range(3_000)]
    moved = [u._replace(ts=Timestamp(7)) for u in reversed(rows)]
    assert len(compare(desc, [to_batch(desc, rows)], to_batch(desc, moved))) == 0


ONE = relation_desc(("a", INT8))
NEW = GlobalId("u2")


class NoHold:
    """History that nobody holds."""

    def release(self) -> None:
        """Nothing."""


def staged_sink() -> TakeoverSink:
    """Frozen at 10; the new contents begin at 12, and there is more beyond."""
    sink = TakeoverSink(NEW, ShardExport(ShardId("v"), ONE), Timestamp(10))
    sink.stage([Update((1,), Timestamp(5), 1)], Timestamp(6))
    later = [Update((2,), Timestamp(12), 1), Update((3,), Timestamp(14), 1)]
    sink.stage(later, Timestamp(15), lower=Timestamp(6))
    return sink


def compared(sink: TakeoverSink, old_below: int, new_below: int) -> None:
    difference = Difference(ONE)
    for batch in sink.output.between(Timestamp(0), Timestamp(new_below)):
        difference.add(batch, 1)
    difference.add(to_batch(ONE, [Update((1,), Timestamp(5), 1)]), -1)
    sink.comparison = Comparison(
        difference,
        Timestamp(old_below),
        Timestamp(new_below),
        NoHold(),  # type: ignore[arg-type]
    )
    sink.taken_up()


def test_nothing_is_written_before_its_time() -> None:
    sink = staged_sink()
    assert sink.due() is None
    compared(sink, 10, 13)
    for phase in (
        Waiting(Timestamp(9), forward_time=False),
        Frozen(Timestamp(10), Timestamp(9), forward_time=False),
        Chosen(Timestamp(11), Timestamp(12), Timestamp(12)),  # compared with less than is stored
        Chosen(Timestamp(10), Timestamp(13), Timestamp(13)),
    ):
        sink.phase = phase
        assert sink.due() is None
    sink.phase = Chosen(Timestamp(10), Timestamp(12), Timestamp(12))
    append = sink.due()
    assert append is not None
    assert (append.lower, append.upper, append.completes_pending) == (10, 13, True)
    assert list(append.updates) == [Update((2,), Timestamp(12), 1)]


@pytest.mark.parametrize("first", [True, False])
def test_whoever_brought_the_contents_over_it_goes_on_from_there(first: bool) -> None:
    sink = staged_sink()
    compared(sink, 10, 13)
    sink.phase = Chosen(Timestamp(10), Timestamp(12), Timestamp(12))
    append = sink.due()
    assert append is not None
    upper = Timestamp(13 if first else 15)
    sink.settle(append, Appended(upper) if first else UpperMismatch(upper))
    assert repr(sink.phase) == repr(Done(upper))
    assert sink.due() is None
    ordinary = sink.ordinary(upper)
    following = ordinary.due()
    if first:
        assert following is not None
        assert (following.lower, following.upper, following.completes_pending) == (13, 15, False)
        assert list(following.updates) == [Update((3,), Timestamp(14), 1)]
    else:
        assert following is None


@pytest.mark.parametrize("refusal", [WriterMismatch(GlobalId("u3")), PendingWrite(Timestamp(9))])
def test_one_that_lost_the_shard_stops(refusal: WriterMismatch | PendingWrite) -> None:
    sink = staged_sink()
    compared(sink, 10, 13)
    sink.phase = Chosen(Timestamp(10), Timestamp(12), Timestamp(12))
    append = sink.due()
    assert append is not None
    sink.settle(append, refusal)
    assert sink.stopped == type(refusal).__name__
    assert sink.due() is None


def test_an_interval_that_nobody_computed_is_masked() -> None:
    sink = staged_sink()
    compared(sink, 10, 13)
    sink.phase = Chosen(Timestamp(10), Timestamp(12), Timestamp(11))
    append = sink.due()
    assert append is not None
    masks = [update for update in append.updates if update.error is not None]
    assert masks == [
        Update((), Timestamp(11), 1, MASKED),
        Update((), Timestamp(12), -1, MASKED),
    ]


def test_it_waits_for_a_view_that_is_far_behind() -> None:
    sink = staged_sink()
    assert not sink.ahead
    sink.output.ahead_rows = MOST_AHEAD_ROWS + 1
    assert sink.ahead
    sink.phase = Waiting(Timestamp(9), forward_time=False)
    assert sink.ahead
    # From here on the view is not waited for, or cannot go on before this one has.
    for phase in (
        Waiting(Timestamp(9), forward_time=True),
        Frozen(Timestamp(10), Timestamp(9), forward_time=False),
        Chosen(Timestamp(10), Timestamp(12), Timestamp(12)),
    ):
        sink.phase = phase
        assert not sink.ahead


async def test_what_is_compared_in_the_background_ends_with_it() -> None:
    sink = staged_sink()
    never: asyncio.Future[Comparison] = asyncio.get_running_loop().create_future()

    async def wait() -> Comparison:
        return await never

    sink.comparing = task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    sink.close()
    await asyncio.wait([task])
    assert task.cancelled()
