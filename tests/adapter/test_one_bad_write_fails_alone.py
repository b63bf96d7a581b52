"""Goal: what is wrong with one table, or with one write, fails the writes that it concerns, and
group commit goes on with all others.

Method: group commit over stores in memory. A table's record is overwritten, or the store breaks at
changes of one table, before they are made or after.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from evertide.adapter.writing.committer import ClaimingCommitter
from evertide.adapter.writing.group_commit import GroupCommit
from evertide.persist.faults import BlobMissing, Corrupt, DamagedState
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import CompareAndSet, Head
from evertide.persist.txn import TableWrite, Txns, register_table
from evertide.vocab.clock import SystemClock
from evertide.vocab.errors import InternalError
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import Timestamp
from tests.support.owned import OURS
from tests.support.refusing import BreakingConsensus

DESC = relation_desc(("a", TEXT))
BAD, GOOD, OTHER = ShardId("bad"), ShardId("good"), ShardId("other")
TXNS = ShardId("txns")
TABLES = (BAD, GOOD, OTHER)
LARGE = "x" * 200_000
BUG = AssertionError("this cannot be")


@dataclass
class Site:
    """Group commit that runs, and what it stands on."""

    consensus: BreakingConsensus
    blob: MemoryBlob
    txns: Txns
    writes: GroupCommit
    running: asyncio.Task[None]

    async def write(self, text: str, *tables: ShardId) -> Timestamp:
        written = {table: TableWrite(DESC, [((text,), 1)]) for table in tables}
        return await self.writes.write(written, {})

    async def write_all(
        self, *writes: tuple[str, tuple[ShardId, ...]]
    ) -> list[Timestamp | BaseException]:
        """All in one round."""
        waiting = [asyncio.create_task(self.write(text, *tables)) for text, tables in writes]
        while not all(task.done() for task in waiting) and not self.running.done():
            await asyncio.sleep(0.01)
        for _ in range(2):  # the first is not heard by who waits for a commit
            for task in waiting:
                task.cancel()
            await asyncio.sleep(0)
        assert not self.running.done(), "nothing of this concerns the whole process"
        return await asyncio.gather(*waiting, return_exceptions=True)

    async def found(self, table: ShardId) -> list[str]:
        upper = await self.txns.upper()
        rows = await self.txns.table_snapshot(table, DESC, Timestamp(upper - 1))
        return sorted(str(update.row[0])[:10] for update in rows for _ in range(update.diff))

    async def set_record(self, shard_id: ShardId, value: bytes) -> bytes:
        """What was there before."""
        head = await self.consensus.head(shard_id)
        assert isinstance(head, Head)
        await self.consensus.compare_and_set_each([CompareAndSet(shard_id, head.seqno, value)])
        return head.value


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    store, blob = MemoryStore(), MemoryBlob()
    consensus = BreakingConsensus(store.consensus(await store.raise_epoch()))
    async with PersistClient(consensus, blob, owner=OURS) as client:
        txns = Txns(client, TXNS)
        await txns.ensure()
        await client.append_all([], also=[register_table(table) for table in TABLES])
        writes = GroupCommit(txns, ClaimingCommitter(txns, SystemClock()), SystemClock())
        running = asyncio.create_task(writes.run())
        await asyncio.sleep(0)
        yield Site(consensus, blob, txns, writes, running)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_damaged_table_fails_the_writes_to_it(site: Site) -> None:
    sound = await site.set_record(BAD, b"damaged")
    with capture_logs() as logs:
        for number in ("1", "2"):
            told = await site.write_all(
                (number, (GOOD,)), ("lost", (BAD,)), ("lost", (OTHER, BAD)), (number, (OTHER,))
            )
            for fault in told[1:3]:
                assert isinstance(fault, DamagedState)
                assert fault.shard_id == BAD
            assert isinstance(told[0], int)
            assert told[3] == told[0], "the others are one round still"
    assert [line["reason"] for line in logs] == [str(told[1])], "the log is told once"
    assert await site.found(GOOD) == await site.found(OTHER) == ["1", "2"]
    await site.set_record(BAD, sound)
    await site.write("mended", BAD)
    assert await site.found(BAD) == ["mended"]


async def test_several_damaged_tables_fail_the_writes_to_them(site: Site) -> None:
    await site.set_record(BAD, b"damaged")
    await site.set_record(OTHER, b"damaged")
    told = await site.write_all(("1", (BAD,)), ("2", (OTHER,)), ("3", (GOOD,)))
    assert [getattr(each, "shard_id", None) for each in told] == [BAD, OTHER, None]
    assert await site.found(GOOD) == ["3"]


async def test_what_was_stored_for_a_damaged_table_is_taken_away(site: Site) -> None:
    await site.set_record(BAD, b"damaged")
    told = await site.write_all((LARGE, (BAD,)))
    assert isinstance(told[0], DamagedState)
    assert await site.blob.keys() == [], "nobody could sweep it up"


async def test_without_any_tables_upper_all_writers_are_told(site: Site) -> None:
    sound = await site.set_record(TXNS, b"damaged")
    told = await site.write_all(("1", (GOOD,)), ("2", (OTHER,)))
    assert [type(each) for each in told] == [DamagedState] * 2
    await asyncio.sleep(1.2)  # time does not move on, which ends nothing either
    await site.set_record(TXNS, sound)
    await site.write_all(("3", (GOOD,)))
    assert await site.found(GOOD) == ["3"]


@pytest.mark.parametrize("error", [BUG, Corrupt("a page is damaged"), BlobMissing("key")])
async def test_a_write_that_breaks_is_found_among_the_others(site: Site, error: Exception) -> None:
    site.consensus.breaks = lambda shard_ids: error if BAD in shard_ids else None
    with capture_logs() as logs:
        told = await site.write_all(("1", (GOOD,)), ("lost", (BAD,)), ("2", (OTHER,)))
    assert isinstance(told[0], int)
    assert isinstance(told[2], int)
    if error is BUG:
        assert isinstance(told[1], InternalError)
        assert (told[1].code, told[1].hint) == ("XX000", None)
        traces = [line["traceback"] for line in logs if line["event"] == "table writes met a bug"]
        assert "this cannot be" in traces[-1]
    else:
        assert told[1] is error
    assert (await site.found(GOOD), await site.found(OTHER)) == (["1"], ["2"])


@pytest.mark.parametrize("error", [BUG, Corrupt("a page is damaged")])
async def test_what_broke_after_its_commit_is_done_once(site: Site, error: Exception) -> None:
    site.consensus.breaks, site.consensus.late = lambda _: error, True
    before = site.consensus.changes
    told = await site.write_all(("1", (GOOD,)), ("2", (OTHER,)))
    assert site.consensus.changes == before + 1, "nothing is tried again"
    for each in told:
        if error is BUG:
            assert isinstance(each, InternalError)
            assert each.hint is not None
            assert "may have taken effect" in each.hint
        else:
            assert each is error
    site.consensus.breaks = lambda _: None
    await site.write("3", GOOD)
    assert (await site.found(GOOD), await site.found(OTHER)) == (["1", "3"], ["2"])
