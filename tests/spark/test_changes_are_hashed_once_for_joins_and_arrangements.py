"""A join looks its inputs' changes up as they are kept, but for rows that it must not find."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.columnar.column import Ints
from evertide.expr.columnar.hashes import hash_keys
from evertide.expr.relation import Types
from evertide.spark.evaluate import Evaluator
from evertide.spark.operators import delta as deltas
from evertide.spark.operators import join as joins
from evertide.spark.operators.delta import Delta
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr.trees import TABLES, random_row
from tests.spark.test_arrangements_are_shared import T0, T2, joined

TYPES: Types = (INT8, TEXT)
ROWS = [((None if i % 3 == 0 else i % 50, "a"), 1, 1) for i in range(400)]


def test_rows_without_a_key_are_only_kept_by_those_who_want_them() -> None:
    delta = Delta(ROWS)
    whole = delta.by_hash(TYPES, (0,), drop_nulls=False)
    assert whole is not None
    assert len(whole.batch) == len(ROWS)
    assert delta.hashed((0,)) is None, "NULL would be equal to NULL"
    kept = delta.by_hash(TYPES, (0,), drop_nulls=True)
    assert kept is delta.hashed((0,))
    assert kept is not None
    assert len(kept.batch) == sum(row[0] is not None for row, _, _ in ROWS)
    assert not kept.batch.columns[0].null_mask.any()
    assert (kept.hashes == hash_keys((INT8,), kept.batch.columns[:1], len(kept.batch))).all()
    assert (np.diff(kept.hashes.astype(object)) >= 0).all()
    assert delta.hashed((1,)) is None
    assert delta.with_errors(()).hashed((0,)) is None


def test_nothing_is_left_of_rows_without_a_key() -> None:
    delta = Delta([((None, "a"), 1, 1)] * 300)
    assert delta.by_hash(TYPES, (0,), drop_nulls=True) is None
    assert delta.hashed((0,)) is None


def test_a_join_of_two_looks_nothing_up_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(name: str) -> None:
        def hashes(*given: object) -> Ints:
            asked.append(name)
            return hash_keys(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(deltas if name == "delta" else joins, "hash_keys", hashes)

    counted("delta")
    counted("join")
    evaluator = Evaluator(tmp_path)
    plan = delta_plan(joined(T0, T2))
    evaluator.create(GlobalId("u1"), plan, index_key=None, as_of=Timestamp(1))
    rng = Random(1)
    inputs = {
        name: [Update(random_row(rng, TABLES[name]), Timestamp(1), 1) for _ in range(400)]
        for name in (T0, T2)
    }
    evaluator.tick(GlobalId("u1"), inputs, Timestamp(1), Timestamp(2))
    assert asked == ["delta", "delta"]
    evaluator.close()
