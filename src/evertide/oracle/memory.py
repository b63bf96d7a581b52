"""An oracle in the memory of one process, for tests and simulations."""

from evertide.vocab.clock import Clock
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp


class MemoryOracle:
    """Each call is one step of the event loop, so each is atomic."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._applied: dict[Timeline, Timestamp] = {}
        self._handed_out: dict[Timeline, Timestamp] = {}

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        return self._applied.get(timeline, MIN_TS)

    async def write_ts(self, timeline: Timeline) -> Timestamp:
        return await self.write_ts_block(timeline, 1)

    async def write_ts_block(self, timeline: Timeline, count: int) -> Timestamp:
        following = Timestamp(self._handed_out.get(timeline, MIN_TS) + 1)
        first = max(following, earliest_write_ts(timeline, self._clock))
        self._handed_out[timeline] = Timestamp(first + count - 1)
        return first

    async def apply_write(self, timeline: Timeline, write_ts: Timestamp) -> None:
        self._applied[timeline] = max(self._applied.get(timeline, MIN_TS), write_ts)
        self._handed_out[timeline] = max(self._handed_out.get(timeline, MIN_TS), write_ts)


def earliest_write_ts(timeline: Timeline, clock: Clock) -> Timestamp:
    """What a timeline asks of a new timestamp, beside being beyond the last: not to lag behind the
    wall clock. The catalog's is a plain counter."""
    match timeline:
        case Timeline.EPOCH_MS:
            return Timestamp(clock.now_ms())
        case Timeline.CATALOG:
            return MIN_TS
