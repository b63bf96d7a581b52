"""Goal: a GROUP BY that goes row by row gives, at every timestamp, what it gives by columns.

Method: the same random ticks, some of several timestamps, go to three evaluators: by rows, by
columns, and by either in turn. All aggregates that are kept differently are there, over values of
which many are equal or NULL, and in groups that come and go.
"""

from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.relation import AggregateCall, Reduce
from evertide.spark.evaluate import Evaluator
from evertide.spark.operators.grouping import live_group
from evertide.vocab.datum import EMPTY_RANGE, Datum, Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import FLOAT8, INT8, NUMERIC, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr import sample
from tests.expr.sample import agg, col, table

T, DATAFLOW = GlobalId("t"), GlobalId("d")
TYPES = (TEXT, INT8, INT8, NUMERIC, FLOAT8, TEXT, sample.SPAN)
AGGREGATES: tuple[AggregateCall, ...] = (
    agg(sample.COUNT),
    agg(sample.COUNT_INT, col(2)),
    agg(sample.SUM_INT, col(2)),
    agg(sample.SUM_NUMERIC, col(3, NUMERIC)),
    agg(sample.SUM_FLOAT, col(4, FLOAT8)),
    agg(sample.COUNT_INT, col(2), distinct=True),
    agg(sample.SUM_NUMERIC, col(3, NUMERIC), distinct=True),
    agg(sample.MIN_INT, col(2)),
    agg(sample.MAX_INT, col(2)),
    agg(sample.MAX_FLOAT, col(4, FLOAT8)),
    agg(sample.MAX_TEXT, col(5, TEXT)),
    agg(sample.STRING_AGG, col(5, TEXT)),
    agg(sample.ONLY_INT, col(2)),
)
BY_ROWS, BY_COLUMNS = 1_000_000, 1


@pytest.mark.parametrize("seed", range(40))
def test_the_same_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = Random(seed)
    monkeypatch.setattr(live_group, "LARGE_GROUP", rng.choice([2, 2_000]))
    span = col(6, sample.SPAN)
    keys = ((col(0, TEXT),), (col(0, TEXT), col(1)), (), (span,), (col(0, TEXT), span))[seed % 5]
    chosen = tuple(rng.sample(AGGREGATES, rng.randrange(1, 5)))
    plan = delta_plan(Reduce(table("t", *TYPES), keys, chosen))
    evaluators = [Evaluator(tmp_path / str(i), spill_records=rng.choice([5, 500])) for i in "abc"]
    for evaluator in evaluators:
        evaluator.create(DATAFLOW, plan, index_key=None, as_of=Timestamp(1))
    live: list[Row] = []
    now = 1
    for tick in range(25):
        upper = now + rng.randrange(1, 4)
        updates = random_changes(rng, live, now, upper)
        told: list[Counter[str]] = []
        ways = (BY_ROWS, BY_COLUMNS, (BY_ROWS, BY_COLUMNS)[tick % 2])
        for evaluator, wide in zip(evaluators, ways, strict=True):
            with monkeypatch.context() as patched:
                patched.setattr("evertide.spark.operators.delta.WIDE_ROWS", wide)
                output = evaluator.tick(DATAFLOW, {T: updates}, Timestamp(now), Timestamp(upper))
                told.append(netted(output))
        assert told[0] == told[1] == told[2], f"in tick {tick}"
        now = upper
    for evaluator in evaluators:
        evaluator.close()


def random_changes(rng: Random, live: list[Row], lower: int, upper: int) -> list[Update]:
    """In the order of time, so that nothing goes before it came."""
    updates: list[Update] = []
    for ts in range(lower, upper):
        for _ in range(rng.randrange(7)):
            if live and rng.random() < 0.5:
                updates.append(Update(live.pop(rng.randrange(len(live))), Timestamp(ts), -1))
            else:
                live.append(random_row(rng))
                updates.append(Update(live[-1], Timestamp(ts), 1))
    return updates


def random_row(rng: Random) -> Row:
    choices: tuple[list[Datum], ...] = (
        ["a", "b", None],
        [1, 2],
        [0, 1, 5, -7, 2**40, None],
        [Decimal("1.5"), Decimal("1.50"), Decimal("NaN"), Decimal(0), None],
        [0.0, -0.0, 1.5, float("nan"), float("inf"), None],
        ["x", "y", "", None],
        [EMPTY_RANGE, (1, 5, True, False), (None, 5, False, False), None],
    )
    return tuple([rng.choice(values) for values in choices])


def netted(updates: object) -> Counter[str]:
    """Changes by timestamp; a numeric is its value, whatever its digits."""
    counts: Counter[str] = Counter()
    for row, ts, diff, error in updates:  # type: ignore[attr-defined]
        plain = [d.normalize() if isinstance(d, Decimal) and d.is_finite() else d for d in row]
        counts[repr((plain, int(ts), error))] += diff
    return Counter({name: count for name, count in counts.items() if count})
