"""Stores over a network. Loaded only where a flag names one: their clients cost start-up time."""

from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from evertide.cli.config import UsageError, without_password
from evertide.persist.push.listen import PostgresNotifier
from evertide.persist.store.local_cache import CachedBlob
from evertide.persist.store.memory import MemoryStore
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.postgres_copy import copy_postgres, is_there
from evertide.persist.store.s3 import S3Blob

# Disk for copies of an object store's parts, per process.
CACHE_BYTES = 4 * 1024**3


def check_url(flag: str, url: str) -> None:
    """Raises UsageError for what PostgreSQL would not understand; asks nobody."""
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # What libpq says of it may quote the password.
        raise UsageError(f"--{flag} is not a URL that PostgreSQL understands") from None


async def open_postgres(url: str) -> PostgresStore:
    """Raises StoreUnreachable."""
    store = PostgresStore(url)
    await store.prepare()
    return store


async def copy_of_postgres(url: str) -> MemoryStore | None:
    """What the store holds now; None if nobody opened an environment there."""
    return await copy_postgres(url)


async def is_postgres_there(url: str) -> bool:
    """Whether there is a store; unlike opening it, asking does not make one."""
    return await is_there(url)


def postgres_notifier(url: str) -> PostgresNotifier:
    """Pushes by LISTEN and NOTIFY."""
    return PostgresNotifier(url)


def open_bucket(url: str, cache: Path) -> CachedBlob:
    """A bucket, with copies of parts in a directory of this process alone. Asks nothing yet."""
    return CachedBlob(_bucket(url), cache, CACHE_BYTES)


async def check_bucket(url: str) -> None:
    """Raises StoreUnreachable if the bucket cannot be written and read."""
    await _bucket(url).check()


def _bucket(url: str) -> S3Blob:
    try:
        return S3Blob.from_url(url)
    except ValueError as error:
        raise UsageError(f"--blob {without_password(url)}: {error}") from error
