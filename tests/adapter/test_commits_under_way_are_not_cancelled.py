"""Goal: whoever is told "canceled" has written nothing; a commit that has begun is waited for."""

import asyncio
import gc
from collections.abc import Coroutine, Mapping

import pytest

from evertide.adapter.see_through import see_through
from evertide.adapter.writing.group_commit import GroupCommit
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import CommitOutcome, Committed, TableWrite, Txns, TxnsUpperMismatch
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timestamp

TABLE = ShardId("t")
DESC = relation_desc(("a", INT8))


class SlowCommitter:
    """Commits when it is let."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.let = asyncio.Event()
        self.committed: list[int] = []
        self.expected_upper: Timestamp | None = None
        self.outcome: CommitOutcome = Committed(Timestamp(7))

    def commit(
        self, writes: Mapping[ShardId, TableWrite], expected_upper: Timestamp | None
    ) -> Coroutine[None, None, CommitOutcome]:
        self.expected_upper = expected_upper
        return self._commit(writes)

    async def _commit(self, writes: Mapping[ShardId, TableWrite]) -> CommitOutcome:
        self.begun.set()
        await self.let.wait()
        for write in writes.values():
            self.committed += [row[0] for row, _ in write.rows if isinstance(row[0], int)]
        return self.outcome


async def group_commit(committer: SlowCommitter) -> GroupCommit:
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob())
    txns = Txns(client, ShardId("txns"))
    await txns.ensure()
    return GroupCommit(txns, committer, ManualClock(start_ms=1_000))


def write(value: int) -> dict[ShardId, TableWrite]:
    return {TABLE: TableWrite(DESC, [((value,), 1)])}


async def test_before_its_round_a_write_is_given_up_and_afterwards_it_is_done() -> None:
    committer = SlowCommitter()
    commits = await group_commit(committer)
    running = asyncio.create_task(commits.run())
    first = asyncio.create_task(commits.write(write(1), {}))
    await committer.begun.wait()
    second = asyncio.create_task(commits.write(write(2), {}))
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert not first.done()
    committer.let.set()
    assert await first == 7
    await asyncio.sleep(0.01)
    assert committer.committed == [1]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_write_that_depends_on_a_read_is_seen_through() -> None:
    committer = SlowCommitter()
    commits = await group_commit(committer)
    writing = asyncio.create_task(commits.write_if(write(3), {}, Timestamp(1)))
    await committer.begun.wait()
    writing.cancel()
    committer.let.set()
    assert await writing == 7
    assert committer.committed == [3]
    assert committer.expected_upper == 1


async def test_who_is_cancelled_and_lost_the_race_is_not_kept() -> None:
    """Nothing was written, so the cancel counts: else a statement would go on trying."""
    committer = SlowCommitter()
    committer.outcome = TxnsUpperMismatch(Timestamp(9))
    commits = await group_commit(committer)
    writing = asyncio.create_task(commits.write_if(write(3), {}, Timestamp(1)))
    await committer.begun.wait()
    writing.cancel()
    committer.let.set()
    with pytest.raises(asyncio.CancelledError):
        await writing


async def test_time_stands_still_for_a_write_that_keeps_others_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large one takes longer than a second, and must find the upper where it was."""
    monkeypatch.setattr("evertide.adapter.writing.group_commit.IDLE_ADVANCE_MS", 1)
    committer = SlowCommitter()
    commits = await group_commit(committer)
    async with commits.lock:
        running = asyncio.create_task(commits.run())
        await asyncio.sleep(0.05)
        assert not committer.begun.is_set()
    await committer.begun.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_timeout_comes_too_late_for_a_commit() -> None:
    async def commit() -> str:
        await asyncio.sleep(0.05)
        return "done"

    async with asyncio.timeout(0.01):
        assert await asyncio.create_task(see_through(commit())) == "done"


async def test_who_is_cancelled_twice_leaves() -> None:
    leaving = asyncio.create_task(see_through(asyncio.sleep(30)))
    for _ in range(2):
        await asyncio.sleep(0.01)
        leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving


class Refused(Exception):
    """Of a commit."""


async def test_a_cancel_in_the_moment_of_the_outcome_is_too_late() -> None:
    let: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def commit() -> str:
        return await let

    async def cancelled_when_told(word: str | None) -> str:
        writing = asyncio.create_task(see_through(commit()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if word is None:
            let.set_exception(Refused())
        else:
            let.set_result(word)
        await asyncio.sleep(0)  # the commit has ended, and who waits for it has not heard yet
        writing.cancel()
        return await writing

    assert await cancelled_when_told("done") == "done"
    let = asyncio.get_running_loop().create_future()
    with pytest.raises(Refused):
        await cancelled_when_told(None)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_what_went_wrong_is_told(cancelled: bool) -> None:
    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))

    async def commit() -> str:
        await asyncio.sleep(0.005)
        raise Refused

    writing = asyncio.create_task(see_through(commit()))
    await asyncio.sleep(0.001)
    if cancelled:
        writing.cancel()
    with pytest.raises(Refused):
        await writing
    del writing
    gc.collect()
    await asyncio.sleep(0)
    assert heard == [], "nobody is told a second time"


async def test_work_that_was_itself_cancelled_is_no_outcome() -> None:
    async def commit() -> str:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await see_through(commit())
