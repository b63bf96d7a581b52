"""What was observed, as figures."""

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
            Figure(name="  and ahead of DuckDB", unit="ms", runs=shown, target=duckdb.median),
            Figure(name="  beside DuckDB, given the text", unit="ms", runs=shown,
                   baseline_name=DUCKDB_TEXT, baseline=text),
            Figure(name="  DuckDB makes the changes, Arrow", unit="ms", runs=replacing),
        ]  # fmt: skip
    return figures


def growth_figures(
    small: list[Observed], large: list[Observed], control: dict[int, tuple[Runs, Runs]]
) -> list[Figure]:
    """How much a tick grows with the state, without what the machine itself changed."""
    before = {observed.view.name: observed for observed in small}
    figures = []
    for observed in large:
        for size, (at_small, at_large) in control.items():
            pair = (before[observed.view.name].timings.get(size), observed.timings.get(size))
            if pair[0] is None or pair[1] is None:
                continue
            ticks = [Runs(tuple(t.ticks for t in timings)).median for timings in pair if timings]
            ratio = ticks[1] / ticks[0] / (at_large.median / at_small.median)
            figures.append(
                Figure(name=f"{observed.view.name}: tick, S to M, {size:,}", unit="x",
                       runs=Runs(in_runs([ratio])), target=GROWTH)
            )  # fmt: skip
    return figures
