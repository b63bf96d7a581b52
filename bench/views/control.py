"""A fixed piece of work like a tick's: it takes as long at every scale, unless the machine differs.

It codes as many rows as a batch has, and probes a sorted run of a million rows for them.
"""

from collections.abc import Callable
from functools import cache

import msgspec
import numpy as np

from bench.figure import milliseconds

RUN_ROWS = 1_000_000
REPETITIONS = 100
SEED = 3


def control(size: int) -> list[float]:
    """Milliseconds of the work for `size` changes, many times."""
    work = _work(size)
    work()
    return [milliseconds(work) for _ in range(REPETITIONS)]


@cache
def _work(size: int) -> Callable[[], None]:
    draw = np.random.default_rng(SEED)
    run = np.sort(draw.integers(0, 1 << 62, RUN_ROWS))
    values = draw.integers(0, 1 << 40, RUN_ROWS)
    rows = [(int(n), "A", "1995-01-01", int(n) * 7) for n in draw.integers(0, 1 << 40, size)]
    probes = draw.choice(run, size)

    def work() -> None:
        decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(rows))
        found = values[np.searchsorted(run, probes)]
        assert len(decoded) == len(found)

    return work
