"""Changes whose outcome a fault may leave open, and how it is found out.

A store over a network may lose a connection after a change was sent and before it was answered.
Then nobody knows whether it happened, and repeating it might do it twice. So every change carries
an attempt: a number of its own, which the store keeps in the same transaction as the change.
Afterwards the store is asked what became of that attempt. The question also bars it: a change that
is still on its way, in some buffer, will be refused when it arrives.

Numbers of one writer must reach the store one after the other, so each attempt under way has a
writer to itself.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from evertide.persist.faults import StoreUnreachable
from evertide.persist.store.protocol import (
    AllSet,
    AppliedWrite,
    ChangeOutcome,
    ClaimedWrite,
    CompareAndSet,
    Head,
    OracleRow,
    SetMismatch,
    SetOutcome,
    StashAppend,
    Unchanged,
    check_distinct,
)
from evertide.persist.store.stash import check_append
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline, Timestamp

T = TypeVar("T")

# How long a store may be away before a process gives up on it.
PATIENCE_S: Final = 30.0
_FIRST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 1.0


class OutcomeUnknown(Exception):
    """The change was sent, and no answer came."""


class NotReached(Exception):
    """The store could not be asked: nothing was sent, or the question changes nothing."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to change something. Numbers of a writer grow; none is used twice."""

    writer: str
    number: int


@dataclass(frozen=True, slots=True)
class Change:
    """What one store transaction is to do, under an epoch."""

    epoch: Epoch
    sets: Sequence[CompareAndSet]
    applied: Sequence[AppliedWrite] = ()
    claimed: ClaimedWrite | None = None
    # Each set for itself, instead of all or nothing.
    each: bool = False
    stash: StashAppend | None = None
    # Open the next generation with it.
    raises_epoch: bool = False


class ChangePort(Protocol):
    """The way into a store that may be cut at any moment. Each call is one transaction."""

    async def change(self, attempt: Attempt, change: Change) -> ChangeOutcome:
        """Do it, and keep the attempt's number and outcome with it.

        A change of which nothing is done need not be kept: it may be tried again. Raises Fenced,
        OutcomeUnknown, NotReached.
        """
        ...

    async def settle(self, attempt: Attempt) -> SetOutcome | None:
        """Its outcome; None: it was not done, and from now on never will be.

        May be repeated. Raises NotReached.
        """
        ...

    async def head(self, shard_id: ShardId, known_seqno: int | None) -> Head | Unchanged | None:
        """Raises NotReached, as the following do."""
        ...

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]: ...

    async def shard_ids(self) -> list[ShardId]: ...

    async def read_timeline(self, epoch: Epoch, timeline: Timeline) -> OracleRow:
        """Epoch and value as of one moment; raises Fenced, too."""
        ...

    async def allocate(
        self, epoch: Epoch, timeline: Timeline, at_least: Timestamp, count: int
    ) -> Timestamp:
        """As OracleRows.allocate. Asking again costs unused timestamps and nothing else."""
        ...

    async def apply(self, epoch: Epoch, timeline: Timeline, write_ts: Timestamp) -> None:
        """As OracleRows.apply. Asking again changes nothing."""
        ...


class Attempts:
    """Consensus under one epoch, over a port that may be cut."""

    def __init__(self, port: ChangePort, epoch: Epoch, *, patience_s: float = PATIENCE_S) -> None:
        self._port = port
        self._epoch = epoch
        self._patience_s = patience_s
        self._idle: list[_Writer] = []

    async def head(
        self, shard_id: ShardId, known_seqno: int | None = None
    ) -> Head | Unchanged | None:
        return await insist(lambda: self._port.head(shard_id, known_seqno), self._patience_s)

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        return await insist(lambda: self._port.heads(known_seqnos), self._patience_s)

    async def shard_ids(self) -> list[ShardId]:
        return await insist(self._port.shard_ids, self._patience_s)

    async def compare_and_set_all(
        self,
        sets: Sequence[CompareAndSet],
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ChangeOutcome:
        if stash is not None:
            check_append(stash)
        return await self._change(
            Change(self._epoch, sets, applied, claimed, stash=stash, raises_epoch=raises_epoch)
        )

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        outcome = await self._change(Change(self._epoch, sets, each=True))
        assert isinstance(outcome, AllSet | SetMismatch), "nothing but shards was in the way"
        return outcome

    async def _change(self, change: Change) -> ChangeOutcome:
        check_distinct(change.sets)
        writer = self._idle.pop() if self._idle else _Writer(uuid.uuid4().hex)
        outcome = await insist(lambda: self._attempt(writer, change), self._patience_s)
        # Only now: a writer whose attempt was given up on stays unused for good.
        self._idle.append(writer)
        return outcome

    async def _attempt(self, writer: "_Writer", change: Change) -> ChangeOutcome:
        attempt = writer.next()
        try:
            return await self._port.change(attempt, change)
        except OutcomeUnknown:
            outcome = await insist(lambda: self._port.settle(attempt), self._patience_s)
            if outcome is None:
                raise NotReached("the connection was lost before the change was made") from None
            return outcome


class AttemptsAtTime:
    """Timelines under one epoch, over the same port. Every call may simply be repeated."""

    def __init__(self, port: ChangePort, epoch: Epoch, *, patience_s: float = PATIENCE_S) -> None:
        self._port = port
        self._epoch = epoch
        self._patience_s = patience_s

    async def read(self, timeline: Timeline) -> OracleRow:
        return await insist(
            lambda: self._port.read_timeline(self._epoch, timeline), self._patience_s
        )

    async def allocate(self, timeline: Timeline, at_least: Timestamp, count: int = 1) -> Timestamp:
        return await insist(
            lambda: self._port.allocate(self._epoch, timeline, at_least, count), self._patience_s
        )

    async def apply(self, timeline: Timeline, write_ts: Timestamp) -> None:
        await insist(lambda: self._port.apply(self._epoch, timeline, write_ts), self._patience_s)


@dataclass(slots=True)
class _Writer:
    name: str
    number: int = 0

    def next(self) -> Attempt:
        self.number += 1
        return Attempt(self.name, self.number)


async def insist(call: Callable[[], Awaitable[T]], patience_s: float = PATIENCE_S) -> T:
    """The answer of a call that may be repeated; StoreUnreachable if none comes for long.

    A call whose outcome is unknown counts as not reached: only repeatable ones may raise that here.
    """
    loop = asyncio.get_running_loop()
    deadline, pause_s = loop.time() + patience_s, _FIRST_PAUSE_S
    while True:
        try:
            return await call()
        except (NotReached, OutcomeUnknown) as error:
            if loop.time() > deadline:
                raise StoreUnreachable(str(error)) from error
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
