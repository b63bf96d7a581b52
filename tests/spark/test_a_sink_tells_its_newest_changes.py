"""Goal: what a sink tells before its shard has it is all of it, or nothing.

Method: ticks are staged, then intervals are asked for and compared with what was staged in them;
whatever leaves a gap must be refused.
"""

import random

from evertide.dataflow.description import ShardExport
from evertide.persist.handle import Appended
from evertide.persist.state import UpperMismatch, WriterMismatch
from evertide.spark.sink import ShardSink
from evertide.spark.takeover.sink import TakeoverSink
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

DESC = RelationDesc((ColumnDesc("a", INT8),))
VIEW = GlobalId("u9")


def sink_at(upper: int) -> ShardSink:
    return ShardSink(VIEW, ShardExport(ShardId("v"), DESC), Timestamp(upper))


def changes_at(ts: int, count: int = 1) -> list[Update]:
    return [Update((ts * 100 + n,), Timestamp(ts), 1) for n in range(count)]


def stage(sink: ShardSink, lower: int, upper: int, updates: list[Update]) -> None:
    sink.stage(updates, Timestamp(upper), lower=Timestamp(lower), still=not updates)


def told(sink: ShardSink, lower: int, upper: int) -> list[Update] | None:
    found = sink.changes(Timestamp(lower), Timestamp(upper))
    return None if found is None else sorted(found.updates(), key=lambda update: update.row)


def test_random_intervals_are_told_whole_or_not_at_all() -> None:
    draw = random.Random(7)
    answered = 0
    for _ in range(300):
        sink, upper, staged = sink_at(10), 10, []
        for _ in range(draw.randint(1, 14)):
            lower, upper = upper, upper + draw.randint(1, 4)
            updates = [
                u for ts in range(lower, upper) if draw.random() < 0.5 for u in changes_at(ts, 2)
            ]
            stage(sink, lower, upper, updates)
            staged += updates
            if draw.random() < 0.3 and (append := sink.due()) is not None:
                sink.settle(append, Appended(append.upper))
        lower = draw.randint(9, upper)
        until = draw.randint(lower, upper + 1)
        found = told(sink, lower, until)
        if found is not None:
            answered += 1
            assert found == [u for u in staged if lower <= u.ts < until]
            assert until <= upper
    assert answered > 100


def test_a_hydration_is_no_change() -> None:
    sink = sink_at(10)
    sink.stage(changes_at(10, 5), Timestamp(11))
    assert told(sink, 10, 11) is None
    stage(sink, 11, 13, changes_at(12))
    assert told(sink, 11, 13) == changes_at(12)
    assert told(sink, 10, 13) is None


def test_a_gap_is_not_told() -> None:
    sink = sink_at(10)
    stage(sink, 10, 12, changes_at(11))
    stage(sink, 14, 15, changes_at(14))
    assert told(sink, 10, 15) is None
    assert told(sink, 14, 15) == changes_at(14)


def test_after_losing_a_race_it_tells_the_same() -> None:
    sink = sink_at(10)
    stage(sink, 10, 12, changes_at(11))
    append = sink.due()
    assert append is not None
    sink.settle(append, UpperMismatch(Timestamp(20)))
    assert told(sink, 10, 12) == changes_at(11)


def test_another_version_s_shard_is_told_nothing_of() -> None:
    sink = sink_at(10)
    stage(sink, 10, 12, changes_at(11))
    append = sink.due()
    assert append is not None
    sink.settle(append, WriterMismatch(GlobalId("u10")))
    assert told(sink, 10, 12) is None


def test_time_that_passes_quietly_pushes_nothing_out() -> None:
    sink = sink_at(10)
    stage(sink, 10, 12, changes_at(11))
    for ts in range(12, 60):
        stage(sink, ts, ts + 1, [])
    assert told(sink, 10, 60) == changes_at(11)


def test_what_is_kept_is_bounded_in_bytes() -> None:
    wide = RelationDesc((ColumnDesc("t", TEXT),))
    sink = ShardSink(VIEW, ShardExport(ShardId("v"), wide), Timestamp(10))
    for ts in range(10, 18):
        rows = [Update(("x" * 100_000 + str(n),), Timestamp(ts), 1) for n in range(10)]
        sink.stage(rows, Timestamp(ts + 1), lower=Timestamp(ts))
    assert sink.changes(Timestamp(17), Timestamp(18)) is not None
    assert sink.changes(Timestamp(10), Timestamp(18)) is None
    rows = [Update(("x" * 100_000 + str(n),), Timestamp(18), 1) for n in range(50)]
    sink.stage(rows, Timestamp(19), lower=Timestamp(18))
    assert sink.changes(Timestamp(18), Timestamp(19)) is None


def test_nothing_is_told_from_below_where_a_sink_began() -> None:
    """It may have been built from further back, while the shard was another version's."""
    sink = sink_at(20)
    sink.stage(changes_at(10), Timestamp(11))
    stage(sink, 11, 25, changes_at(15) + changes_at(22))
    for lower in (11, 15, 20, 22):
        assert told(sink, lower, 25) is None
    stage(sink, 25, 27, changes_at(26))
    assert told(sink, 24, 27) is None
    assert told(sink, 25, 27) == changes_at(26)


def test_a_sink_that_took_a_shard_over_tells_nothing_from_before() -> None:
    """A reader who knows the shard from before it changed hands would add changes of the new
    definition to contents of the old one."""
    staged = TakeoverSink(VIEW, ShardExport(ShardId("v"), DESC), Timestamp(10))
    staged.stage(changes_at(10), Timestamp(11))
    staged.stage(changes_at(15) + changes_at(22), Timestamp(25), lower=Timestamp(11))
    sink = staged.ordinary(Timestamp(20))
    append = sink.due()
    assert append is not None
    assert (append.lower, append.upper) == (20, 25)
    assert list(append.updates) == changes_at(22), "which is still to be written"
    for lower in (11, 15, 20, 22):
        assert told(sink, lower, 25) is None
    stage(sink, 25, 27, changes_at(26))
    for lower in (11, 20, 24):
        assert told(sink, lower, 27) is None
    assert told(sink, 25, 27) == changes_at(26)
