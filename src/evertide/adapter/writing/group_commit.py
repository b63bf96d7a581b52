"""Table writes gathered into one write timestamp per round.

Everything that waits when a round begins commits together, atomically, at one timestamp. A client
is told only after the commit is durable *and* the oracle knows it: a read that starts after that
takes a timestamp not below it (adapter/writing/committer.py).
"""

import asyncio
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from evertide.adapter.see_through import see_through
from evertide.adapter.writing.committer import Committer
from evertide.persist.faults import DamagedState, PersistFault, StoreFailing, StoreFull
from evertide.persist.told import ends_the_process
from evertide.persist.trouble import PASSING, Trouble
from evertide.persist.txn import (
    CommitOutcome,
    Committed,
    TableForgotten,
    TableWrite,
    Txns,
    TxnsUpperMismatch,
    join_writes,
)
from evertide.vocab.clock import Clock
from evertide.vocab.errors import InternalError, SerializationFailure, UndefinedTable
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp

# With no writes, time still moves on this often, so that views and reads do not stand still.
IDLE_ADVANCE_MS = 1_000

_log = structlog.get_logger()


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


@dataclass(frozen=True, slots=True)
class Failure:
    """A try to commit that ended with an error; `in_doubt`: it may have been done nevertheless."""

    error: Exception
    in_doubt: bool


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
        # Tables whose state was last found damaged, which the log has been told.
        self._damaged: set[ShardId] = set()

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
        """Commit rounds until cancelled, or until a fault concerns the whole process.

        All others are told to the writers whom they concern, and time waits for the store.
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
                await self._commit_round(pending)

    async def _commit_round(self, pending: Sequence[PendingWrite]) -> None:
        """Tell everyone what became of their writes, retrying until the round is durable.

        One table's damage, or its being dropped, fails the writes to it. Where somebody's write
        must be at fault and nobody knows whose, each is tried by itself: one that does not fit, or
        meets a bug, must not take the others down with it.
        """
        for _ in range(1_000):
            # A client that was told "canceled" before its rows were on their way gets that.
            pending = [write for write in pending if not write.done.done()]
            if not pending:
                return
            match await self._try(pending):
                case Committed(at=at):
                    self._trouble.over()
                    if self._damaged:
                        self._damaged.difference_update(*(write.writes for write in pending))
                    _acknowledge(pending, at)
                    return
                case TxnsUpperMismatch():
                    continue
                case TableForgotten(shard_id=shard_id):
                    for write in _writers(pending, shard_id):
                        _fail(write, _dropped(write.names.get(shard_id, shard_id)))
                case Failure(error=DamagedState() as fault) if fault.shard_id is not None and (
                    concerned := _writers(pending, fault.shard_id)
                ):
                    if fault.shard_id not in self._damaged:
                        _log.error("a table cannot be written", reason=str(fault))
                    self._damaged.add(fault.shard_id)
                    for write in concerned:
                        _fail(write, fault)
                case Failure(in_doubt=False) if len(pending) > 1:
                    for write in pending:
                        await self._commit_round([write])
                    return
                case Failure(error=error):
                    for write in pending:
                        _fail(write, error)
                    return
        error = SerializationFailure("could not commit: other writers were always first")
        for write in pending:
            _fail(write, error)

    async def _try(self, pending: Sequence[PendingWrite]) -> CommitOutcome | Failure:
        """One try; raises what must end the process."""
        before = self._txns.known_upper
        try:
            return await self._committer.commit(merged(pending), None)
        except (StoreFull, StoreFailing) as fault:
            # After an I/O error nothing is tried again: the round may still come to light.
            self._trouble.met(fault)
            return Failure(fault, in_doubt=isinstance(fault, StoreFailing))
        except DamagedState as fault:
            return Failure(fault, in_doubt=False)
        except PersistFault as fault:
            if ends_the_process(fault):
                raise
            return Failure(fault, in_doubt=await self._has_moved(before))
        except Exception as bug:  # noqa: BLE001 - this task owns the writes of everyone
            # As text: a rendered traceback may show local variables, and so rows.
            trace = traceback.format_exc()
            _log.error("table writes met a bug", error=repr(bug), traceback=trace)
            in_doubt = await self._has_moved(before)
            hint = "The write may have taken effect: look before trying again."
            error = InternalError("internal error", hint=hint if in_doubt else None)
            error.__cause__ = bug
            return Failure(error, in_doubt)

    async def _has_moved(self, before: Timestamp | None) -> bool:
        """Whether tables were written since their upper was that, perhaps by the try that failed.

        A commit moves it, whatever fails behind. Where it cannot be asked for, it may have moved.
        """
        try:
            return before is None or await self._txns.upper() != before
        except Exception:  # noqa: BLE001 - if that concerns the process, the next try says so
            return True

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
        except PASSING as fault:
            self._trouble.met(fault)  # time stands still until then


def _dropped(name: str) -> UndefinedTable:
    return UndefinedTable(f"unknown catalog item '{name}'", detail="The table was dropped.")


def _writers(pending: Sequence[PendingWrite], shard_id: ShardId) -> list[PendingWrite]:
    """Those who write to this table."""
    return [write for write in pending if shard_id in write.writes]


def _fail(write: PendingWrite, error: Exception) -> None:
    if not write.done.done():
        write.done.set_exception(error)


def _acknowledge(pending: Sequence[PendingWrite], write_ts: Timestamp) -> None:
    for write in pending:
        if not write.done.done():
            write.done.set_result(write_ts)
