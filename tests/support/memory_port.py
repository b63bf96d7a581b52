"""Ports to a store that need no server, and one that is cut at random."""

import asyncio
import random
from collections.abc import Mapping

from evertide.persist.faults import PersistFault
from evertide.persist.store.attempts import (
    Attempt,
    Attempts,
    AttemptsAtTime,
    Change,
    ChangePort,
    NotReached,
    OutcomeUnknown,
)
from evertide.persist.store.memory import MemoryStore
from evertide.persist.store.protocol import (
    AllSet,
    ChangeOutcome,
    Head,
    OracleRow,
    SetMismatch,
    SetOutcome,
    Stash,
    Unchanged,
)
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline, Timestamp


class MemoryPort:
    """A ChangePort over a store in memory; each call is one step of the event loop."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        # The last number of each writer, and what became of it; None: it was barred.
        self._kept: dict[str, tuple[int, SetOutcome | None]] = {}

    async def change(self, attempt: Attempt, change: Change) -> ChangeOutcome:
        if attempt.number <= self._kept.get(attempt.writer, (0, None))[0]:
            raise NotReached("this attempt has been barred")
        consensus = self._store.consensus(change.epoch)
        if change.each:
            outcome = await consensus.compare_and_set_each(change.sets)
            done = outcome == AllSet() or outcome != SetMismatch(
                tuple(one.shard_id for one in change.sets)
            )
        else:
            found = await consensus.compare_and_set_all(
                change.sets,
                applied=change.applied,
                claimed=change.claimed,
                stash=change.stash,
                raises_epoch=change.raises_epoch,
            )
            if not isinstance(found, AllSet):
                return found
            outcome, done = found, True
        if done:
            self._kept[attempt.writer] = (attempt.number, outcome)
        return outcome

    async def settle(self, attempt: Attempt) -> SetOutcome | None:
        number, outcome = self._kept.get(attempt.writer, (0, None))
        assert number <= attempt.number, "an attempt is settled before the next one is made"
        if number < attempt.number:
            self._kept[attempt.writer] = (attempt.number, None)
            return None
        return outcome

    async def head(self, shard_id: ShardId, known_seqno: int | None) -> Head | Unchanged | None:
        return await self._store.consensus(Epoch(0)).head(shard_id, known_seqno)

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        return await self._store.consensus(Epoch(0)).heads(known_seqnos)

    async def shard_ids(self) -> list[ShardId]:
        return await self._store.consensus(Epoch(0)).shard_ids()

    async def read_timeline(self, epoch: Epoch, timeline: Timeline) -> OracleRow:
        return await self._store.oracle_rows(epoch).read(timeline)

    async def allocate(
        self, epoch: Epoch, timeline: Timeline, at_least: Timestamp, count: int
    ) -> Timestamp:
        return await self._store.oracle_rows(epoch).allocate(timeline, at_least, count)

    async def apply(self, epoch: Epoch, timeline: Timeline, write_ts: Timestamp) -> None:
        await self._store.oracle_rows(epoch).apply(timeline, write_ts)


class MemoryPortStore:
    """A store in memory that is asked by way of attempts."""

    def __init__(self) -> None:
        self._inner = MemoryStore()
        self.port = MemoryPort(self._inner)

    async def raise_epoch(self) -> Epoch:
        return await self._inner.raise_epoch()

    async def current_epoch(self) -> Epoch:
        return await self._inner.current_epoch()

    def consensus(self, epoch: Epoch) -> Attempts:
        return Attempts(self.port, epoch)

    def oracle_rows(self, epoch: Epoch) -> AttemptsAtTime:
        return AttemptsAtTime(self.port, epoch)

    def stash(self) -> Stash:
        return self._inner.stash()

    async def find_note(self, name: str) -> str | None:
        return await self._inner.find_note(name)

    async def note(self, name: str, text: str) -> str:
        return await self._inner.note(name, text)

    async def set_note(
        self, epoch: Epoch, name: str, text: str, *, raises_epoch: bool = False
    ) -> None:
        await self._inner.set_note(epoch, name, text, raises_epoch=raises_epoch)

    async def close(self) -> None:
        await self._inner.close()


class CutPort:
    """The same port over a connection that is lost again and again.

    A change may be lost before it arrives, or its answer after it was done; and it may arrive only
    after its sender has given up on it and asked what became of it.
    """

    def __init__(self, inner: ChangePort, rng: random.Random) -> None:
        self._inner = inner
        self._rng = rng
        self._late: set[asyncio.Task[None]] = set()

    async def change(self, attempt: Attempt, change: Change) -> ChangeOutcome:
        fate = self._rng.choice(["well"] * 5 + ["not sent", "lost", "answer lost", "late"])
        if fate == "not sent":
            raise NotReached("no connection")
        if fate in ("well", "answer lost"):
            outcome = await self._inner.change(attempt, change)
            if fate == "well":
                return outcome
        if fate == "late":
            self._late.add(asyncio.create_task(self._arrive_late(attempt, change)))
        raise OutcomeUnknown("the connection was cut")

    async def settle(self, attempt: Attempt) -> SetOutcome | None:
        if self._rng.random() < 0.2:
            raise NotReached("no connection")
        settled = await self._inner.settle(attempt)
        if self._rng.random() < 0.2:
            raise NotReached("the connection was cut")
        return settled

    async def head(self, shard_id: ShardId, known_seqno: int | None) -> Head | Unchanged | None:
        return await self._inner.head(shard_id, known_seqno)

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        return await self._inner.heads(known_seqnos)

    async def shard_ids(self) -> list[ShardId]:
        return await self._inner.shard_ids()

    async def read_timeline(self, epoch: Epoch, timeline: Timeline) -> OracleRow:
        return await self._inner.read_timeline(epoch, timeline)

    async def allocate(
        self, epoch: Epoch, timeline: Timeline, at_least: Timestamp, count: int
    ) -> Timestamp:
        return await self._inner.allocate(epoch, timeline, at_least, count)

    async def apply(self, epoch: Epoch, timeline: Timeline, write_ts: Timestamp) -> None:
        await self._inner.apply(epoch, timeline, write_ts)

    async def all_arrived(self) -> None:
        """Until nothing is on its way any more."""
        while self._late:
            await self._late.pop()

    async def _arrive_late(self, attempt: Attempt, change: Change) -> None:
        await asyncio.sleep(self._rng.uniform(0, 0.05))
        try:
            await self._inner.change(attempt, change)
        except (NotReached, OutcomeUnknown, PersistFault):
            pass  # refused, as it should be once it was settled
