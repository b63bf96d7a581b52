"""Goal: a store that takes no writes fails the writes of a round, with its fault, and no more.

Method: group commit over a consensus and a blob store that refuse changes while told to.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from evertide.adapter.writing.committer import AskingCommitter, ClaimingCommitter
from evertide.adapter.writing.group_commit import GroupCommit
from evertide.oracle.memory import MemoryOracle
from evertide.persist.faults import (
    Corrupt,
    Fenced,
    PersistFault,
    StoreFailing,
    StoreFull,
    StoreUnreachable,
)
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import TableWrite, Txns, register_table
from evertide.vocab.clock import SystemClock
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.support.owned import OURS
from tests.support.refusing import RefusingBlob, RefusingConsensus

DESC = relation_desc(("a", TEXT))
TABLE, TXNS = ShardId("t"), ShardId("txns")
FULL, FAILING = StoreFull("no room"), StoreFailing("EIO")
LARGE = "x" * 200_000


@dataclass
class Site:
    """Group commit that runs, and what it stands on."""

    consensus: RefusingConsensus
    blob: RefusingBlob
    txns: Txns
    writes: GroupCommit
    running: asyncio.Task[None]

    async def write(self, text: str) -> Timestamp:
        return await self.writes.write({TABLE: TableWrite(DESC, [((text,), 1)])}, {})

    async def write_all(self, *texts: str) -> list[Timestamp | BaseException]:
        """All in one round."""
        return await asyncio.gather(*map(self.write, texts), return_exceptions=True)

    async def found(self) -> list[str]:
        upper = await self.txns.upper()
        rows = await self.txns.table_snapshot(TABLE, DESC, Timestamp(upper - 1))
        return sorted(str(update.row[0])[:10] for update in rows for _ in range(update.diff))


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    store = MemoryStore()
    consensus = RefusingConsensus(store.consensus(await store.raise_epoch()))
    blob = RefusingBlob(MemoryBlob())
    async with PersistClient(consensus, blob, owner=OURS) as client:
        txns = Txns(client, TXNS)
        await txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        writes = GroupCommit(txns, ClaimingCommitter(txns, SystemClock()), SystemClock())
        running = asyncio.create_task(writes.run())
        await asyncio.sleep(0)
        yield Site(consensus, blob, txns, writes, running)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("fault", [FULL, FAILING])
async def test_writers_are_told_and_later_ones_succeed(
    site: Site, fault: StoreFull | StoreFailing
) -> None:
    await site.write("before")
    site.consensus.fault = fault
    for _ in range(3):
        assert await site.write_all("1", "2", "3") == [fault] * 3
    site.consensus.fault = None
    await site.write("after")
    assert await site.found() == ["after", "before"]


async def test_a_write_that_does_not_fit_takes_no_other_with_it(site: Site) -> None:
    site.blob.fault = FULL
    outcomes = await site.write_all("small 1", LARGE, "small 2")
    assert outcomes[1] == FULL
    assert isinstance(outcomes[0], int)
    assert isinstance(outcomes[2], int)
    assert await site.found() == ["small 1", "small 2"]


async def test_a_round_in_doubt_is_not_tried_again(site: Site) -> None:
    site.consensus.fault = FAILING
    before = site.consensus.changes
    await site.write_all("1", "2", "3")
    assert site.consensus.changes == before + 1, "it may still come to light"


async def test_time_waits_for_the_store_and_goes_on(site: Site) -> None:
    site.consensus.fault = FULL
    tried, upper = site.consensus.changes, await site.txns.upper()
    while site.consensus.changes < tried + 2:
        await asyncio.sleep(0.05)
    assert await site.txns.upper() == upper
    site.consensus.fault = None
    await site.txns.wait_for_upper(upper)


@pytest.mark.parametrize("fault", [Fenced(Epoch(1), Epoch(2)), StoreUnreachable("gone")])
async def test_a_process_that_is_fenced_or_without_store_commits_no_more(
    site: Site, fault: PersistFault
) -> None:
    site.consensus.fault = fault
    writing = asyncio.create_task(site.write("1"))
    with pytest.raises(type(fault)):
        await site.running
    assert not writing.done(), "it hears of it from the connection that ends"
    writing.cancel()


class _ForgetfulOracle(MemoryOracle):
    """In a store of its own, which is in trouble: timestamps are handed out, none is applied."""

    def __init__(self, fault: PersistFault) -> None:
        super().__init__(SystemClock())
        self._fault = fault

    async def apply_write(self, timeline: Timeline, write_ts: Timestamp) -> None:  # noqa: ARG002
        raise self._fault


@pytest.mark.parametrize("fault", [FULL, FAILING, Corrupt("a page is damaged")])
async def test_a_write_that_cannot_be_applied_is_not_told_as_refused(
    site: Site, fault: PersistFault
) -> None:
    committer = AskingCommitter(site.txns, _ForgetfulOracle(fault))
    with pytest.raises(StoreFailing):
        await committer.commit({TABLE: TableWrite(DESC, [(("there",), 1)])}, None)
    assert await site.found() == ["there"]
