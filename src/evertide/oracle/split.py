"""Timelines in two places: the catalog's beside the catalog, the data's in a store of its own."""

from evertide.oracle.protocol import TimestampOracle
from evertide.vocab.timestamp import Timeline, Timestamp


class SplitOracle:
    """Each timeline lives in one place, so each is as linearizable as that place."""

    def __init__(self, *, catalog: TimestampOracle, data: TimestampOracle) -> None:
        self._by_timeline = {Timeline.CATALOG: catalog, Timeline.EPOCH_MS: data}

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        return await self._by_timeline[timeline].read_ts(timeline)

    async def write_ts(self, timeline: Timeline) -> Timestamp:
        return await self._by_timeline[timeline].write_ts(timeline)

    async def apply_write(self, timeline: Timeline, write_ts: Timestamp) -> None:
        await self._by_timeline[timeline].apply_write(timeline, write_ts)
