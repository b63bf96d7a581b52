"""Goal: of several appends that were asked for together, those that were made keep their parts.

Method: one of two appends loses a race, and by the time it is tried again the store is full.
"""

from collections.abc import Sequence

import pytest

from evertide.persist.faults import StoreFailing, StoreFull
from evertide.persist.handle import Append, PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import CompareAndSet, SetOutcome
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.support.owned import OURS
from tests.support.refusing import RefusingConsensus

A, B = ShardId("a"), ShardId("b")
DESC = relation_desc(("a", TEXT))
LARGE = "x" * 200_000


class FillingUp(RefusingConsensus):
    """Has room for one more change once it was told to fill up."""

    filling = False

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        outcome = await super().compare_and_set_each(sets)
        if self.filling:
            self.fault = StoreFull("no room")
        return outcome


async def test_what_was_appended_before_the_store_was_full_is_readable() -> None:
    store, blob = MemoryStore(), MemoryBlob()
    epoch = await store.raise_epoch()
    consensus = FillingUp(store.consensus(epoch))
    async with (
        PersistClient(consensus, blob, cache_bytes=0, owner=OURS) as client,
        PersistClient(store.consensus(epoch), blob) as other,
    ):
        for shard_id in (A, B):
            await client.create_shard(shard_id)
        await other.leases.hold([B], Timestamp(0))  # so that the append to B is tried twice
        update = Update((LARGE,), Timestamp(1), 1, None)
        appends = [Append(s, DESC, [update], Timestamp(0), Timestamp(5)) for s in (A, B)]
        consensus.filling = True
        with pytest.raises(StoreFailing):
            await client.append_each(appends)
        assert (await client.state(A)).upper == 5
        assert (await client.state(B)).upper == 0
        assert len(await client.snapshot(A, DESC, Timestamp(1))) == 1
