"""Playing one seed, from outside: the same every time, in every process."""

import builtins
import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from structlog.testing import capture_logs

from evertide.persist import leases, prepare
from evertide.persist.faults import PersistFault
from evertide.persist.upkeep import part_age
from evertide.vocab.errors import SqlError
from tests.sim import troubles
from tests.sim.checks import check_all
from tests.sim.history import require
from tests.sim.loop import SimLoop, running_process
from tests.sim.node import MAX_SKEW_MS, wall_ms
from tests.sim.scenario import Scenario
from tests.sim.shape import Shape
from tests.sim.short_way import counting
from tests.support.seeds import is_replayed

TRACE_LINES = 150
# How an entry in the log begins that tells of a bug, and not of a fault of the stores.
BUGS = tuple(f"{name}(" for name in dir(builtins) if name.endswith("Error"))


@dataclass(frozen=True, slots=True)
class Played:
    """What a seed came to. Equal seeds have equal digests."""

    digest: int
    steps: int
    writes: int
    reads: int
    virtual_s: float
    # What came of appends by the short way.
    short_way: Mapping[str, int]


class SeedFailed(AssertionError):
    """A seed broke a promise; says how to see it again."""

    def __init__(self, shape: Shape, failure: BaseException, loop: SimLoop) -> None:
        # Of a seed that is played again by itself, all that happened is shown.
        trace = loop.trace if is_replayed(shape.seed) else loop.trace[-TRACE_LINES:]
        lines = [f"{now_s * 1_000:10.2f} ms {name:16} {text}" for _, now_s, name, text in trace]
        super().__init__(
            f"seed {shape.seed}: {type(failure).__name__}: {failure}\n{shape}\n" + "\n".join(lines)
        )


def play(shape: Shape) -> Played:
    """Play a scenario and check everything; raises SeedFailed."""
    loop = SimLoop(random.Random(f"loop {shape.seed}"), in_order=shape.in_order)
    with determinism(loop, shape), counting() as short_way, capture_logs() as logs:
        try:
            scenario = Scenario(shape, loop)
            loop.run_until_complete(troubles.play(scenario))
            check_nothing_broke(loop, logs)
            check_all(scenario.place, scenario.history, scenario.tables, scenario.views)
        except Exception as failure:
            raise SeedFailed(shape, failure, loop) from failure
        finally:
            loop.bury()
    history = scenario.history
    return Played(
        digest=loop.digest,
        steps=loop.moment,
        writes=len(history.writes),
        reads=len(history.reads),
        virtual_s=loop.time(),
        short_way=short_way,
    )


def check_nothing_broke(loop: SimLoop, logs: Sequence[Mapping[str, Any]]) -> None:
    """Work in the background met no other faults than those that the stores were made to have."""
    for name, failure in loop.failures():
        require(isinstance(failure, PersistFault | SqlError), f"{name}: {failure!r}")
    for entry in logs:
        error = str(entry.get("error", ""))
        require(not error.startswith(BUGS), f"{entry['event']}: {error}")


@contextmanager
def determinism(loop: SimLoop, shape: Shape) -> Iterator[None]:
    """Let nothing come from outside: no clock, no chance. And make small things large."""
    chance = random.Random(f"uuid {shape.seed}")

    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=chance.getrandbits(128), version=4)

    def time_ns() -> int:
        process = running_process()
        return wall_ms(loop, process.skew_ms if process is not None else 0) * 1_000_000

    with (
        mock.patch.object(uuid, "uuid4", uuid4),
        mock.patch.object(time, "time_ns", time_ns),
        mock.patch.object(time, "monotonic", loop.time),
        mock.patch.object(time, "sleep"),
        mock.patch.object(prepare, "INLINE_BYTES", shape.limits.inline_bytes),
        mock.patch.object(part_age, "MAX_AGE_MS", shape.limits.part_age_ms),
        mock.patch.object(leases, "_SKEW_MS", MAX_SKEW_MS),
        mock.patch.object(leases, "_PAUSE_S", 0.3),
        mock.patch.object(leases, "_WORTH_MOVING_MS", 50),
    ):
        yield
