"""Goal: whoever reads is answered while the store takes no writes, though a lease is a write.

Method: leases over a consensus that refuses changes while told to.
"""

import pytest

from evertide.persist.faults import BelowSince, PersistFault, ShardMissing, StoreFailing, StoreFull
from evertide.persist.leases import Leases
from evertide.persist.machine import Machine
from evertide.persist.state import create, initial_state
from evertide.persist.store.memory import MemoryStore
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from tests.support.refusing import RefusingConsensus

SHARD = ShardId("s1")
AT, EARLIER = Timestamp(10), Timestamp(9)


async def _site(fault: PersistFault | None) -> tuple[RefusingConsensus, Machine, Leases]:
    store = MemoryStore()
    consensus = RefusingConsensus(store.consensus(await store.raise_epoch()))
    machine = Machine(consensus, lambda _: None)
    await machine.apply_all([create(SHARD, initial_state(since=AT))])
    consensus.fault = fault
    return consensus, machine, Leases(machine, ManualClock(1_000))


@pytest.mark.parametrize("fault", [StoreFull("no room"), StoreFailing("EIO")])
async def test_a_hold_waits_in_memory_and_is_written_later(fault: PersistFault) -> None:
    consensus, machine, leases = await _site(fault)
    hold = await leases.hold([SHARD], AT)
    consensus.fault = None
    await leases.look_after()
    state = (await machine.read(SHARD)).state
    assert state is not None
    assert [held.hold_ts for held in state.holds] == [AT]
    hold.release()
    await leases.close()


async def test_what_is_not_readable_is_refused_all_the_same() -> None:
    _, _, leases = await _site(StoreFull("no room"))
    with pytest.raises(BelowSince):
        await leases.hold([SHARD], EARLIER)
    with pytest.raises(ShardMissing):
        await leases.hold([ShardId("none")], AT)
    await leases.close()
