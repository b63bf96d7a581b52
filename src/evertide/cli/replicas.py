"""The supervisor's part in replicas: their processes, reports, and what the catalog has pending."""

from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path

from evertide.adapter.ddl.append import append_with_shards
from evertide.cli.config import Boot
from evertide.cli.local_orchestrator import LocalOrchestrator, Observers
from evertide.cli.memory_groups import memory_groups
from evertide.cli.report_server import ReportServer
from evertide.cli.sizes import size_table
from evertide.cli.stores import Opened
from evertide.cli.watch import Watch
from evertide.controller.compute import ComputeClient, socket_path
from evertide.controller.dropped import DropKeeper
from evertide.controller.expiry import ExpiryKeeper
from evertide.controller.orchestrator import SUPERVISOR, wanted_processes
from evertide.controller.readiness import Readiness
from evertide.controller.reconfiguration import ReconfigurationKeeper
from evertide.controller.replacements import ReplacementKeeper
from evertide.controller.restarts import RestartKeeper
from evertide.controller.statuses import Statuses


class ReplicaKeeper:
    """Runs exactly the replica processes that the catalog asks for, and tells about them."""

    def __init__(self, boot: Boot, opened: Opened, fatal: Callable[[int], None]) -> None:
        self._runtime = Path(boot.runtime)
        self._catalog = opened.catalog
        self._clock = opened.clock
        self._compute = ComputeClient(self._runtime)
        self._replacements = ReplacementKeeper(
            opened.catalog,
            Readiness(opened.storage, self._compute, opened.oracle),
            partial(append_with_shards, opened.catalog, opened.clock),
        )
        self._observers = Observers(
            Statuses(opened.clock),
            Watch(opened.clock, memory_groups()),
            RestartKeeper(opened.catalog, opened.clock),
            fatal,
        )
        self._orchestrator = LocalOrchestrator(boot, size_table(boot.config.sizes), self._observers)
        statuses, watch = self._observers.statuses, self._observers.watch
        self._reports = ReportServer(
            {
                "mz_cluster_replica_statuses": statuses.current,
                "mz_cluster_replica_status_history": statuses.history,
                "mz_cluster_replica_metrics": watch.current,
                "mz_cluster_replica_metrics_history": watch.history,
            }
        )

    async def start(self) -> None:
        """Be there to be asked before anybody can."""
        await self._reports.start(socket_path(self._runtime, SUPERVISOR))

    def parts(self) -> tuple[Coroutine[None, None, None], ...]:
        """All that must go on for ever; one that ends, ends the supervisor with its reason."""
        catalog, clock = self._catalog, self._clock
        return (
            self._follow(),
            self._observers.watch.run(),
            self._observers.restarts.run(),
            ReconfigurationKeeper(catalog, self._compute, clock).run(),
            ExpiryKeeper(catalog, clock).run(),
            self._replacements.run(),
            DropKeeper(catalog, clock, partial(append_with_shards, catalog, clock)).run(),
        )

    async def _follow(self) -> None:
        async for change in self._catalog.subscribe_at(self._catalog.newest.catalog_ts):
            self._orchestrator.ensure(wanted_processes(change.snapshot))

    async def stop(self) -> None:
        """End the processes."""
        await self._orchestrator.stop()
        await self._reports.stop()
        self._compute.close()
