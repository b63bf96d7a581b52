"""What this room counts; `/metrics` shows it. Labels never hold names or SQL text."""

import math
import time
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from prometheus_client import REGISTRY, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

connections = Gauge(
    "evertide_pgwire_connections", "Connections with an open session.", ["listener"]
)
refused_passwords = Counter("evertide_pgwire_refused_passwords", "Proofs that met no password.")
errors = Counter(
    "evertide_pgwire_errors", "Errors told to clients, by class of SQLSTATE.", ["sqlstate_class"]
)
_BOUNDS_S: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, math.inf,
)  # fmt: skip


class Statements:
    """What statements took, in plain numbers: a counter and a histogram of prometheus_client, with
    a lock for each number, take ten times as long, once for every statement of a text."""

    def __init__(self) -> None:
        self._began_s = time.time()
        self._counts = [0] * len(_BOUNDS_S)
        self._seconds = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(_BOUNDS_S, seconds)] += 1
        self._seconds += seconds

    def collect(self) -> Iterable[Metric]:
        """Told when somebody asks."""
        sums = list(accumulate(self._counts))
        counter = CounterMetricFamily("evertide_pgwire_statements", "Statements that were run.")
        counter.add_metric([], sums[-1], created=self._began_s)
        yield counter
        histogram = HistogramMetricFamily(
            "evertide_pgwire_statement_seconds",
            "Time from a statement's start until its answer is known.",
        )
        names = [*map(str, map(float, _BOUNDS_S[:-1])), "+Inf"]
        histogram.add_metric([], list(zip(names, sums, strict=True)), self._seconds)
        histogram.add_sample("evertide_pgwire_statement_seconds_created", {}, self._began_s)
        yield histogram


_statements: Final = Statements()
REGISTRY.register(_statements)


def count_error(sqlstate: str) -> None:
    """Classes and not codes: some fifty series at most."""
    errors.labels(sqlstate[:2]).inc()


def observe_statement(seconds: float) -> None:
    _statements.observe(seconds)
