"""Room taken by old versions of shard states is used again soon.

Every change of a state leaves the old one behind, whole. The server collects such versions by
itself, but looks for them once a minute, which may be a gigabyte later. So whoever writes much asks
for it.
"""

import asyncio
from contextlib import suppress
from typing import Final

import psycopg
import structlog
from psycopg.sql import SQL, Identifier

from evertide.persist.faults import PersistFault
from evertide.persist.store.attempts import NotReached
from evertide.persist.store.postgres_pool import Pool

# Between two collections by this process.
_WRITTEN_BYTES: Final = 64 * 1024**2

_log = structlog.get_logger()


class Upkeep:
    """Counts what this process writes, and collects in the background when it is much."""

    def __init__(self, pool: Pool, *, written_bytes: int = _WRITTEN_BYTES) -> None:
        self._pool = pool
        self._most_bytes = written_bytes
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None

    def wrote(self, size: int) -> None:
        """So many bytes of states have been replaced, or will be."""
        self._bytes += size
        if self._bytes >= self._most_bytes and (self._task is None or self._task.done()):
            self._bytes = 0
            self._task = asyncio.create_task(self._collect())

    async def close(self) -> None:
        """Leave the rest to the server."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _collect(self) -> None:
        try:
            session = await self._pool.session()
            try:
                table = Identifier(session.schema, "shards")
                # Another process at it does the same; and the room is needed again at once.
                await session.connection.execute(
                    SQL("VACUUM (SKIP_LOCKED, TRUNCATE OFF) {}").format(table)
                )
            finally:
                await session.connection.close()
        except (NotReached, PersistFault, psycopg.Error) as error:
            _log.info("old versions of states were not collected", reason=str(error).strip())
