"""One simulated process: the real parts of an adapter or a replica, over stores that fail."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from evertide.adapter.writing.committer import AskingCommitter, ClaimingCommitter, Committer
from evertide.adapter.writing.group_commit import GroupCommit
from evertide.catalog.durable.log import CatalogLog
from evertide.catalog.durable.openable import LogOpenableCatalog
from evertide.catalog.durable.persist import PersistLog, catalog_shard
from evertide.catalog.service import CatalogService
from evertide.controller.storage import Storage
from evertide.oracle.batching import BatchingOracle
from evertide.oracle.durable import DurableOracle
from evertide.oracle.protocol import TimestampOracle
from evertide.oracle.split import SplitOracle
from evertide.persist.faults import Fenced, StoreUnreachable
from evertide.persist.handle import PersistClient
from evertide.persist.leases import Leases
from evertide.persist.store.protocol import OracleRows
from evertide.persist.txn import (
    CommitOutcome,
    TableWrite,
    TimestampTaken,
    Txns,
    TxnsUpperMismatch,
)
from evertide.vocab.ids import EnvironmentId, Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp
from tests.sim.history import Readings, require
from tests.sim.loop import Process, SimLoop
from tests.sim.network import Hub, ProcessNotifier
from tests.sim.store import SimBlob, SimStore
from tests.support.owned import OURS

Role: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

TXNS = ShardId("txns")
ENVIRONMENT = EnvironmentId("simulated")
CATALOG = catalog_shard(ENVIRONMENT)
START_MS = 1_000_000
# Clocks of processes differ by less than this.
MAX_SKEW_MS = 2_000
LEASE_MS = 6_000


@dataclass(frozen=True, slots=True)
class Generation:
    """The epochs under which processes work; `oracle` counts in the oracle's own store."""

    epoch: Epoch
    oracle: Epoch


@dataclass(frozen=True, slots=True)
class Place:
    """What all processes share: everything outside them."""

    loop: SimLoop
    store: SimStore
    # None: timelines lie in the store, and a commit takes its timestamp there.
    oracle_store: SimStore | None
    blob: SimBlob
    hub: Hub
    readings: Readings
    grace_s: float
    cache_bytes: int


class ProcessClock:
    """A process's idea of the time of day."""

    def __init__(self, loop: SimLoop, process: Process) -> None:
        self._loop = loop
        self._process = process

    def now_ms(self) -> int:
        return wall_ms(self._loop, self._process.skew_ms)


def wall_ms(loop: SimLoop, skew_ms: int = 0) -> int:
    """The time of day."""
    return START_MS + int(loop.time() * 1_000) + skew_ms


class WatchedOracle:
    """An oracle whose every answer is compared with what was known when the question came."""

    def __init__(self, inner: TimestampOracle, readings: Readings) -> None:
        self._inner = inner
        self._readings = readings

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        at_least = self._readings.largest_read(timeline)
        read_ts = await self._inner.read_ts(timeline)
        self._readings.read(timeline, at_least, read_ts)
        return read_ts

    async def write_ts(self, timeline: Timeline) -> Timestamp:
        beyond = self._readings.largest_write(timeline)
        write_ts = await self._inner.write_ts(timeline)
        self._readings.written(timeline, beyond, write_ts)
        return write_ts

    async def apply_write(self, timeline: Timeline, write_ts: Timestamp) -> None:
        await self._inner.apply_write(timeline, write_ts)
        self._readings.applied(timeline, write_ts)


class WatchedTxns(Txns):
    """Commits that do not lose to the same other one twice, however far the clocks differ."""

    def __init__(self, client: PersistClient, txns_shard: ShardId) -> None:
        super().__init__(client, txns_shard)
        self._beaten_by = MIN_TS

    async def commit_claiming(
        self,
        writes: Mapping[ShardId, TableWrite],
        *,
        at: Timestamp,
        expected_upper: Timestamp | None = None,
    ) -> CommitOutcome | TimestampTaken:
        require(at >= self._beaten_by, f"tried at {at}, with the upper known at {self._beaten_by}")
        outcome = await super().commit_claiming(writes, at=at, expected_upper=expected_upper)
        if isinstance(outcome, TxnsUpperMismatch):
            self._beaten_by = max(self._beaten_by, outcome.actual)
        return outcome


class Node:
    """What a process of a generation works with. To be made in the process's own context."""

    def __init__(self, place: Place, process: Process, generation: Generation) -> None:
        self.place = place
        self.process = process
        self.epoch = generation.epoch
        self.clock = ProcessClock(place.loop, process)
        self.client = PersistClient(
            place.store.consensus(generation.epoch),
            place.blob,
            clock=self.clock,
            notifier=ProcessNotifier(place.hub, process),
            grace_s=place.grace_s,
            cache_bytes=place.cache_bytes,
            owner=OURS,
        )
        self.client.leases = Leases(self.client.machine, self.clock, lease_ms=LEASE_MS)
        self.oracle = self._oracle(generation)
        self.txns = WatchedTxns(self.client, TXNS)
        self.storage = Storage(self.client, self.txns)
        self._joining = asyncio.Lock()
        self._catalog: CatalogService | None = None
        self.writes = GroupCommit(self.txns, self._committer(), self.clock)

    def _oracle(self, generation: Generation) -> TimestampOracle:
        place = self.place
        oracle: TimestampOracle = self._batching(place.store.oracle_rows(generation.epoch))
        if place.oracle_store is not None:
            apart = self._batching(place.oracle_store.oracle_rows(generation.oracle))
            oracle = SplitOracle(catalog=oracle, data=apart)
        return WatchedOracle(oracle, place.readings)

    def _batching(self, rows: OracleRows) -> BatchingOracle:
        return BatchingOracle(DurableOracle(rows, self.clock))

    def _committer(self) -> Committer:
        if self.place.oracle_store is None:
            return ClaimingCommitter(self.txns, self.clock)
        return AskingCommitter(self.txns, self.oracle)

    def openable(self, client_for: Callable[[Epoch], PersistClient]) -> LogOpenableCatalog:
        """The catalog, before it is open."""

        async def log_for(epoch: Epoch) -> CatalogLog:
            return PersistLog(client_for(epoch), CATALOG)

        return LogOpenableCatalog(self.place.store, log_for, ENVIRONMENT, self.clock)

    async def catalog(self) -> CatalogService:
        """This process's copy, which it follows from the first time on."""
        async with self._joining:
            if self._catalog is None:
                durable = await self.openable(lambda _: self.client).join(self.epoch)
                service = CatalogService(durable, self.oracle)
                await service.start()
                self._catalog = service
                self.start(partial(_end_with, service), "catalog")
        return self._catalog

    def start(self, role: Role, name: str) -> asyncio.Task[None]:
        """Run it in this process. A fault of the store ends the process, as with code 3 or 4."""
        return self.place.loop.spawn(self.process, self._guard(role), name)

    async def _guard(self, role: Role) -> None:
        try:
            await role()
        except (Fenced, StoreUnreachable) as fault:
            self.place.loop.note(f"exits: {fault}")
            self.process.kill()
        except Exception as bug:  # noqa: BLE001 - whatever it is, it ends the simulation
            self.place.loop.fail(bug)


async def _end_with(service: CatalogService) -> None:
    """A process whose copy of the catalog follows no more must end."""
    raise await service.wait_failed()
