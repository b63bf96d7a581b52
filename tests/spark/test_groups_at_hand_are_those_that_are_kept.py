"""Goal: rows of state that are kept at hand never differ from those in the arrangement.

Method: sums by group under random changes, some ticks so wide that they go by columns, with room at
hand for few groups only; after every tick what was told adds up to the sums of a plain model.
"""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.relation import Reduce
from evertide.spark.arrangements.key_parts import KeyParts
from evertide.spark.evaluate import Evaluator
from evertide.spark.operators.delta import WIDE_ROWS
from evertide.spark.operators.grouping import reduce_rows
from evertide.spark.operators.grouping.live_group import Layout, LiveGroup
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr import sample
from tests.expr.sample import agg, col, table

T, DATAFLOW = GlobalId("t"), GlobalId("d")
GROUPS = 9


@pytest.mark.parametrize("at_hand", [1, 3, 100])
@pytest.mark.parametrize("seed", range(6))
def test_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, at_hand: int) -> None:
    monkeypatch.setattr(reduce_rows, "_KNOWN_GROUPS", at_hand)
    rng = Random(seed)
    sums = Reduce(
        table("t", INT8, INT8), (col(0),), (agg(sample.COUNT), agg(sample.SUM_INT, col(1)))
    )
    evaluator = Evaluator(tmp_path / "state")
    evaluator.create(DATAFLOW, delta_plan(sums), index_key=None, as_of=Timestamp(1))
    live: list[Row] = []
    told: Counter[Row] = Counter()
    for tick in range(1, 80):
        now = Timestamp(tick)
        updates: list[Update] = []
        for _ in range(3 * WIDE_ROWS if rng.random() < 0.1 else rng.randrange(1, 5)):
            if live and rng.random() < 0.5:
                updates.append(Update(live.pop(rng.randrange(len(live))), now, -1))
            else:
                live.append((rng.randrange(GROUPS), rng.randrange(-5, 6)))
                updates.append(Update(live[-1], now, 1))
        for row, _, diff, error in evaluator.tick(DATAFLOW, {T: updates}, now, Timestamp(tick + 1)):
            assert error is None
            told[row] += diff
        shown = {row: count for row, count in told.items() if count}
        assert shown == dict.fromkeys(expected(live), 1)
    evaluator.close()


def test_a_group_that_is_taken_is_no_longer_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a tick that is aborted would leave it as it has changed it."""
    monkeypatch.setattr(reduce_rows, "_KNOWN_GROUPS", 1)
    shape = Layout(0, (), 1, (0, None), KeyParts.of((), ()), (), (), tuple, None, (), True, 2)
    groups = {name: LiveGroup(shape, (), (1, None)) for name in (b"a", b"b", b"c")}
    known = reduce_rows.KnownGroups()
    for name, group in groups.items():
        known.put({name: group})
    assert known.take(b"a") is None
    for name in (b"b", b"c"):
        assert known.take(name) is groups[name]
        assert known.take(name) is None


def expected(live: list[Row]) -> set[Row]:
    found: set[Row] = set()
    for group in {row[0] for row in live}:
        values = [row[1] for row in live if row[0] == group]
        found.add((group, len(values), sum(v for v in values if isinstance(v, int))))
    return found
