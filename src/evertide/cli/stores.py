"""Flags to concrete stores; the only place that names them."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol

from evertide.adapter.writing.committer import AskingCommitter, ClaimingCommitter, Committer
from evertide.catalog.durable.place import CatalogKind, CatalogPlace, WrongCatalog, check_kind
from evertide.catalog.durable.protocol import IncompatibleVersion, WritableCatalog
from evertide.catalog.service import CatalogService
from evertide.cli.blob_owner import check_blob_owner, open_blob_store
from evertide.cli.config import (
    Boot,
    Config,
    UsageError,
    is_postgres,
    is_s3,
    store_path,
    without_password,
)
from evertide.cli.runtime import HUB_SOCKET
from evertide.controller.secret_sweep import SecretSweeper
from evertide.controller.storage import Storage
from evertide.oracle.batching import BatchingOracle
from evertide.oracle.durable import DurableOracle
from evertide.oracle.protocol import TimestampOracle
from evertide.oracle.split import SplitOracle
from evertide.persist.faults import StoreUnreachable
from evertide.persist.handle import PersistClient
from evertide.persist.owner import Ownership
from evertide.persist.push.hub import HubClient
from evertide.persist.push.notify import Notifier
from evertide.persist.store.attempts import PATIENCE_S
from evertide.persist.store.file import FileBlob
from evertide.persist.store.memory import MemoryStore
from evertide.persist.store.protocol import BlobStore, Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.store.sqlite_copy import copy_sqlite
from evertide.persist.txn import Txns
from evertide.persist.upkeep.sweep import Sweeper
from evertide.vocab.clock import Clock, SystemClock
from evertide.vocab.ids import EnvironmentId, Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, step_back

TXNS_SHARD = ShardId("txns")
_ENVIRONMENT_NOTE = "environment"
# Which store has the generation's timelines, and by which name a separate one knows itself.
_ORACLE_NOTE, _NAME_NOTE = "oracle", "name"


class ProcessNotifier(Notifier, Protocol):
    """A notifier that reaches other processes."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...


async def open_store(url: str) -> Store:
    """The store that a flag names; raises StoreUnreachable."""
    if is_postgres(url):
        store: Store = await _remote().open_postgres(url)
        return store
    return SqliteStore(store_path(url, "sqlite"))


async def copy_store(url: str) -> MemoryStore | None:
    """What the store holds now, to be looked at without touching it; None: no environment."""
    if is_postgres(url):
        copied: MemoryStore | None = await _remote().copy_of_postgres(url)
        return copied
    return await asyncio.to_thread(copy_sqlite, store_path(url, "sqlite"))


async def check_exists(config: Config) -> None:
    """Refuse to make an environment where only one that is there was asked for."""
    if is_postgres(config.consensus):
        there = await _remote().is_postgres_there(config.consensus)
    else:
        there = store_path(config.consensus, "sqlite").exists()
    if not there:
        raise no_environment(config)


def no_environment(config: Config) -> UsageError:
    """What whoever only looks at an environment is told where there is none."""
    return UsageError(
        f"no environment at {config.data or without_password(config.consensus)}:"
        " start one with evertide serve"
    )


def _remote() -> ModuleType:
    """cli/remote.py, once it is needed."""
    return import_module("evertide.cli.remote")


def open_blob(config: Config, cache: Path) -> BlobStore:
    """The blob store that the flags name; `cache` is a directory of this process alone."""
    if is_s3(config.blob):
        bucket: BlobStore = _remote().open_bucket(config.blob, cache)
        return bucket
    return FileBlob(store_path(config.blob, "file"))


async def check_blob(config: Config) -> None:
    """Tell a bucket that cannot be used now, not when the first large write comes."""
    if is_s3(config.blob):
        await _remote().check_bucket(config.blob)


@asynccontextmanager
async def notifying(config: Config, runtime: Path) -> AsyncIterator[ProcessNotifier]:
    """How this process hears of others' changes: from the store, or from the supervisor's hub."""
    notifier: ProcessNotifier
    if is_postgres(config.consensus):
        notifier = _remote().postgres_notifier(config.consensus)
    else:
        notifier = HubClient(runtime / HUB_SOCKET)
    await notifier.start()
    try:
        yield notifier
    finally:
        await notifier.close()


@dataclass(slots=True)
class Stores:
    """The places that hold an environment."""

    consensus: Store
    # None: the timelines live in the consensus store.
    oracle: Store | None
    blob: BlobStore
    ownership: Ownership = field(init=False)

    def __post_init__(self) -> None:
        self.ownership = Ownership(self.consensus, self.blob)

    async def close(self) -> None:
        """Finish what is queued, then let go."""
        await self.consensus.close()
        if self.oracle is not None:
            await self.oracle.close()


