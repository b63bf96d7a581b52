"""Goal: a process whose leases include one on a damaged shard keeps all its other leases."""

from structlog.testing import capture_logs

from evertide.persist.leases import LEASE_MS, Leases
from evertide.persist.machine import Machine
from evertide.persist.state import create, decode_state, initial_state
from evertide.persist.store.memory import MemoryStore
from evertide.persist.store.protocol import CompareAndSet, Consensus, Head
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp

SHARDS = [ShardId(name) for name in "abc"]
BAD = ShardId("b")
SOUND = [shard_id for shard_id in SHARDS if shard_id != BAD]


async def leased() -> tuple[Consensus, ManualClock, Leases]:
    """Three shards under lease."""
    store, clock = MemoryStore(), ManualClock(start_ms=1_000_000)
    consensus = store.consensus(await store.raise_epoch())
    writer = Machine(consensus, lambda _: None)
    for shard_id in SHARDS:
        await writer.apply_all([create(shard_id, initial_state())])
    leases = Leases(Machine(consensus, lambda _: None), clock)
    await leases.hold(SHARDS, Timestamp(0))
    return consensus, clock, leases


async def set_value(consensus: Consensus, value: bytes) -> bytes:
    """The value that the bad shard had before."""
    head = await consensus.head(BAD)
    assert isinstance(head, Head)
    await consensus.compare_and_set_all([CompareAndSet(BAD, head.seqno, value)])
    return head.value


async def expiries(consensus: Consensus) -> dict[ShardId, int | None]:
    """When each sound shard's lease runs out, as its state says; left out: it has none."""
    found: dict[ShardId, int | None] = {}
    for shard_id in SOUND:
        head = await consensus.head(shard_id)
        assert isinstance(head, Head)
        for hold in decode_state(head.value).holds:
            found[shard_id] = hold.expires_ms
    return found


async def test_the_others_are_renewed_and_the_log_is_told_once() -> None:
    consensus, clock, leases = await leased()
    good = await set_value(consensus, b"damaged")
    with capture_logs() as logs:
        for _ in range(20):
            clock.advance(LEASE_MS // 5)
            await leases.look_after()
    left = {expires_ms or 0 for expires_ms in (await expiries(consensus)).values()}
    assert min(left) > clock.now_ms()
    assert len(await expiries(consensus)) == len(SOUND)
    told = [line for line in logs if line["event"] == "a lease cannot be renewed"]
    assert len(told) == 1
    assert f"shard {BAD} is damaged" in told[0]["reason"]
    await set_value(consensus, good)
    await leases.look_after()
    head = await consensus.head(BAD)
    assert isinstance(head, Head)
    assert [hold.expires_ms for hold in decode_state(head.value).holds] == [
        clock.now_ms() + LEASE_MS
    ], "it is renewed again once its state is sound"
    await leases.close()


async def test_the_others_are_given_up_at_the_end() -> None:
    consensus, _, leases = await leased()
    await set_value(consensus, b"damaged")
    await leases.close()
    assert await expiries(consensus) == {}
