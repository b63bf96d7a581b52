"""The oracle whose state is one row per timeline in a store that all processes share.

Every call is one store transaction that also checks the epoch; nothing is cached, because a cached
reading could miss another process's write that finished before the question was asked.
"""

from evertide.oracle.memory import earliest_write_ts
from evertide.persist.store.protocol import OracleRows
from evertide.vocab.clock import Clock
from evertide.vocab.timestamp import Timeline, Timestamp


class DurableOracle:
    """Linearizable because the store's rows are."""

    def __init__(self, rows: OracleRows, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        return (await self._rows.read(timeline)).read_ts

    async def write_ts(self, timeline: Timeline) -> Timestamp:
        return await self.write_ts_block(timeline, 1)

    async def write_ts_block(self, timeline: Timeline, count: int) -> Timestamp:
        earliest = earliest_write_ts(timeline, self._clock)
        return await self._rows.allocate(timeline, earliest, count)

    async def apply_write(self, timeline: Timeline, write_ts: Timestamp) -> None:
        await self._rows.apply(timeline, write_ts)
