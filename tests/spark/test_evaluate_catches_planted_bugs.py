"""The comparison with the interpreter is worth something: it finds bugs that are put there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evertide.spark.arrangement import Arrangement
from evertide.spark.layer import Layer
from evertide.spark.operators import join, reduce, regroup
from evertide.spark.operators.arrange import ArrangeOperator
from evertide.vocab.timestamp import Timestamp
from tests.spark.test_evaluate_is_exact_at_every_timestamp import check

Plant = Callable[[pytest.MonkeyPatch], None]


def always(probe: Callable, *, new: bool) -> Callable:
    return lambda self, keys, **_asked: probe(self, keys, new=new)


def look_up_old_only(patch: pytest.MonkeyPatch) -> None:
    """dA with dB is lost."""
    patch.setattr(ArrangeOperator, "probe", always(ArrangeOperator.probe, new=False))


def look_up_new_only(patch: pytest.MonkeyPatch) -> None:
    """dA with dB is counted twice."""
    patch.setattr(ArrangeOperator, "probe", always(ArrangeOperator.probe, new=True))


def take_the_time_of_the_source(patch: pytest.MonkeyPatch) -> None:
    """A result appears before the later of its parts does."""

    def extend(step: join._Step, bound: list) -> list:
        waiting = [(step.key_of(row), row, ts, diff) for row, ts, diff in bound]
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


def backwards(items: list, key: Callable) -> list:
    times = sorted({key(item) for item in items}, reverse=True)
    return [(ts, [item for item in items if key(item) == ts]) for ts in times]


def lose_a_frozen_layer(patch: pytest.MonkeyPatch) -> None:
    """What is being written is not looked into."""
    patch.setattr(Arrangement, "probe", without_frozen(Arrangement.probe))


def without_frozen(probe: Callable) -> Callable:
    def forgetful(self: Arrangement, keys: list) -> object:
        frozen, self.levels.frozen = self.levels.frozen, ()
        try:
            return probe(self, keys)
        finally:
            self.levels.frozen = frozen

    return forgetful


def add_up_without_identity(patch: pytest.MonkeyPatch) -> None:
    """0.0 and -0.0 are taken for one row."""
    insert = Layer.insert

    def careless(self: Layer, key: bytes, entries: list, since: int) -> None:
        self._identity = None
        insert(
            self,
            key,
            [
                (tuple(abs(d) if d == 0 else d for d in row), ts, diff)
                if 0.0 in row
                else (row, ts, diff)
                for row, ts, diff in entries
            ],
            since,
        )

    patch.setattr(Layer, "insert", careless)


@pytest.mark.parametrize(
    "plant",
    [
        look_up_old_only, look_up_new_only, take_the_time_of_the_source, commit_as_it_goes,
        forget_the_order_of_timestamps, lose_a_frozen_layer, add_up_without_identity,
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
