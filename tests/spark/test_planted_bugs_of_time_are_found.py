"""The comparison with the interpreter finds bugs of time and of table functions put there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evertide.expr import flat_rows, temporal
from evertide.expr.temporal import Bound
from evertide.spark import snapshots
from evertide.spark.operators import flat_map
from evertide.spark.operators.temporal import Future, TemporalFilterOperator
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from tests.spark import test_time_and_table_functions_are_exact as exact

later_start = exact.test_goes_on_from_a_snapshot_and_from_a_later_start
Plant = Callable[[pytest.MonkeyPatch], None]


def never_take_away(patch: pytest.MonkeyPatch) -> None:
    """Rows whose time is over stay."""
    interval = Bound.interval
    patch.setattr(Bound, "interval", lambda *asked: (interval(*asked)[0], EMPTY_FRONTIER))


def be_early(patch: pytest.MonkeyPatch) -> None:
    """Rows come with their update, before their time."""
    interval = Bound.interval
    patch.setattr(Bound, "interval", lambda *asked: (0, interval(*asked)[1]))


def be_off_by_one(patch: pytest.MonkeyPatch) -> None:
    """`<=` is taken for `<`."""
    interval = Bound.interval
    patch.setattr(
        Bound,
        "interval",
        lambda bound, value: interval(Bound(bound.comparison[0], bound.value), value),
    )


def forget_what_is_later(patch: pytest.MonkeyPatch) -> None:
    """What is due after the tick never comes."""
    patch.setattr(Future, "add", lambda *_: None)


def give_it_twice(patch: pytest.MonkeyPatch) -> None:
    """What was given is kept."""

    def commit(self: TemporalFilterOperator, _upper: Timestamp) -> None:
        for change in self._later:
            self.future.add(*change)

    patch.setattr(TemporalFilterOperator, "commit", commit)
    # Else it would say itself that something was passed over.
    patch.setattr(Future, "due", lambda self: None if not self._times else EMPTY_FRONTIER - 1)


def keep_errors_for_ever(patch: pytest.MonkeyPatch) -> None:
    """An error of a row whose time is over stays."""
    compiled = temporal.compile_stay

    def compile_stay(predicates: list) -> Callable:
        stay = compiled(predicates)

        def lasting(row: tuple) -> temporal.Stay | None:
            found = stay(row)
            return found if found is None or not found.error else found._replace(end=2**63 - 1)

        return lasting

    patch.setattr("evertide.spark.operators.temporal.compile_stay", compile_stay)


def count_from_zero(patch: pytest.MonkeyPatch) -> None:
    """A table function's rows have no numbers of their own."""
    compiled = flat_rows.compile_flat_rows

    def compile_flat_rows(function: object, arguments: object, *, ordinality: bool) -> Callable:
        rows = compiled(function, arguments, ordinality=ordinality)  # type: ignore[arg-type]
        return lambda row: [(*one[:-1], 0) for one in rows(row)] if ordinality else rows(row)

    patch.setattr(flat_map, "compile_flat_rows", compile_flat_rows)


@pytest.mark.parametrize(
    "plant",
    [never_take_away, be_early, be_off_by_one, forget_what_is_later, give_it_twice,
     keep_errors_for_ever, count_from_zero],
)  # fmt: skip
def test_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check_many(tmp_path)


def test_a_time_that_is_not_told_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody ticks for what is due."""
    for module in ("evaluate", "running_plan"):
        monkeypatch.setattr(f"evertide.spark.{module}.earliest", lambda _: None)
    with pytest.raises(AssertionError):
        tick_many(tmp_path)


def test_a_snapshot_without_the_future_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "read_future", lambda *_: None)
    with pytest.raises(AssertionError):
        restart_many(tmp_path, monkeypatch)


def test_a_snapshot_that_goes_on_changing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buckets that a snapshot is about to write are changed by ticks meanwhile."""
    monkeypatch.setattr(Future, "capture", lambda self: dict(self._buckets))
    with pytest.raises(AssertionError):
        restart_many(tmp_path, monkeypatch)


def check_many(directory: Path) -> None:
    for seed in range(300):
        exact.check(seed, directory / str(seed), depth=1 + seed % 4)


def tick_many(directory: Path) -> None:
    for seed in range(30):
        exact.test_ticks_only_when_something_is_due(directory / str(seed), seed)


def restart_many(directory: Path, patch: pytest.MonkeyPatch) -> None:
    for seed in range(300):
        later_start(directory / str(seed), patch, seed)
