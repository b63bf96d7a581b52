"""A log of rows: what every durable catalog is made of, wherever the rows lie.

A log holds rows of (kind, key, value) and their history. One append is one transaction of the
catalog: its rows, its timestamp in the `catalog` timeline, and what it changes in data shards
become durable together. How objects are read out of rows, and what opening does, is the same
everywhere.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple, Protocol

from evertide.catalog.durable.codec import CorruptCatalog
from evertide.catalog.durable.protocol import AppendOutcome, Uninitialized
from evertide.catalog.durable.rows import StoredRow
from evertide.persist.state import ShardChange
from evertide.persist.store.protocol import ClaimedWrite, ClaimLost
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp, step_back, step_forward

# Transactions that a follower may still read one by one.
SINCE_LAG: Final = 1_000
# Nothing is ever written at the first timestamp: an upper of MIN_TS means "never written".
_FIRST_WRITE: Final = Timestamp(1)


class RowChange(NamedTuple):
    """A row that comes (diff 1) or goes (diff -1)."""

    row: StoredRow
    diff: int


class RowUpdate(NamedTuple):
    """A change at its timestamp."""

    row: StoredRow
    ts: Timestamp
    diff: int


@dataclass(frozen=True, slots=True)
class Stored:
    """All rows, and the upper that they were read at."""

    rows: list[StoredRow]
    upper: Timestamp


@dataclass(frozen=True, slots=True)
class Step:
    """The changes of at most one transaction, and how far the log is complete with them."""

    changes: tuple[RowChange, ...]
    upper: Timestamp


class CatalogLog(Protocol):
    """One environment's rows, appended to under one epoch."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    async def prepare(self) -> None:
        """Make it ready to be appended to; for whoever opens the environment for writing."""
        ...

    async def upper(self) -> Timestamp:
        """MIN_TS: never written."""
        ...

    async def rows(self, as_of: Timestamp, kind: str | None = None) -> list[StoredRow]:
        """What it holds at a timestamp below its upper, of one kind or of all; in no order.

        Raises BelowSince where that is too long ago, CorruptCatalog for a row that is there twice.
        """
        ...

    async def wait_beyond(self, beyond: Timestamp) -> Timestamp:
        """The upper, once upper > beyond."""
        ...

    async def updates(self, lower: Timestamp, upper: Timestamp) -> list[RowUpdate]:
        """Updates with lower <= ts < upper, ordered by time; `upper` is not beyond the log's.

        Raises BelowSince where that is too long ago.
        """
        ...

    async def append(
        self,
        changes: Sequence[RowChange],
        *,
        expected_upper: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
        raises_epoch: bool = False,
        at: Timestamp | None = None,
    ) -> AppendOutcome:
        """One transaction, all or nothing, if the upper is the expected one.

        It takes its timestamp, not below the expected upper, in the `catalog` timeline. `at`: the
        timestamp is given, and was taken by another log of the same environment.
        `raises_epoch`: the same store transaction opens the next generation.
        Raises Fenced under an old epoch.
        """
        ...


async def read_all(log: CatalogLog) -> Stored:
    """Everything in the log; raises Uninitialized."""
    upper = await log.upper()
    if upper == MIN_TS:
        raise Uninitialized("the catalog was never opened for writing")
    return Stored(await log.rows(step_back(upper)), upper)


async def follow(log: CatalogLog, from_upper: Timestamp) -> AsyncIterator[Step]:
    """Every transaction at or beyond this timestamp, in order, for ever."""
    lower = from_upper
    while True:
        upper = await log.wait_beyond(lower)
        for step in by_transaction(await log.updates(lower, upper), upper):
            yield step
        lower = upper


def by_transaction(updates: Sequence[RowUpdate], upper: Timestamp) -> Iterator[Step]:
    """One step for each timestamp, then one to `upper` if that moved on without updates."""
    reached = MIN_TS
    for write_ts, group in groupby(updates, key=lambda update: update.ts):
        reached = step_forward(write_ts)
        yield Step(tuple(RowChange(update.row, update.diff) for update in group), reached)
    if reached < upper:
        yield Step((), upper)


def single(counted: Iterable[tuple[StoredRow, int]]) -> list[StoredRow]:
    """The rows, each of which must be there once."""
    rows: list[StoredRow] = []
    for row, multiplicity in counted:
        if multiplicity != 1:
            raise CorruptCatalog(f"{row.kind} {row.key} is stored {multiplicity} times")
        rows.append(row)
    return rows


def added_up(updates: Iterable[RowUpdate]) -> list[StoredRow]:
    """What is there after all of these updates, beginning from nothing."""
    sums: Counter[StoredRow] = Counter()
    for update in updates:
        sums[update.row] += update.diff
    return single((row, count) for row, count in sums.items() if count)


def difference(before: Iterable[StoredRow], after: Iterable[StoredRow]) -> list[RowChange]:
    """What turns one set of rows into another; what goes comes first."""
    old, new = set(before), set(after)
    gone = [RowChange(row, -1) for row in sorted(old - new)]
    return [*gone, *(RowChange(row, 1) for row in sorted(new - old))]


async def claiming(
    expected_upper: Timestamp,
    attempt: Callable[[ClaimedWrite], Awaitable[AppendOutcome | ClaimLost]],
) -> AppendOutcome:
    """Try at the expected upper, and beyond it where the timeline has handed that out already."""
    write_ts = max(expected_upper, _FIRST_WRITE)
    while True:
        outcome = await attempt(ClaimedWrite(Timeline.CATALOG, write_ts))
        if not isinstance(outcome, ClaimLost):
            return outcome
        assert outcome.write_ts >= write_ts, "a claim beyond all others is not lost"
        write_ts = step_forward(outcome.write_ts)
