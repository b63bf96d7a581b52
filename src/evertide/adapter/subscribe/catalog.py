"""Changes of a query over system relations, for one subscription.

Their rows are a function of the catalog: whenever that changes the query is asked again, and what
differs is told. The catalog has times of its own, so a change is told at the first time of data
that was not told yet when it was seen, and is readable or about to be.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from evertide.adapter.environment import Environment
from evertide.adapter.subscribe.feed import Batch, add_up
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import Timeline, Timestamp, step_forward
from evertide.vocab.update import Update

Waited: TypeAlias = "asyncio.Future[Snapshot | SqlError]"

# How often whoever wants to know is told that time went on.
_PROGRESS_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The query, as a function of the catalog; `timed`: somebody wants to know that time went on.

    Without `snapshot` what there is at the beginning is not told.
    """

    rows_at: Callable[[Snapshot], Awaitable[Sequence[Row]]]
    types: tuple[SqlType, ...]
    as_of: Timestamp
    snapshot: bool
    timed: bool


class CatalogSource:
    """Implements Source."""

    def __init__(self, env: Environment, asked: Followed, begin: Snapshot) -> None:
        self._env = env
        self._asked = asked
        # The catalog that was asked last; the first time it still has to be.
        self._seen = begin
        self._begun = False
        self._rows: Sequence[Row] = ()
        self._frontier = asked.as_of
        self._failed: Waited = asyncio.get_running_loop().create_future()

    async def next_batch(self) -> Batch:
        while self._begun:
            snapshot = await self._change()
            read_ts = await self._env.oracle.read_ts(Timeline.EPOCH_MS)
            if snapshot is not None:
                batch = await self._differences(snapshot, max(read_ts, self._frontier))
                if batch.updates or self._asked.timed:
                    return batch
            elif read_ts >= self._frontier:
                self._frontier = step_forward(read_ts)
                return Batch((), self._frontier)
        batch = await self._differences(self._seen, self._frontier)
        self._begun = True
        return batch if self._asked.snapshot else Batch((), batch.upper)

    async def _change(self) -> Snapshot | None:
        """The catalog once it has changed; None: only time went on."""
        changed: Waited = asyncio.create_task(self._newer())
        timeout_s = _PROGRESS_S if self._asked.timed else None
        try:
            done, _ = await asyncio.wait(
                [changed, self._failed], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            changed.cancel()
        if self._failed in done:
            done = {self._failed}
        found = next((one.result() for one in done), None)
        if isinstance(found, SqlError):
            raise found
        return found

    async def _newer(self) -> Snapshot | SqlError:
        return await self._env.catalog.snapshot_at(self._seen.upper)

    async def _differences(self, snapshot: Snapshot, at: Timestamp) -> Batch:
        rows = await self._asked.rows_at(snapshot)
        updates = [Update(row, at, -1) for row in self._rows]
        updates += [Update(row, at, 1) for row in rows]
        self._rows, self._seen, self._frontier = rows, snapshot, step_forward(at)
        return Batch(add_up(updates, self._asked.types), self._frontier)

    def fail(self, failure: SqlError) -> None:
        if not self._failed.done():
            self._failed.set_result(failure)

    def close(self) -> None:
        self._rows = ()
