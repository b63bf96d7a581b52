"""The comparison with the interpreter is worth something: it finds bugs that are put there."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evertide.expr.columnar.batch import Batch
from evertide.expr.columnar.column import Ints
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.layer import Layer
from evertide.spark.operators import join
from evertide.spark.operators.arrange import ArrangeOperator
from evertide.spark.operators.delta import Delta
from evertide.spark.operators.grouping import reduce, reduce_rows
from evertide.spark.operators.grouping.group_rows import RowExtreme
from evertide.spark.operators.grouping.group_values import DistinctValues, FollowedExtreme
from evertide.spark.operators.grouping.tick_members import TickMembers
from evertide.spark.operators.ranking import regroup
from evertide.spark.operators.ranking.columns import ColumnRegroup
from evertide.vocab.timestamp import Timestamp
from tests.spark.test_evaluate_is_exact_at_every_timestamp import check

Plant = Callable[[pytest.MonkeyPatch], None]


def always(probe: Callable, *, new: bool) -> Callable:
    return lambda self, keys, parts=None, **_asked: probe(self, keys, parts, new=new)


def look_up_old_only(patch: pytest.MonkeyPatch) -> None:
    """dA with dB is lost."""
    patch.setattr(ArrangeOperator, "probe", always(ArrangeOperator.probe, new=False))


def look_up_new_only(patch: pytest.MonkeyPatch) -> None:
    """dA with dB is counted twice."""
    patch.setattr(ArrangeOperator, "probe", always(ArrangeOperator.probe, new=True))


def take_the_time_of_the_source(patch: pytest.MonkeyPatch) -> None:
    """A result appears before the later of its parts does."""

    def extend(step: join._Step, bound: Delta) -> list:
        keyed = step.by_key(bound.rows, drop_nulls=True).keyed
        waiting = [(key, *entry) for key, entries in keyed.items() for entry in entries]
        found = step.arranged.probe(list({key for key, *_ in waiting}), new=step.new)
        return [
            (row + other, ts, diff * times)
            for key, row, ts, diff in waiting
            if None not in [row[c] for c in step.probe]
            for other, _, times in found.get(key, ())
            if step.checks is None or step.checks(row + other)
        ]

    patch.setattr(join._Step, "extend", extend)


def commit_as_it_goes(patch: pytest.MonkeyPatch) -> None:
    """State changes before all deltas of the tick are known."""
    step = ArrangeOperator.step

    def hasty(self: ArrangeOperator, deltas: list, tick: object) -> object:
        delta = step(self, deltas, tick)  # type: ignore[arg-type]
        self.commit(Timestamp(0))
        return delta

    patch.setattr(ArrangeOperator, "step", hasty)


def forget_the_order_of_timestamps(patch: pytest.MonkeyPatch) -> None:
    """A group's changes are taken in reverse."""
    patch.setattr(reduce, "groupby", lambda items, key: backwards(items, key))
    patch.setattr(regroup, "groupby", lambda items, key: backwards(items, key))
    patch.setattr(reduce_rows, "groupby", lambda items, key: backwards(items, key))


def see_all_timestamps_at_once(patch: pytest.MonkeyPatch) -> None:
    """By columns, a top-k's changes of a whole tick come at its end."""
    patch.setattr("evertide.spark.operators.delta.WIDE_ROWS", 1)
    changes = ColumnRegroup._changes

    def late(self: ColumnRegroup, table: object, ranks: object, times: Ints, diffs: Ints) -> Batch:
        times = times.clip(times.max())
        return changes(self, table, ranks, times, diffs)  # type: ignore[arg-type]

    patch.setattr(ColumnRegroup, "_changes", late)


def by_columns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("evertide.spark.operators.delta.WIDE_ROWS", 1)


def find_new_only(patch: pytest.MonkeyPatch) -> None:
    """By columns, dA with dB is counted twice."""
    by_columns(patch)
    find = ArrangeOperator.find
    patch.setattr(
        ArrangeOperator, "find", lambda self, keys, hashes, **_: find(self, keys, hashes, new=True)
    )


