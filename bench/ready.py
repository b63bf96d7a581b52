"""From the start of `evertide serve` until it answers clients."""

import subprocess
import sys
import time

from bench.figure import RUNS, Figure, Runs, milliseconds
from bench.place import Place
from tests.support.server import running_server

STARTS_PER_RUN = 3
TARGET_SECONDS = 3.0


def measure(place: Place) -> list[Figure]:
    """A new environment each time."""
    served: list[list[float]] = []
    imported: list[list[float]] = []
    for run in range(RUNS):
        starts = range(1 if place.quick else STARTS_PER_RUN)
        imported.append([milliseconds(_import_arrow) / 1_000 for _ in starts])
        served.append([_serve(place, f"ready-{run}-{start}") for start in starts])
    return [
        Figure(
            name="serve: ready",
            unit="s",
            runs=Runs(tuple(served)),
            target=TARGET_SECONDS,
            baseline_name='python -c "import pyarrow"',
            baseline=Runs(tuple(imported)),
        )
    ]


def _serve(place: Place, name: str) -> float:
    """Seconds until the ready line."""
    started = time.perf_counter()
    with running_server(place.directory / name):
        return time.perf_counter() - started


def _import_arrow() -> None:
    subprocess.run([sys.executable, "-c", "import pyarrow"], check=True)
