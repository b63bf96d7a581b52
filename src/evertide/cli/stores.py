"""Flags to concrete stores; the only place that names them."""

import uuid
from dataclasses import dataclass
from pathlib import Path

from evertide.catalog.durable.persist import PersistOpenableCatalog
from evertide.catalog.durable.protocol import WritableCatalog
from evertide.catalog.service import CatalogService
from evertide.cli.config import Boot, Config, store_path
from evertide.controller.storage import Storage
from evertide.oracle.durable import DurableOracle
from evertide.oracle.protocol import TimestampOracle
from evertide.persist.handle import PersistClient
from evertide.persist.notify import Notifier
from evertide.persist.store.file import FileBlob
from evertide.persist.store.protocol import Blob, Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.txn import Txns
from evertide.vocab.clock import Clock, SystemClock
from evertide.vocab.ids import EnvironmentId, Epoch, ShardId

TXNS_SHARD = ShardId("txns")
HUB_SOCKET = "hub.sock"


def open_store(config: Config) -> Store:
    """The consensus store that the flags name."""
    return SqliteStore(store_path(config.consensus, "sqlite"))


def open_blob(config: Config) -> Blob:
    """The blob store that the flags name."""
    return FileBlob(store_path(config.blob, "file"))


def environment_id(config: Config) -> EnvironmentId:
    """The environment's id, made when the data directory is first used and never changed."""
    path = Path(config.data) / "environment"
    if not path.exists():
        fresh = path.with_suffix(f".{uuid.uuid4()}")
        fresh.write_text(str(uuid.uuid4()))
        try:
            path.hardlink_to(fresh)  # fails if another process was first: theirs counts
        except FileExistsError:
            pass
        fresh.unlink()
    return EnvironmentId(path.read_text().strip())


@dataclass(slots=True)
class Opened:
    """What a process of a generation works with."""

    clock: Clock
    epoch: Epoch
    store: Store
    persist: PersistClient
    txns: Txns
    oracle: TimestampOracle
    catalog: CatalogService
    storage: Storage

    async def close(self) -> None:
        """Finish what is queued, then let go of the stores."""
        await self.catalog.close()
        await self.persist.__aexit__()
        await self.store.close()


class Clients:
    """One persist client per epoch: opening a catalog is what decides the epoch."""

    def __init__(self, store: Store, blob: Blob, clock: Clock, notifier: Notifier) -> None:
        self._store = store
        self._blob = blob
        self._clock = clock
        self._notifier = notifier
        self._made: dict[Epoch, PersistClient] = {}

    def client_for(self, epoch: Epoch) -> PersistClient:
        """The client that works under this epoch."""
        if epoch not in self._made:
            consensus = self._store.consensus(epoch)
            self._made[epoch] = PersistClient(
                consensus, self._blob, clock=self._clock, notifier=self._notifier
            )
        return self._made[epoch]


async def open_generation(config: Config, environment: EnvironmentId, notifier: Notifier) -> Opened:
    """Open the environment for writing: raises the epoch, which fences older generations."""
    clock, store = SystemClock(), open_store(config)
    clients = Clients(store, open_blob(config), clock, notifier)
    openable = PersistOpenableCatalog(store, clients.client_for, environment, clock)
    return await _opened(await openable.open(), store, clients, clock)


async def join_generation(boot: Boot, notifier: Notifier) -> Opened:
    """Work in a generation that is open already; fails if it has been fenced meanwhile."""
    clock, store = SystemClock(), open_store(boot.config)
    clients = Clients(store, open_blob(boot.config), clock, notifier)
    environment = EnvironmentId(boot.environment_id)
    openable = PersistOpenableCatalog(store, clients.client_for, environment, clock)
    return await _opened(await openable.join(Epoch(boot.epoch)), store, clients, clock)


async def _opened(durable: WritableCatalog, store: Store, clients: Clients, clock: Clock) -> Opened:
    persist = clients.client_for(durable.epoch)
    # Not batched: a read of SQLite takes microseconds, a round of batching longer.
    oracle = DurableOracle(store.oracle_rows(durable.epoch), clock)
    catalog = CatalogService(durable, oracle)
    txns = Txns(persist, TXNS_SHARD)
    await txns.ensure()
    await catalog.start()
    return Opened(
        clock, durable.epoch, store, persist, txns, oracle, catalog, Storage(persist, txns)
    )
