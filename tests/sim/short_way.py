"""Counting how often single appends take their short way, and what they meet there."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from evertide.persist.faults import Fenced, PersistFault, StoreFailing, StoreFull
from evertide.persist.machine import Machine
from evertide.persist.state import ShardState
from evertide.persist.store.protocol import AllSet, CompareAndSet, SetOutcome
from tests.sim.loop import Process, running_process
from tests.sim.writer import SimWriter

# What may come of one, besides that it is done: `in doubt` is counted besides its end.
TROUBLES = ("lost", "fenced", "full", "failing", "given up", "died", "in doubt")
_FAULTS: tuple[tuple[type[PersistFault], str], ...] = (
    (Fenced, "fenced"), (StoreFull, "full"), (StoreFailing, "failing"),
)  # fmt: skip


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """By what came of it; those with a store that tells as `told: ...`."""
    found: Counter[str] = Counter()
    sent: set[CompareAndSet] = set()
    set_one, look = Machine._set_one, SimWriter._look

    def counted(self: Machine, change: CompareAndSet, after: ShardState) -> Awaitable[SetOutcome]:
        told = self._telling is not None
        sent.add(change)
        asked = set_one(self, change, after)
        return _watched(asked, found, "told: " if told else "", running_process())

    def looked(self: SimWriter, group: Any, *found_out: Any) -> None:
        changes = [one for request in group for one in request.change.sets]
        found["told: in doubt"] += sum(one in sent for one in changes)
        look(self, group, *found_out)

    with (
        mock.patch.object(Machine, "_set_one", counted),
        mock.patch.object(SimWriter, "_look", looked),
    ):
        yield found


async def _watched(
    asked: Awaitable[SetOutcome], found: Counter[str], prefix: str, process: Process | None
) -> SetOutcome:
    try:
        outcome = await asked
    except PersistFault as fault:
        found[prefix + next((name for kind, name in _FAULTS if isinstance(fault, kind)), "?")] += 1
        raise
    except asyncio.CancelledError:
        found[f"{prefix}given up"] += 1
        raise
    except GeneratorExit:
        # When all is over; whoever lives had not been told yet.
        found[prefix + ("under way" if process is None or process.alive else "died")] += 1
        raise
    found[prefix + ("done" if isinstance(outcome, AllSet) else "lost")] += 1
    return outcome
