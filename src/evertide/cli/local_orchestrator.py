"""Replica processes as children of the supervisor: held to their sizes, watched, started again."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
import structlog

from evertide.cli.config import Boot
from evertide.cli.cpus import CpuShares
from evertide.cli.processes import Child, ChildSpec
from evertide.cli.watch import Watch, sampling_of
from evertide.controller.orchestrator import ProcessSpec
from evertide.controller.restarts import RestartKeeper
from evertide.controller.sizes import Size, SizeTable
from evertide.controller.statuses import (
    OFFLINE,
    ONLINE,
    OUT_OF_MEMORY,
    STARTING,
    Statuses,
    exit_reason,
)
from evertide.spark.arrangements.memory import MEMORY_VARIABLE

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Observers:
    """Who is told what becomes of replica processes."""

    statuses: Statuses
    watch: Watch
    restarts: RestartKeeper
    fatal: Callable[[int], None]


class LocalOrchestrator:
    """Implements the controller's Orchestrator, and hears of its children's lives."""

    def __init__(self, boot: Boot, sizes: SizeTable, observers: Observers) -> None:
        self._boot = boot
        self._sizes = sizes
        self._observers = observers
        self._cpus = CpuShares(sorted(os.sched_getaffinity(0)))
        self._children: dict[str, Child] = {}
        self._limits: dict[str, int | None] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._wanted: Mapping[str, ProcessSpec] = {}

    def ensure(self, wanted: Mapping[str, ProcessSpec]) -> None:
        """Stop what is not wanted any more, start what is new; neither waits for the other.

        Only one of a name that is still ending: two would share a socket and a directory.
        """
        self._wanted = wanted
        for name in [name for name in self._children if name not in wanted]:
            child = self._children.pop(name)
            self._stopping[name] = asyncio.create_task(self._drop(name, child))
        for name, spec in wanted.items():
            self._observers.watch.sample(name, sampling_of(spec.introspection))
            if name not in self._children and name not in self._stopping:
                self._start(name, spec)

    def _start(self, name: str, spec: ProcessSpec) -> None:
        size = None if spec.size is None else self._sizes.find(spec.size)
        if spec.size is not None and size is None:
            # Stored before its size was taken out of the table: it runs, with what is usual.
            log.warning("a replica's size is not in the table", child=name, size=spec.size)
            size = Size()
        limited = size is not None and size.is_limited
        self._limits[name] = size.total_mb << 20 if size is not None and limited else None
        self._observers.statuses.note(name, OFFLINE, STARTING)
        child = Child(self._child_spec(name, size if limited else None), self)
        self._children[name] = child
        child.start()
        child.boot(msgspec.structs.replace(self._boot, process=name, size=spec.size))

    def _child_spec(self, name: str, size: Size | None) -> ChildSpec:
        """A size of this host is held to its cores and knows its memory; others are free."""
        if size is None:
            return ChildSpec("replica", name)
        environment = {MEMORY_VARIABLE: str(size.state_mb)}
        if MEMORY_VARIABLE in os.environ:
            environment = {}  # whoever started the server knows better
        return ChildSpec("replica", name, self._cpus.take(name, size.cores), environment)

    async def _drop(self, name: str, child: Child) -> None:
        await child.stop()
        self._cpus.give_back(name)
        self._limits.pop(name, None)
        self._observers.statuses.note(name, OFFLINE, "dropped")
        self._observers.statuses.forget(name)
        self._observers.watch.forget(name)
        self._observers.restarts.forget(name)
        del self._stopping[name]
        self.ensure(self._wanted)  # it may be wanted again by now

    async def stop(self) -> None:
        """End all of them."""
        self.ensure({})
        await asyncio.gather(*self._stopping.values(), return_exceptions=True)

    def fatal(self, code: int) -> None:
        """What concerns the whole generation is for the supervisor."""
        self._observers.fatal(code)

    def started(self, name: str, pid: int) -> None:
        """From its first moment on it is held to its memory."""
        self._observers.watch.begin(name, pid, self._limits.get(name))

    def ready(self, name: str) -> None:
        """It answers."""
        self._observers.statuses.note(name, ONLINE)

    def ended(self, name: str, code: int) -> None:
        """It ended by itself, or for its memory: say why, and in the audit log too."""
        too_large = self._observers.watch.end(name)
        reason = OUT_OF_MEMORY if too_large else exit_reason(code)
        self._observers.statuses.note(name, OFFLINE, reason)
        self._observers.restarts.ended(name, reason)