async def open_stores(config: Config, cache: Path) -> Stores:
    """All places that the flags name; raises StoreUnreachable."""
    consensus = await open_store(config.consensus)
    oracle = await open_store(config.oracle) if config.oracle != config.consensus else None
    return Stores(consensus, oracle, open_blob(config, cache))


async def _open_patiently(config: Config, cache: Path) -> Stores:
    """As open_stores, for a generation that runs: a store that is away just now may come back."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await open_stores(config, cache)
        except StoreUnreachable:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.5)


async def environment_id(config: Config, store: Store) -> EnvironmentId:
    """The environment's id, made when its consensus store is first used and never changed."""
    found = await store.find_note(_ENVIRONMENT_NOTE)
    if found is not None:
        return EnvironmentId(found)
    wanted = str(uuid.uuid4())
    # Where the first release kept it.
    earlier = None if config.data is None else Path(config.data) / "environment"
    if earlier is not None and earlier.exists():
        wanted = earlier.read_text().strip()
    elif await store.current_epoch() > 0:
        # Another id would mean another catalog, and an environment that seems to be empty.
        raise UsageError(
            "the consensus store holds an environment of the first release, whose id is in its"
            " data directory: start it once with --data naming that directory"
        )
    return EnvironmentId(await store.note(_ENVIRONMENT_NOTE, wanted))


@dataclass(frozen=True, slots=True)
class Generation:
    """Which environment, and under which epochs it is written now."""

    environment: EnvironmentId
    epoch: Epoch
    # That of a separate oracle store; the same where there is none.
    oracle_epoch: Epoch


@dataclass(slots=True)
class Opened:
    """What a process of a generation works with."""

    generation: Generation
    clock: Clock
    stores: Stores
    persist: PersistClient
    txns: Txns
    oracle: TimestampOracle
    catalog: CatalogService
    storage: Storage

    def sweeper(self) -> Sweeper:
        """What removes parts that nobody refers to; one process of a generation runs it."""
        return Sweeper(
            self.persist, self.stores.consensus.consensus(self.generation.epoch), self.clock
        )

    def secret_sweeper(self) -> SecretSweeper:
        """What removes values of secrets that the catalog does not name; the same process does."""
        return SecretSweeper(
            self.catalog, self.persist.blob, self.clock, self.generation.environment
        )

    def committer(self) -> Committer:
        """How table writes get their timestamps, which depends on where those live."""
        if self.stores.oracle is None:
            return ClaimingCommitter(self.txns, self.clock)
        return AskingCommitter(self.txns, self.oracle)

    async def close(self) -> None:
        """Finish what is queued, then let go of the stores."""
        await self.catalog.close()
        await self.persist.__aexit__()
        await self.stores.close()


class Clients:
    """One persist client per epoch: opening a catalog is what decides the epoch."""

    def __init__(self, stores: Stores, clock: Clock, notifier: Notifier) -> None:
        self._stores = stores
        if isinstance(stores.consensus, SqliteStore) and isinstance(notifier, HubClient):
            stores.consensus.writer.ring = notifier.ring
        self._clock = clock
        self._notifier = notifier
        self._made: dict[Epoch, PersistClient] = {}

    def client_for(self, epoch: Epoch) -> PersistClient:
        """The client that works under this epoch."""
        if epoch not in self._made:
            consensus = self._stores.consensus.consensus(epoch)
            self._made[epoch] = PersistClient(
                consensus,
                self._stores.blob,
                clock=self._clock,
                notifier=self._notifier,
                owner=self._stores.ownership,
            )
        return self._made[epoch]

    async def keep_only(self, epoch: Epoch) -> None:
        """End the clients of other epochs, which opening left behind."""
        for other in [made for made in self._made if made != epoch]:
            await self._made.pop(other).__aexit__()


def wanted_catalog(config: Config) -> CatalogKind | None:
    """The catalog that the flags ask for; None: whichever there is."""
    return None if config.catalog is None else CatalogKind(config.catalog)


async def check_catalog(config: Config, place: CatalogPlace) -> None:
    """Raises UsageError if the flags ask for another catalog than the environment has."""
    try:
        check_kind(wanted_catalog(config), await place.kind() or CatalogKind.PERSIST)
    except WrongCatalog as fault:
        raise _wrong_catalog(fault) from fault


def _wrong_catalog(fault: WrongCatalog) -> UsageError:
    return UsageError(
        f"--catalog {fault.wanted}: {fault}; leave the flag out, or move the catalog with"
        f" evertide catalog-debug move --to {fault.wanted}"
    )


