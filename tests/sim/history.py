"""What clients asked for and were told, in the order in which it happened.

Nothing here is part of any process: it is what people outside remember, whoever crashes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp
from evertide.vocab.update import Update
from tests.sim.loop import SimLoop

# Every collection has these columns: what kind of row, a value, and which operation wrote it.
DESC: Final = relation_desc(("kind", TEXT), ("value", INT8), ("operation", INT8))

Rows: TypeAlias = Counter[Row]
Diffs: TypeAlias = Sequence[tuple[Row, int]]


class Violation(AssertionError):
    """A promise of the storage layer was broken."""


def require(kept: bool, promise: str) -> None:
    """Raise unless the promise was kept."""
    if not kept:
        raise Violation(promise)


@dataclass(slots=True)
class Write:
    """Rows that one client wants in, or out of, some tables at one timestamp.

    At least one of the rows that come names the operation, so that it can be found in a table.
    """

    operation: int
    process: str
    epoch: Epoch
    diffs: Mapping[ShardId, Diffs]
    invoked: int
    # Timestamps up to this one had been seen by somebody when it began.
    seen_before: Timestamp
    acknowledged: int | None = None
    write_ts: Timestamp = MIN_TS
    # The client was told that it did not happen, and will not.
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """What a client saw in a collection."""

    process: str
    shard_id: ShardId
    as_of: Timestamp
    rows: Rows


@dataclass(slots=True)
class Followed:
    """What a listener was given: updates from `lower` on, complete below `upper`."""

    process: str
    shard_id: ShardId
    lower: Timestamp
    upper: Timestamp
    updates: list[Update] = field(default_factory=list)
    # It goes on for ever, so it must be told, or look by itself.
    listening: bool = False

    def add(self, updates: Sequence[Update], upper: Timestamp) -> None:
        """The next ones."""
        require(upper > self.upper, f"a listener's upper moves on: {self.upper} to {upper}")
        times = [self.upper, *(update.ts for update in updates), Timestamp(upper - 1)]
        require(sorted(times) == times, f"a listener was given updates in the order {times}")
        self.updates.extend(updates)
        self.upper = upper


@dataclass(slots=True)
class Held:
    """A hold that its owner relies on, until `released`; a lease, until `until_s` at most."""

    shard_id: ShardId
    owner: str
    hold_ts: Timestamp
    taken: int
    until_s: float
    released: int | None = None


@dataclass(frozen=True, slots=True)
class Forgot:
    """A table was dropped, at some moment between these."""

    shard_id: ShardId
    invoked: int
    acknowledged: int


@dataclass(slots=True)
class Fed:
    """An append to a single shard, and what came of it; neither flag: nobody knows."""

    operation: int
    process: str
    lower: Timestamp
    upper: Timestamp
    rows: Sequence[Row]
    invoked: int
    told: int = 0
    acknowledged: bool = False
    refused: bool = False
    # The upper that it was refused by.
    stands_at: Timestamp | None = None


@dataclass(slots=True)
class Ddl:
    """CREATE TABLE, or DROP TABLE of what the operation `drops` created."""

    operation: int
    name: str
    drops: int | None
    # Where the client was told it is.
    write_ts: Timestamp | None = None
    refused: bool = False


class History:
    """All of it. The order of timestamps is checked at once, the rest when all is over."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._operations = 0
        self._seen = MIN_TS
        self.writes: list[Write] = []
        self.reads: list[Read] = []
        self.followed: list[Followed] = []
        self.holds: list[Held] = []
        self.forgot: list[Forgot] = []
        self.ddls: list[Ddl] = []
        self.fed: list[Fed] = []
        # The largest catalog timestamp that some client knows to be in the past.
        self.ddl_seen = MIN_TS
        # What somebody new found at the end.
        self.catalog: Snapshot | None = None

    def next_operation(self) -> int:
        """A number for one operation."""
        self._operations += 1
        return self._operations

    def invoke(self, write: Write) -> None:
        """A client has sent this."""
        self.writes.append(write)

    @property
    def seen(self) -> Timestamp:
        """The largest timestamp that some client knows to be in the past."""
        return self._seen

    def see(self, as_of: Timestamp) -> None:
        """Some client knows now what was written up to this timestamp."""
        self._seen = max(self._seen, as_of)

    def acknowledge(self, write: Write, write_ts: Timestamp) -> None:
        """The client was told: done."""
        write.acknowledged, write.write_ts = self._loop.moment, write_ts
        self._loop.note(f"acknowledged: operation {write.operation} at {write_ts}")
        require(
            write_ts > write.seen_before,
            f"operation {write.operation} was written at {write_ts}, although"
            f" {write.seen_before} was in the past before it began",
        )
        self.see(write_ts)

    def read_newest(self, seen_before: Timestamp, as_of: Timestamp, reads: Sequence[Read]) -> None:
        """A strict serializable read was answered."""
        self._loop.note(f"read: at {as_of} {' '.join(read.shard_id for read in reads)}")
        require(
            as_of >= seen_before,
            f"a read was answered at {as_of}, although {seen_before} was in the past before",
        )
        self.reads.extend(reads)
        self.see(as_of)


class Readings:
    """What an oracle has said to anybody so far; checks that time never goes back."""

    def __init__(self) -> None:
        self._largest_read: dict[Timeline, Timestamp] = {}
        self._largest_write: dict[Timeline, Timestamp] = {}
        self._handed_out: set[tuple[Timeline, Timestamp]] = set()

    def largest_read(self, timeline: Timeline) -> Timestamp:
        return self._largest_read.get(timeline, MIN_TS)

    def largest_write(self, timeline: Timeline) -> Timestamp:
        return self._largest_write.get(timeline, MIN_TS)

    def read(self, timeline: Timeline, at_least: Timestamp, read_ts: Timestamp) -> None:
        """`at_least` was the largest known when the question was asked."""
        require(read_ts >= at_least, f"read_ts went back from {at_least} to {read_ts}")
        self._largest_read[timeline] = max(self.largest_read(timeline), read_ts)

    def written(self, timeline: Timeline, beyond: Timestamp, write_ts: Timestamp) -> None:
        """`beyond` was the largest known when the question was asked."""
        require(write_ts > beyond, f"write_ts {write_ts} is not beyond {beyond}")
        key = (timeline, write_ts)
        require(key not in self._handed_out, f"write_ts {write_ts} was handed out twice")
        self._handed_out.add(key)
        self._largest_write[timeline] = max(self.largest_write(timeline), write_ts)

    def applied(self, timeline: Timeline, write_ts: Timestamp) -> None:
        """From now on readings cover it."""
        self._largest_read[timeline] = max(self.largest_read(timeline), write_ts)
        self._largest_write[timeline] = max(self.largest_write(timeline), write_ts)
