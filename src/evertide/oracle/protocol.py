"""What an oracle answers, per timeline."""

from typing import Protocol

from evertide.vocab.timestamp import Timeline, Timestamp


class TimestampOracle(Protocol):
    """Linearizable over all processes of an environment. Raises Fenced under an old epoch."""

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        """The largest applied write, never the clock; 0 before the first.

        Covers every apply_write that returned before this was called.
        """
        ...

    async def write_ts(self, timeline: Timeline) -> Timestamp:
        """A timestamp beyond all handed out or applied before: max(last + 1, wall clock).

        The catalog timeline is a plain counter and does not look at the clock.
        """
        ...

    async def apply_write(self, timeline: Timeline, write_ts: Timestamp) -> None:
        """Reads from now on see this write. Smaller ones than the largest change nothing."""
        ...


class BlockOracle(TimestampOracle, Protocol):
    """An oracle that hands out several timestamps for the price of one."""

    async def write_ts_block(self, timeline: Timeline, count: int) -> Timestamp:
        """The first of `count` consecutive timestamps, each as good as one from write_ts."""
        ...
