"""A new environment in memory, and the processes that tests start over it."""

from evertide.catalog.durable.log import CatalogLog
from evertide.catalog.durable.openable import LogOpenableCatalog
from evertide.catalog.durable.place import CatalogKind, CatalogPlace
from evertide.catalog.ops import Op
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.oracle.durable import DurableOracle
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.push.notify import LocalNotifier
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import BlobStore, Consensus, Store
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import ENVIRONMENT
from tests.support.owned import OURS


class Environment:
    """One store, and the processes that tests start over it."""

    def __init__(
        self,
        kind: CatalogKind = CatalogKind.PERSIST,
        store: Store | None = None,
        blob: BlobStore | None = None,
    ) -> None:
        self.kind = kind
        self.store: Store = store or MemoryStore()
        self.blob: BlobStore = blob or MemoryBlob()
        self.notifier = LocalNotifier()
        self.clock = ManualClock()
        self._services: list[CatalogService] = []
        self._clients: list[PersistClient] = []

    def place(self) -> CatalogPlace:
        return CatalogPlace(self.store, self.client_for, ENVIRONMENT)

    def log(self, epoch: Epoch) -> CatalogLog:
        return self.place().log(self.kind, epoch)

    def openable(self) -> LogOpenableCatalog:
        async def log_for(epoch: Epoch) -> CatalogLog:
            return self.log(epoch)

        return LogOpenableCatalog(self.store, log_for, ENVIRONMENT, self.clock)

    def client_for(self, epoch: Epoch) -> PersistClient:
        client = PersistClient(self.consensus(epoch), self.blob, notifier=self.notifier, owner=OURS)
        self._clients.append(client)
        return client

    def consensus(self, epoch: Epoch) -> Consensus:
        return self.store.consensus(epoch)

    def oracle(self, epoch: Epoch) -> DurableOracle:
        return DurableOracle(self.store.oracle_rows(epoch), self.clock)

    async def serve(self) -> CatalogService:
        """A new generation."""
        catalog = await self.openable().open()
        return await self._started(CatalogService(catalog, self.oracle(catalog.epoch)))

    async def join(self) -> CatalogService:
        """One more process of the current generation."""
        openable = self.openable()
        catalog = await openable.join(await openable.current_epoch())
        return await self._started(CatalogService(catalog, self.oracle(catalog.epoch)))

    async def _started(self, service: CatalogService) -> CatalogService:
        await service.start()
        self._services.append(service)
        return service

    async def close(self) -> None:
        for service in self._services:
            await service.close()
        for client in self._clients:
            await client.__aexit__()


async def commit(service: CatalogService, *ops: Op) -> Snapshot:
    """Decide and append, again and again until no one else was first; the snapshot with it."""
    while True:
        snapshot = await service.current()
        result = transact(snapshot, ops, now_ms=3_000, user="materialize")
        outcome = await service.compare_and_append(result.updates, expected_upper=snapshot.upper)
        if isinstance(outcome, Appended):
            return await service.snapshot_at(Timestamp(outcome.upper - 1))
