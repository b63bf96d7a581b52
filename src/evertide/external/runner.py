"""Runs the sources and sinks that the catalog asks of one replica."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

import structlog

from evertide.dataflow.external import SinkDescription, SourceDescription
from evertide.external.generate import SourceWriter, Tables
from evertide.external.status import Facts, Status
from evertide.external.write_out import Collections, FilePlace, SinkWriter
from evertide.persist.handle import PersistClient
from evertide.vocab.clock import Clock
from evertide.vocab.ids import GlobalId

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Running:
    description: SourceDescription | SinkDescription
    status: Status
    task: "asyncio.Task[None]"


class External:
    """Owns one task for each source and sink."""

    def __init__(
        self,
        persist: PersistClient,
        tables: Tables,
        collections: Collections,
        clock: Clock,
        place: FilePlace | None,
    ) -> None:
        self._persist = persist
        self._tables = tables
        self._collections = collections
        self._clock = clock
        self._place = place
        self._running: dict[GlobalId, _Running] = {}
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait_failed(self) -> None:
        """Raises what ended one of the tasks: a fault that concerns the whole process."""
        await asyncio.shield(self._failed)

    async def set_wanted(
        self, sources: Sequence[SourceDescription], sinks: Sequence[SinkDescription]
    ) -> None:
        """Run exactly these; what changed is started anew."""
        wanted: dict[GlobalId, SourceDescription | SinkDescription] = {
            **{source.global_id: source for source in sources},
            **{sink.global_id: sink for sink in sinks},
        }
        for global_id, running in list(self._running.items()):
            if wanted.get(global_id) != running.description:
                await self._stop(global_id)
        for global_id, description in wanted.items():
            if global_id not in self._running:
                self._start(description)

    async def close(self) -> None:
        """End all of them."""
        for global_id in list(self._running):
            await self._stop(global_id)

    def statuses(self, relation: str) -> list[Facts]:
        """The rows of mz_source_statuses or mz_sink_statuses that are known here."""
        kind = {"mz_source_statuses": SourceDescription, "mz_sink_statuses": SinkDescription}
        wanted = kind.get(relation)
        if wanted is None:
            return []
        return [r.status.facts for r in self._running.values() if isinstance(r.description, wanted)]

    def _start(self, description: SourceDescription | SinkDescription) -> None:
        status = Status(description.global_id, description.cluster_id)
        work = self._work(description, status)
        task = asyncio.create_task(work, name=f"external {description.global_id}")
        task.add_done_callback(self._ended)
        self._running[description.global_id] = _Running(description, status, task)
        log.info("source or sink started", object_id=description.global_id)

    def _work(
        self, description: SourceDescription | SinkDescription, status: Status
    ) -> Coroutine[None, None, None]:
        if isinstance(description, SourceDescription):
            writer = SourceWriter(description, self._persist, self._tables, self._clock, status)
            return writer.run()
        if self._place is None:
            status.stalled("this process has no directory for sinks (--sink-dir)")
            return _nothing()
        sink = SinkWriter(description, self._persist, self._collections, self._place, status)
        return sink.run()

    async def _stop(self, global_id: GlobalId) -> None:
        running = self._running.pop(global_id)
        running.task.cancel()
        await asyncio.gather(running.task, return_exceptions=True)
        log.info("source or sink stopped", object_id=global_id)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled() or task.exception() is None or self._failed.done():
            return
        error = task.exception()
        assert error is not None, "looked at above"
        self._failed.set_exception(error)


async def _nothing() -> None:
    """There is nothing to be done."""
