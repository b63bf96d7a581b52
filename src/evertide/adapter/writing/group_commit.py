"""Table writes gathered into one write timestamp per round.

Everything that waits when a round begins commits together, atomically, at one timestamp. A client
is told only after the commit is durable *and* the oracle knows it: a read that starts after that
takes a timestamp not below it (adapter/writing/committer.py).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evertide.adapter.see_through import see_through
from evertide.adapter.writing.committer import Committer
from evertide.persist.faults import StoreFailing, StoreFull
from evertide.persist.trouble import Trouble
from evertide.persist.txn import (
    Committed,
    TableForgotten,
    TableWrite,
    Txns,
    TxnsUpperMismatch,
    join_writes,
)
from evertide.vocab.clock import Clock
from evertide.vocab.errors import SerializationFailure, UndefinedTable
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp

# With no writes, time still moves on this often, so that views and reads do not stand still.
IDLE_ADVANCE_MS = 1_000


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """One session's rows for its tables, and who waits for them."""

    writes: Mapping[ShardId, TableWrite]
    names: Mapping[ShardId, str]
    done: asyncio.Future[Timestamp] = field(compare=False)


@dataclass(frozen=True, slots=True)
class NotTheUpper:
    """Somebody committed after the read that a write was computed from."""

    actual: Timestamp


def merged(pending: Sequence[PendingWrite]) -> dict[ShardId, TableWrite]:
    """All sessions' rows by table, in order of arrival."""
    changes: dict[ShardId, list[TableWrite]] = {}
    for write in pending:
        for shard_id, table_write in write.writes.items():
            changes.setdefault(shard_id, []).append(table_write)
    return {shard_id: join_writes(found) for shard_id, found in changes.items()}


class GroupCommit:
    """Owns the queue of waiting writes and the one task that commits them."""

    def __init__(self, txns: Txns, committer: Committer, clock: Clock) -> None:
        self._txns = txns
        self._committer = committer
        self._clock = clock
        self._waiting: list[PendingWrite] = []
        self._wake = asyncio.Event()
        # Held while a round commits, and by a read-then-write that must not be overtaken again.
        self.lock = asyncio.Lock()
        self._trouble = Trouble("table writes")

    async def write(
        self, writes: Mapping[ShardId, TableWrite], names: Mapping[ShardId, str]
    ) -> Timestamp:
        """Commit these rows; returns their timestamp once they are durable and readable.

        A caller that is cancelled before its round began has written nothing. Afterwards it waits
        for the outcome nevertheless (see_through.py says why).
        """
        done: asyncio.Future[Timestamp] = asyncio.get_running_loop().create_future()
        write = PendingWrite(writes, names, done)
        self._waiting.append(write)
        self._wake.set()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if any(other is write for other in self._waiting):
                done.cancel()
                raise
            return await done

    async def write_if(
        self,
        writes: Mapping[ShardId, TableWrite],
        names: Mapping[ShardId, str],
        expected_upper: Timestamp,
    ) -> Timestamp | NotTheUpper:
        """Commit only if nothing was committed since the upper that the rows were computed at.

        A caller that is cancelled meanwhile is told so only if nothing was committed.
        """
        commit = self._committer.commit(writes, expected_upper)
        outcome = await see_through(commit, lambda outcome: isinstance(outcome, Committed))
        match outcome:
            case Committed(at=at):
                return at
            case TxnsUpperMismatch(actual=actual):
                return NotTheUpper(actual)
            case TableForgotten(shard_id=shard_id):
                raise _dropped(names.get(shard_id, shard_id))

    async def run(self) -> None:
        """Commit rounds until cancelled, or until the store's faults concern the whole process.

        A full or failing store is told to the writers of the round, and time waits for it.
        """
        while True:
            try:
                async with asyncio.timeout(IDLE_ADVANCE_MS / 1000):
                    await self._wake.wait()
            except TimeoutError:
                await self._advance_when_idle()
                continue
            self._wake.clear()
            async with self.lock:
                pending, self._waiting = self._waiting, []
                await self._guarded_round(pending)

    async def _guarded_round(self, pending: list[PendingWrite]) -> None:
        """Tell everyone what became of their writes, faults of the store included.

        What did not fit was not done, so each write is tried by itself: a large one must not take
        the small ones down with it. After an I/O error nothing is tried again, because the round
        may still come to light.
        """
        try:
            await self._commit_round(pending)
            self._trouble.over()
        except StoreFull as fault:
            self._trouble.met(fault)
            waiting = [write for write in pending if not write.done.done()]
            if len(waiting) > 1:
                for write in waiting:
                    await self._guarded_round([write])
            elif waiting:
                _fail(waiting[0], fault)
        except StoreFailing as fault:
            self._trouble.met(fault)
            for write in pending:
                _fail(write, fault)

    async def _commit_round(self, pending: list[PendingWrite]) -> None:
        """Retry with new timestamps until the round is durable; drop writes to dropped tables."""
        for _ in range(1_000):
            # A client that was told "canceled" before its rows were on their way gets that.
            pending = [write for write in pending if not write.done.cancelled()]
            if not pending:
                return
            outcome = await self._committer.commit(merged(pending), None)
            match outcome:
                case Committed(at=at):
                    _acknowledge(pending, at)
                    return
                case TxnsUpperMismatch():
                    continue
                case TableForgotten(shard_id=shard_id):
                    pending = _refuse(pending, shard_id)
        error = SerializationFailure("could not commit: other writers were always first")
        for write in pending:
            _fail(write, error)

    async def _advance_when_idle(self) -> None:
        """An empty commit, unless another adapter moved time on lately.

        Nor where a write of this adapter is under way that must not be overtaken: a large one takes
        longer than time stands still, and would never find it where it was.
        """
        if self.lock.locked():
            return
        now_ms = self._clock.now_ms()
        try:
            async with self.lock:
                if await self._txns.upper() <= now_ms - IDLE_ADVANCE_MS * 9 // 10:
                    await self._committer.commit({}, None)
                    self._trouble.over()
        except (StoreFull, StoreFailing) as fault:
            self._trouble.met(fault)  # time stands still until then


def _dropped(name: str) -> UndefinedTable:
    return UndefinedTable(f"unknown catalog item '{name}'", detail="The table was dropped.")


def _refuse(pending: Sequence[PendingWrite], shard_id: ShardId) -> list[PendingWrite]:
    """Fail the writes that name this table; the others go on."""
    kept = []
    for write in pending:
        if shard_id in write.writes:
            _fail(write, _dropped(write.names.get(shard_id, shard_id)))
        else:
            kept.append(write)
    return kept


def _fail(write: PendingWrite, error: Exception) -> None:
    if not write.done.done():
        write.done.set_exception(error)


def _acknowledge(pending: Sequence[PendingWrite], write_ts: Timestamp) -> None:
    for write in pending:
        if not write.done.done():
            write.done.set_result(write_ts)
