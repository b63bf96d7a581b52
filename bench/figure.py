"""What is measured: repetitions in three runs, of which the best median counts."""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

RUNS = 3
# Repetitions before the first run that are not counted.
WARM_UP = 5

Step: TypeAlias = Callable[[], object]
AsyncStep: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Runs:
    """Observations, one sequence per run. `higher` is set where more is better: a rate."""

    observed: tuple[Sequence[float], ...]
    higher: bool = False

    @property
    def median(self) -> float:
        """The best run's median."""
        medians = [statistics.median(run) for run in self.observed]
        return max(medians) if self.higher else min(medians)

    @property
    def minimum(self) -> float:
        """The smallest single observation."""
        return min(min(run) for run in self.observed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. Without a target it is only reported."""

    name: str
    unit: str
    runs: Runs
    target: float | None = None
    baseline_name: str | None = None
    baseline: Runs | None = None

    @property
    def missed(self) -> bool:
        if self.target is None:
            return False
        if self.runs.higher:
            return self.runs.median < self.target
        return self.runs.median > self.target

    @property
    def ratio(self) -> float | None:
        """How many times the baseline; None where there is none."""
        return None if self.baseline is None else self.runs.median / self.baseline.median


def milliseconds(step: Step) -> float:
    """How long it takes once."""
    started = time.perf_counter()
    step()
    return (time.perf_counter() - started) * 1_000


def alternating(count: int, *steps: Step) -> list[Runs]:
    """Every step `count` times per run, in milliseconds.

    Runs of the steps take turns, so that what else the machine does hits all of them alike.
    """
    for step in steps:
        for _ in range(WARM_UP):
            step()
    rounds = [[[milliseconds(s) for _ in range(count)] for s in steps] for _ in range(RUNS)]
    return [Runs(tuple(observed)) for observed in zip(*rounds, strict=True)]


async def alternating_async(count: int, *steps: AsyncStep) -> list[Runs]:
    """As alternating, for what runs on an event loop."""
    for step in steps:
        for _ in range(WARM_UP):
            await step()
    rounds = [[await _timed(count, step) for step in steps] for _ in range(RUNS)]
    return [Runs(tuple(observed)) for observed in zip(*rounds, strict=True)]


async def _timed(count: int, step: AsyncStep) -> list[float]:
    observed = []
    for _ in range(count):
        started = time.perf_counter()
        await step()
        observed.append((time.perf_counter() - started) * 1_000)
    return observed


def in_runs(observed: Sequence[float]) -> tuple[Sequence[float], ...]:
    """What was observed in one go, as if in three runs: a third each, in order."""
    third = -(-len(observed) // RUNS)
    return tuple(observed[start : start + third] for start in range(0, len(observed), third))
