"""Every implementation of every storage protocol, and the combinations that are offered."""

import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from evertide.catalog.durable.place import CatalogKind
from evertide.persist.store.attempts import Attempts, ChangePort
from evertide.persist.store.file import FileBlob
from evertide.persist.store.local_cache import CachedBlob
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.postgres_pool import Pool
from evertide.persist.store.postgres_port import PostgresPort
from evertide.persist.store.protocol import BlobStore, Consensus, Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.store.sqlite_writer import Commit
from evertide.vocab.ids import Epoch
from tests.catalog.environment import Environment
from tests.support.memory_port import CutPort, MemoryPortStore
from tests.support.postgres import own_schema
from tests.support.s3 import s3_blob


@pytest.fixture
def postgres_url(postgres_dsn: str) -> str:
    """A place of the test's own on the run's server."""
    return own_schema(postgres_dsn)


@pytest.fixture(params=["memory", "sqlite", "attempts in memory", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store
    match request.param:
        case "memory":
            opened = MemoryStore()
        case "sqlite":
            opened = SqliteStore(tmp_path / "consensus.db")
        case "attempts in memory":
            opened = MemoryPortStore()
        case "postgres":
            opened = PostgresStore(request.getfixturevalue("postgres_url"))
    yield opened
    await opened.close()


@dataclass(frozen=True, slots=True)
class OpenedPort:
    """A way into a store, and the store itself."""

    port: ChangePort
    store: Store


@pytest.fixture(params=["memory", "postgres"])
async def opened_port(request: pytest.FixtureRequest) -> AsyncIterator[OpenedPort]:
    if request.param == "memory":
        in_memory = MemoryPortStore()
        yield OpenedPort(in_memory.port, in_memory)
        return
    url = request.getfixturevalue("postgres_url")
    store, pool = PostgresStore(url), Pool(url)
    yield OpenedPort(PostgresPort(pool), store)
    await pool.close()
    await store.close()


@pytest.fixture(params=["memory", "file", "s3", "s3 with files"])
def blob(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlobStore]:
    match request.param:
        case "memory":
            yield MemoryBlob()
        case "file":
            yield FileBlob(tmp_path / "blob")
        case "s3":
            yield s3_blob(request.getfixturevalue("s3_endpoint"))
        case "s3 with files":
            inner = s3_blob(request.getfixturevalue("s3_endpoint"))
            with closing(CachedBlob(inner, tmp_path / "cache", 1024**2)) as cached:
                yield cached


@dataclass(frozen=True, slots=True)
class Place:
    """Where an environment may live."""

    store: Store
    blob: BlobStore
    # The same shard states, by a way that loses answers at random.
    unreliable: Callable[[Epoch, random.Random], Consensus]


@pytest.fixture(params=["memory", "sqlite and files", "postgres and files", "postgres and s3"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    match request.param:
        case "memory":
            in_memory = MemoryPortStore()
            yield Place(in_memory, MemoryBlob(), lambda e, rng: cut(in_memory.port, e, rng))
        case "sqlite and files":
            path, opened = tmp_path / "consensus.db", list[SqliteStore]()

            def failing(epoch: Epoch, rng: random.Random) -> Consensus:
                opened.append(SqliteStore(path, commit=commit_or_not(rng)))
                return opened[-1].consensus(epoch)

            opened.append(SqliteStore(path))
            yield Place(opened[0], FileBlob(tmp_path / "blob"), failing)
            for store in opened:
                await store.close()
        case "postgres and files" | "postgres and s3":
            in_files = request.param == "postgres and files"
            blob: BlobStore = FileBlob(tmp_path / "blob")
            if not in_files:
                blob = s3_blob(request.getfixturevalue("s3_endpoint"))
            url = request.getfixturevalue("postgres_url")
            postgres, pool = PostgresStore(url), Pool(url)
            yield Place(postgres, blob, lambda e, rng: cut(PostgresPort(pool), e, rng))
            await pool.close()
            await postgres.close()


def cut(port: ChangePort, epoch: Epoch, rng: random.Random) -> Consensus:
    return Attempts(CutPort(port, rng), epoch)


def commit_or_not(rng: random.Random) -> Commit:
    def commit(
        connection: sqlite3.Connection, statement: str, arguments: tuple[object, ...]
    ) -> int:
        fate, changed = rng.choice(["well", "before", "after"]), 0
        if fate != "before":
            changed = connection.execute(statement, arguments).rowcount
        if fate != "well":
            raise sqlite3.OperationalError("disk I/O error")
        return changed

    return commit


CATALOGS = [(kind, place) for place in ("memory", "sqlite", "postgres") for kind in CatalogKind]


@pytest.fixture(params=CATALOGS, ids=lambda param: f"{param[0]} in {param[1]}")
async def environment(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Environment]:
    """An environment that is not open yet, with each kind of catalog in each kind of store."""
    kind, place = request.param
    store: Store = MemoryStore()
    if place == "sqlite":
        store = SqliteStore(tmp_path / "consensus.db")
    elif place == "postgres":
        store = PostgresStore(request.getfixturevalue("postgres_url"))
    made = Environment(kind, store)
    yield made
    await made.close()
    await store.close()