def believe_every_hash(patch: pytest.MonkeyPatch) -> None:
    """By columns, keys with one hash are taken for equal."""
    by_columns(patch)
    patch.setattr(
        "evertide.spark.operators.join.hash_keys",
        lambda *asked: np.zeros(asked[-1], np.int64),
    )
    patch.setattr(
        "evertide.spark.operators.delta.hash_keys",
        lambda *asked: np.zeros(asked[-1], np.int64),
    )
    patch.setattr(
        "evertide.spark.arrangements.arrangement.equal_keys",
        lambda *asked: np.ones(len(asked[-1]), np.bool_),
    )


def look_for_another_key(patch: pytest.MonkeyPatch) -> None:
    """By columns, a join takes changes as they are kept, by whichever key."""
    by_columns(patch)
    patch.setattr(Delta, "hashed", lambda self, _key: next(iter(self._layers.values()), None))


def never_look_again(patch: pytest.MonkeyPatch) -> None:
    """By columns, min and max go on showing a value that has gone."""
    by_columns(patch)
    patch.setattr(FollowedExtreme, "_look_again", lambda *_: None)


def never_look_again_by_rows(patch: pytest.MonkeyPatch) -> None:
    """The same row by row."""
    patch.setattr(RowExtreme, "_is_gone", lambda *_: False)


def forget_what_was_there(patch: pytest.MonkeyPatch) -> None:
    """By columns, every DISTINCT value that comes is new."""
    by_columns(patch)
    change = DistinctValues.change
    patch.setattr(
        DistinctValues, "change", lambda self, *values: np.zeros_like(change(self, *values))
    )


def overlook_the_tick_s_own_values(patch: pytest.MonkeyPatch) -> None:
    """By columns, aggregates that look at values see those of before the tick."""
    by_columns(patch)
    patch.setattr(TickMembers, "take_in", lambda *_: None)


def backwards(items: list, key: Callable) -> list:
    times = sorted({key(item) for item in items}, reverse=True)
    return [(ts, [item for item in items if key(item) == ts]) for ts in times]


def lose_a_frozen_layer(patch: pytest.MonkeyPatch) -> None:
    """What is being written is not looked into."""
    patch.setattr(Arrangement, "probe", without_frozen(Arrangement.probe))


def without_frozen(probe: Callable) -> Callable:
    def forgetful(self: Arrangement, keys: list, parts: list | None = None) -> object:
        frozen, self.levels.frozen = self.levels.frozen, ()
        try:
            return probe(self, keys, parts)
        finally:
            self.levels.frozen = frozen

    return forgetful


def add_up_without_identity(patch: pytest.MonkeyPatch) -> None:
    """0.0 and -0.0 are taken for one row."""
    insert = Layer.insert

    def careless(self: Layer, keyed: dict, since: int) -> None:
        for key, entries in keyed.items():
            positive = [
                (tuple(abs(d) if d == 0 else d for d in row), ts, diff)
                if 0.0 in row
                else (row, ts, diff)
                for row, ts, diff in entries
            ]
            insert(self, {key: positive}, since)

    patch.setattr(Layer, "insert", careless)


@pytest.mark.parametrize(
    "plant",
    [
        look_up_old_only, look_up_new_only, take_the_time_of_the_source, commit_as_it_goes,
        forget_the_order_of_timestamps, see_all_timestamps_at_once, lose_a_frozen_layer,
        add_up_without_identity, find_new_only, believe_every_hash, never_look_again,
        never_look_again_by_rows, forget_what_was_there, overlook_the_tick_s_own_values,
        look_for_another_key,
    ],
)  # fmt: skip
def test_a_planted_bug_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check_many(tmp_path)


def check_many(directory: Path) -> None:
    for seed in range(300):
        check(seed, directory / str(seed), depth=1 + seed % 4, spill_records=4)
