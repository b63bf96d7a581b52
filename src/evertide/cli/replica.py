"""The replica process: follows the catalog, runs its clusters' dataflows, answers peeks.

It is one Spark application. Until Spark is up, which takes ten seconds and more, the process runs
the same evaluator itself, so that views are fresh from the first second.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog
import uvloop

from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.cli.bulk import launch_bulk
from evertide.cli.child import parent_gone, run_child, until_stopped
from evertide.cli.config import Boot
from evertide.cli.sizes import Size, size_table, this_host
from evertide.cli.stores import Opened, join_generation, notifying
from evertide.controller.compute import socket_path
from evertide.controller.follow import Follower, imports_by_id
from evertide.controller.follow_external import sinks_of, sources_of
from evertide.controller.orchestrator import clusters_of
from evertide.controller.reconfiguration import HYDRATION
from evertide.controller.sizes import LEAST_LOCAL_MB
from evertide.dataflow.description import Import
from evertide.external.runner import External
from evertide.external.write_out import FilePlace
from evertide.persist.push.notify import Notifier
from evertide.spark.application import HYDRATE_RECORDS, FillLimits, SparkApplication
from evertide.spark.bulk.host import BulkHost
from evertide.spark.class_archive import reading_options
from evertide.spark.conf import SessionSettings
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.holds import keep_holds
from evertide.spark.peek import PeekServer
from evertide.spark.reports import Facts
from evertide.spark.subscribe import Subscribes
from evertide.spark.worker import Worker
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp

# Replicas give way to adapters: answering clients comes first.
NICENESS = 5
# What the processes of the pool plan with: one in so many parts of the host's memory.
POOL_SHARE = 3

log = structlog.get_logger()


class CatalogFollower:
    """Carries the catalog's changes over to the worker and knows how far that is done."""

    def __init__(
        self,
        process: str,
        catalog: CatalogService,
        worker: Worker,
        external: External,
        subscribes: Subscribes,
    ) -> None:
        self._process = process
        self._catalog = catalog
        self._worker = worker
        self._external = external
        self._subscribes = subscribes
        self._follower = Follower()
        self._snapshot: Snapshot | None = None
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Follow until cancelled."""
        start = self._catalog.newest.catalog_ts
        async for change in self._catalog.subscribe_at(start):
            clusters = clusters_of(self._process, change.snapshot)
            writers = self._follower.writers
            wanted = self._follower.dataflows(change.snapshot, clusters)
            await self._worker.set_dataflows(wanted)
            await self._external.set_wanted(
                sources_of(change.snapshot, clusters), sinks_of(change.snapshot, clusters)
            )
            self._snapshot = change.snapshot
            if self._follower.writers != writers:
                self._subscribes.look_again(self._imports_left)
            self._moved.set()
            self._moved = asyncio.Event()

    async def wait_beyond(self, catalog_ts: Timestamp) -> None:
        """Returns once the catalog frontier is beyond this timestamp here."""
        while self._snapshot is None or self._snapshot.upper <= catalog_ts:
            await self._moved.wait()

    def statuses(self, relation: str) -> list[Facts]:
        """Rows of mz_hydration_statuses about what should run and cannot; and of what is known of
        sources and sinks."""
        if relation != HYDRATION:
            return self._external.statuses(relation)
        return [
            (global_id, cluster_id, False, None, None, why)
            for (global_id, cluster_id), why in self._follower.set_aside.items()
        ]

    def imports(self, global_ids: Sequence[GlobalId]) -> tuple[Import, ...]:
        """The collections of these ids in the newest snapshot."""
        assert self._snapshot is not None, "asked only after wait_beyond"
        return imports_by_id(global_ids, self._snapshot)

    def _imports_left(self, global_ids: Sequence[GlobalId]) -> tuple[Import, ...] | None:
        """The same; None if one of them was dropped."""
        assert self._snapshot is not None, "asked only once there is one"
        if any(self._snapshot.item_of(global_id) is None for global_id in global_ids):
            return None
        return self.imports(global_ids)


async def serve_replica(boot: Boot) -> int:
    """One replica from boot to exit code."""
    runtime = Path(boot.runtime)
    async with notifying(boot.config, runtime) as notifier:
        cache = runtime / f"cache-{boot.process}"
        return await _run(boot, await join_generation(boot, cache, notifier), notifier)


async def _run(boot: Boot, opened: Opened, notifier: Notifier) -> int:
    runtime = Path(boot.runtime)
    scratch = runtime / f"scratch-{boot.process}"
    driver = None
    if boot.config.tick_engine == "auto":
        driver = DriverEngine(Evaluator(scratch / "driver"))
    worker = Worker(opened.persist, opened.storage, driver, opened.oracle)
    unsubscribe = notifier.subscribe(lambda _: worker.wake())
    external = External(
        opened.persist, opened.txns, opened.storage, opened.clock, _sink_place(boot)
    )
    subscribes = Subscribes(worker, opened.storage, opened.storage.following)
    follower = CatalogFollower(boot.process, opened.catalog, worker, external, subscribes)
    size = _size(boot)
    settings = _settings(size, scratch / "spark")
    bulk = BulkHost(_bulk_settings(size, scratch / "bulk"), partial(launch_bulk, boot.process))
    application = SparkApplication(
        settings,
        worker,
        opened.storage,
        boot.config.tick_engine,
        bulk,
        FillLimits(size.hydrate_records or HYDRATE_RECORDS, size.fill_mb << 20),
    )
    server = PeekServer(worker, follower, application.select, subscribes, follower.statuses)
    await server.start(socket_path(runtime, boot.process))
    print("ready", flush=True)
    try:
        return await until_stopped(
            follower.run(),
            worker.run(),
            external.wait_failed(),
            subscribes.run(),
            application.run(),
            bulk.run(),
            keep_holds(opened.persist, worker),
            opened.catalog.wait_failed(),
            parent_gone(),
        )
    finally:
        unsubscribe()
        await external.close()
        await server.stop()
        await application.stop()
        await opened.close()


def _size(boot: Boot) -> Size:
    """One that was taken out of the table is as usual; the pool, which has none, takes no more than
    its share of the host."""
    if boot.size is None:
        return Size(memory_mb=max(this_host().memory_mb // POOL_SHARE, LEAST_LOCAL_MB))
    return size_table(boot.config.sizes).find(boot.size) or Size()


def _sink_place(boot: Boot) -> FilePlace | None:
    directory = boot.config.sink_dir
    return None if directory is None else FilePlace(directory, boot.environment_id)


def _settings(size: Size, directory: Path) -> SessionSettings:
    """What a size says of its Spark application."""
    return SessionSettings(
        directory,
        workers=size.cores,
        memory_mb=size.heap_mb,
        master=size.master,
        partitions=size.partitions,
        address=size.address,
        secret_file=None if size.secret_file is None else Path(size.secret_file),
        jvm_options=reading_options(),
        conf=size.conf,
    )


def _bulk_settings(size: Size, directory: Path) -> SessionSettings:
    """The same of the one for bulk work, which keeps nothing."""
    usual = _settings(size, directory)
    return replace(usual, memory_mb=size.bulk_heap_mb, bulk=True, partitions=0)


if __name__ == "__main__":
    uvloop.install()
    sys.exit(run_child("replica", serve_replica, niceness=NICENESS))
