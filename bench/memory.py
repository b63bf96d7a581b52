"""Memory of an idle server: what nobody else could use, over its whole tree of processes."""

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bench.figure import RUNS, Figure, Runs
from bench.place import Place, running_helper
from tests.support.server import descendants_of

TARGET_MB = 1_200.0
IDLE_SECONDS = 8
SAMPLES_PER_RUN = 3
SAMPLE_PAUSE_SECONDS = 0.3

# The first whose mark is in the command line tells what a process is.
KINDS = (
    ("evertide.cli.main", "supervisor"),
    ("evertide.cli.adapter", "adapter"),
    ("evertide.cli.replica", "replica python"),
    ("bin/java", "JVM"),
    ("pyspark.daemon", "spark python daemon and worker"),
)
OTHER = "other python"


def measure(place: Place) -> list[Figure]:
    """The server's total, and what each kind of process has of it."""
    pid = place.server.process.pid
    with running_helper("bare_spark", str(place.directory / "bare")) as bare:
        bare.answer()
        time.sleep(1 if place.quick else IDLE_SECONDS)
        runs = []
        bare_runs = []
        for _ in range(RUNS):
            bare_runs.append(_samples(bare.pid))
            runs.append(_samples(pid))
    total = Figure(
        name="idle memory, all processes",
        unit="MB",
        runs=_totals(runs),
        target=TARGET_MB,
        baseline_name="bare PySpark session",
        baseline=_totals(bare_runs),
    )
    return [total, *_by_kind(runs)]


def _by_kind(runs: list[list[Mapping[str, float]]]) -> list[Figure]:
    kinds = dict.fromkeys(kind for run in runs for sample in run for kind in sample)
    return [
        Figure(
            name=f"  {kind}",
            unit="MB",
            runs=Runs(tuple([sample.get(kind, 0.0) for sample in run] for run in runs)),
        )
        for kind in kinds
    ]


def _totals(runs: list[list[Mapping[str, float]]]) -> Runs:
    return Runs(tuple([sum(sample.values()) for sample in run] for run in runs))


def _samples(pid: int) -> list[Mapping[str, float]]:
    samples = []
    for _ in range(SAMPLES_PER_RUN):
        samples.append(anonymous_mb(pid))
        time.sleep(SAMPLE_PAUSE_SECONDS)
    return samples


def anonymous_mb(root: int) -> Mapping[str, float]:
    """Anonymous megabytes of a process and all below it, by kind."""
    found: Counter[str] = Counter()
    for pid in [root, *descendants_of(root)]:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since the tree was listed
        found[_kind(command)] += _anonymous_kb(rollup)
    return {kind: kilobytes / 1_000 for kind, kilobytes in found.items()}


def _kind(command: str) -> str:
    return next((kind for mark, kind in KINDS if mark in command), OTHER)


def _anonymous_kb(rollup: str) -> int:
    for line in rollup.splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1])
    return 0