async def open_generation(config: Config, cache: Path, notifier: Notifier) -> Opened:
    """Open the environment for writing: raises the epoch, which fences older generations.

    A separate oracle store is raised first: from then on an older generation can answer no read, so
    none of its processes serves a timestamp while the new generation commits.
    """
    clock, stores = SystemClock(), await open_stores(config, cache)
    await check_blob(config)
    environment = await environment_id(config, stores.consensus)
    await check_blob_owner(config, stores.consensus, stores.blob, environment)
    oracle_name = await _oracle_name(stores)
    clients = Clients(stores, clock, notifier)
    place = CatalogPlace(stores.consensus, clients.client_for, environment)
    durable, oracle_epoch = await _open_catalog(config, stores, place, clock)
    await clients.keep_only(durable.epoch)
    await open_blob_store(
        config, stores.consensus, stores.blob, stores.ownership, environment, durable.epoch
    )
    await stores.consensus.set_note(durable.epoch, _ORACLE_NOTE, oracle_name)
    opened = await _opened(durable, oracle_epoch, stores, clients, environment)
    await _catch_up(opened)
    return opened


async def _open_catalog(
    config: Config, stores: Stores, place: CatalogPlace, clock: Clock
) -> tuple[WritableCatalog, Epoch | None]:
    """The open catalog, and the epoch of a separate oracle store.

    Raises UsageError for a catalog that these flags and this program cannot open; then nobody is
    fenced.
    """
    openable = place.openable(clock)
    try:
        await place.choose(wanted_catalog(config))
        oracle_epoch = None
        if stores.oracle is not None:
            if await openable.is_initialized():
                await openable.check_open()
            oracle_epoch = await stores.oracle.raise_epoch()
        durable = await openable.open()
    except WrongCatalog as fault:
        raise _wrong_catalog(fault) from fault
    except IncompatibleVersion as fault:
        raise UsageError(f"{fault}: start the program that wrote it, or a later one") from fault
    await place.settle(durable.epoch)
    return durable, oracle_epoch


async def join_generation(
    boot: Boot, cache: Path, notifier: Notifier, *, by_hand: bool = False
) -> Opened:
    """Work in a generation that is open already; fails if it has been fenced meanwhile.

    What joins `by_hand` draws no incarnation: over a copy of consensus that nobody has opened it
    would pass for the original's. So it leaves what it might delete to the supervisor's sweep.
    """
    clock, stores = SystemClock(), await _open_patiently(boot.config, cache)
    clients = Clients(stores, clock, notifier)
    environment = EnvironmentId(boot.environment_id)
    await check_blob_owner(boot.config, stores.consensus, stores.blob, environment, opens=False)
    place = CatalogPlace(stores.consensus, clients.client_for, environment)
    await check_catalog(boot.config, place)
    durable = await place.openable(clock).join(Epoch(boot.epoch))
    await place.check_joined()
    if not by_hand:
        await stores.ownership.join(durable.epoch)
    own = await _oracle_name(stores)
    if await stores.consensus.note(_ORACLE_NOTE, own) != own:
        # Its reads would miss others' writes, and theirs its own.
        await stores.close()
        raise UsageError("--oracle names another store than the one of the running environment")
    return await _opened(durable, Epoch(boot.oracle_epoch), stores, clients, environment)


async def _opened(
    durable: WritableCatalog,
    oracle_epoch: Epoch | None,
    stores: Stores,
    clients: Clients,
    environment: EnvironmentId,
) -> Opened:
    clock, persist = SystemClock(), clients.client_for(durable.epoch)
    oracle = _oracle(stores.consensus, durable.epoch, clock)
    if stores.oracle is not None and oracle_epoch is not None:
        oracle = SplitOracle(catalog=oracle, data=_oracle(stores.oracle, oracle_epoch, clock))
    catalog = CatalogService(durable, oracle)
    txns = Txns(persist, TXNS_SHARD)
    await txns.ensure()
    await catalog.start()
    return Opened(
        generation=Generation(
            environment, durable.epoch, durable.epoch if oracle_epoch is None else oracle_epoch
        ),
        clock=clock,
        stores=stores,
        persist=persist,
        txns=txns,
        oracle=oracle,
        catalog=catalog,
        storage=Storage(persist, txns),
    )


async def _oracle_name(stores: Stores) -> str:
    """The same from everywhere, whatever its location is called there; "": the consensus store."""
    if stores.oracle is None:
        return ""
    name = await stores.oracle.note(_NAME_NOTE, uuid.uuid4().hex)
    if name == await stores.consensus.note(_NAME_NOTE, uuid.uuid4().hex):
        raise UsageError("--oracle names the consensus store: leave it out")
    return name


def _oracle(store: Store, epoch: Epoch, clock: Clock) -> TimestampOracle:
    durable = DurableOracle(store.oracle_rows(epoch), clock)
    # A read of SQLite takes microseconds, a round of batching longer.
    return durable if isinstance(store, SqliteStore) else BatchingOracle(durable)


async def _catch_up(opened: Opened) -> None:
    """An oracle that was not there for earlier writes learns of them before it answers anybody.

    Every acknowledged table write lies below the upper of all tables.
    """
    upper = await opened.txns.upper()
    if upper > MIN_TS:
        await opened.oracle.apply_write(Timeline.EPOCH_MS, step_back(upper))
