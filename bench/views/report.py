"""What was observed, as figures."""

import statistics

from bench.figure import Figure, Runs, in_runs
from bench.views.baselines import DUCKDB, DUCKDB_TEXT, fastest
from bench.views.follow import Timings
from bench.views.phase import Observed

HYDRATION_SECONDS = 6.0
HYDRATION_ROWS_PER_SECOND = 400_000.0
SUSTAINED_PER_SECOND = 40_000.0
GROWTH = 1.3
TARGETS_MS = {"S": {1: 4.0, 100: 7.0, 10_000: 120.0}, "M": {1: 5.0, 100: 9.0, 10_000: 150.0}}


def figures_of(observed: Observed, scale: str, form: str) -> list[Figure]:
    """One view's lines; `form` says how batches were handed over, if not as they should be."""
    figures: list[Figure] = []
    for size, timings in observed.timings.items():
        figures += _freshness(observed, scale, form, size, timings)
    label = f"{observed.view.name} {scale}"
    for name, runs in observed.baselines.items():
        figures.append(Figure(name=f"{label}: {name}", unit="ms", runs=runs))
    if observed.sustained is not None:
        figures.append(
            Figure(name=f"{label}: changes, batches of 1,000{form}", unit="/s",
                   runs=observed.sustained,
                   target=None if observed.inserts else SUSTAINED_PER_SECOND)
        )  # fmt: skip
    return [*figures, _hydration(observed, scale)]


def _hydration(observed: Observed, scale: str) -> Figure:
    label = f"{observed.view.name} {scale}: hydration"
    if scale == "S":
        return Figure(name=label, unit="s", runs=observed.hydrations, target=HYDRATION_SECONDS)
    rates = tuple(
        [observed.input_rows / seconds for seconds in run] for run in observed.hydrations.observed
    )
    return Figure(
        name=label,
        unit="rows/s",
        runs=Runs(rates, higher=True),
        target=HYDRATION_ROWS_PER_SECOND,
    )


def _freshness(
    observed: Observed, scale: str, form: str, size: int, timings: list[Timings]
) -> list[Figure]:
    plural = "change" if size == 1 else "changes"
    label = f"{observed.view.name} {scale}: {size:,} {plural}{form}"
    shown = Runs(tuple(t.both for t in timings))
    name = fastest(observed.baselines) if observed.baselines else None
    target = None if observed.inserts else TARGETS_MS[scale].get(size)
    figures = [
        Figure(name=label, unit="ms", runs=shown, target=target,
               baseline_name=name, baseline=None if name is None else observed.baselines[name]),
        Figure(name="  write", unit="ms", runs=Runs(tuple(t.writes for t in timings))),
        Figure(name="  wait", unit="ms", runs=Runs(tuple(t.waits for t in timings))),
        Figure(name="  tick within it", unit="ms", runs=Runs(tuple(t.ticks for t in timings))),
    ]  # fmt: skip
    duckdb = observed.baselines.get(DUCKDB)
    if (
        duckdb is not None
        and target is not None
        and scale == "S"
        and size == max(TARGETS_MS[scale])
    ):
        replacing = Runs(tuple(t.replacing for t in timings))
        text = observed.baselines[DUCKDB_TEXT]
        figures += [
            Figure(name="  ahead of DuckDB, same batch", unit="ms", runs=shown, target=text.median,
                   baseline_name=DUCKDB_TEXT, baseline=text),
            Figure(name="  beside its query alone", unit="ms", runs=shown,
                   baseline_name=DUCKDB, baseline=duckdb),
            Figure(name="  DuckDB makes the changes, Arrow", unit="ms", runs=replacing),
        ]  # fmt: skip
    return figures


def growth_figures(small: list[Observed], large: list[Observed]) -> list[Figure]:
    """How much a tick grows with the state, without what the machine itself changed."""
    before = {observed.view.name: observed for observed in small}
    figures = []
    for observed in large:
        for size in observed.controls:
            at_small, at_large = _ticks(before[observed.view.name], size), _ticks(observed, size)
            if at_small is not None and at_large is not None:
                figures.append(
                    Figure(name=f"{observed.view.name}: tick, S to M, {size:,}", unit="x",
                           runs=Runs(in_runs([at_large / at_small])), target=GROWTH)
                )  # fmt: skip
    return figures


def _ticks(observed: Observed, size: int) -> float | None:
    """A tick by the fixed piece of work that was timed beside it, each in its best run.

    Not the best of the runs' ratios: that is the one whose fixed piece was held up the most.
    """
    ticks = [statistics.median(timings.ticks) for timings in observed.timings.get(size, ())]
    controls = [statistics.median(control) for control in observed.controls.get(size, ())]
    return min(ticks) / min(controls) if ticks and controls else None
