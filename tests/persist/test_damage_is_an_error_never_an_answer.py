"""Goal: stored bytes that changed or went away are an error naming shard and part.

Method: every byte of a part, of a state and of an inline batch in a state is changed, and each is
cut short everywhere. All of that must be Corrupt: no other exception, no rows. Then the same
through every way to read a shard.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from evertide.persist.coding.arrow_inline import encode_arrow
from evertide.persist.coding.inline import decode_inline, encode_inline
from evertide.persist.coding.parts import checksum, columns_to_table, decode_part, encode_part
from evertide.persist.coding.updates import to_columns
from evertide.persist.faults import BlobMissing, Corrupt
from evertide.persist.handle import PersistClient
from evertide.persist.snapshot import snapshot_table
from evertide.persist.state import (
    Batch,
    BlobPart,
    InlinePart,
    ShardState,
    decode_state,
    encode_state,
    initial_state,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import CompareAndSet, Head
from evertide.persist.upkeep.compaction import compact_shard
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD
from tests.persist.test_stored_bytes_are_golden import DESC as EVERY_DESC
from tests.persist.test_stored_bytes_are_golden import STATE_1_BYTES, STATE_2, UPDATES
from tests.support.owned import owned

PAYLOAD = encode_inline(UPDATES)
IN_COLUMNS = encode_arrow(columns_to_table(EVERY_DESC, to_columns(UPDATES)))
NAME = ShardId("s12")


def changed(value: bytes, *, every: bool = False) -> Iterator[bytes]:
    """The value with one byte changed: to one other value at each place, or to all others."""
    rng = random.Random(len(value))
    for place, byte in enumerate(value):
        others = range(1, 256) if every else (1 << rng.randrange(8), rng.randrange(1, 256))
        for other in others:
            yield value[:place] + bytes([byte ^ other]) + value[place + 1 :]


def cut(value: bytes) -> Iterator[bytes]:
    for length in range(len(value)):
        yield value[:length]
        yield value[length + 1 :]


def test_a_part() -> None:
    value = encode_part(columns_to_table(EVERY_DESC, to_columns(UPDATES)))
    part = BlobPart(f"{NAME}/5-ab.parquet", len(UPDATES), len(value), checksum(value))
    for damaged in (*changed(value), *cut(value), value + b"\0", b""):
        with pytest.raises(Corrupt) as raised:
            decode_part(EVERY_DESC, part, damaged)
        assert str(raised.value) == (
            "shard s12, part s12/5-ab.parquet: is damaged: its checksum differs"
        )


def test_a_part_that_is_not_what_its_checksum_promises() -> None:
    """Whatever was stored, reading it raises nothing else: damage before the checksum was made."""
    value = encode_part(columns_to_table(EVERY_DESC, to_columns(UPDATES)))
    rng = random.Random(5)
    for damaged in rng.sample([*changed(value), *cut(value)], 500):
        part = BlobPart(f"{NAME}/5-ab.parquet", len(UPDATES), len(damaged), checksum(damaged))
        with suppress(Corrupt):
            decode_part(EVERY_DESC, part, damaged)


def test_a_state() -> None:
    value = encode_state(STATE_2)
    for damaged in (*changed(value, every=True), *cut(value), value + b"\0"):
        with pytest.raises(Corrupt, match="the state of shard s12 is damaged"):
            decode_state(damaged, NAME)


def test_a_state_from_before_checksums() -> None:
    """It can no longer be told from another state, but it is a state or Corrupt."""
    value = bytes.fromhex(STATE_1_BYTES)
    for damaged in (*changed(value, every=True), *cut(value), value + b"\0"):
        with suppress(Corrupt):
            decode_state(damaged)


@pytest.mark.parametrize("payload", [PAYLOAD, IN_COLUMNS], ids=["rows", "columns"])
def test_an_inline_batch(payload: bytes) -> None:
    batch = Batch(MIN_TS, Timestamp(9), MIN_TS, (InlinePart(payload, len(UPDATES)),))
    state = ShardState(since=MIN_TS, upper=Timestamp(9), since_lag=0, batches=(batch,))
    value = encode_state(state)
    start = value.index(payload)
    for damaged in (*changed(payload), *cut(payload)):
        with pytest.raises(Corrupt):
            decode_state(value[:start] + damaged + value[start + len(payload) :], NAME)


def test_an_inline_batch_alone() -> None:
    """Its state's checksum guards it; were it to fail, there would still be rows or Corrupt."""
    for damaged in (*changed(PAYLOAD, every=True), *cut(PAYLOAD)):
        with suppress(Corrupt):
            decode_inline(EVERY_DESC, damaged)


def test_an_inline_batch_in_columns_alone() -> None:
    noticed = 0
    for damaged in (*changed(IN_COLUMNS), *cut(IN_COLUMNS)):
        try:
            decode_inline(EVERY_DESC, damaged)
        except Corrupt:
            noticed += 1
    assert noticed > len(IN_COLUMNS), "most damage is noticed even without the state's checksum"


Read = Callable[[PersistClient], Awaitable[Any]]
READS: dict[str, Read] = {
    "contents": lambda client: client.contents(SHARD, DESC, Timestamp(1)),
    "snapshot": lambda client: client.snapshot(SHARD, DESC, Timestamp(1)),
    "updates": lambda client: client.read_updates(SHARD, DESC, Timestamp(0), Timestamp(2)),
    "listen": lambda client: anext(client.listen(SHARD, DESC, Timestamp(0))),
    "arrow": lambda client: snapshot_table(client, SHARD, DESC, Timestamp(1)),
}
each_read = pytest.mark.parametrize("read", READS.values(), ids=READS)


class Shelf(MemoryBlob):
    """A blob store whose contents can be tampered with."""

    damage: Callable[[bytes], bytes] | None = None

    async def get(self, key: str) -> bytes:
        value = await super().get(key)
        return value if self.damage is None else self.damage(value)


async def stored_shard() -> tuple[MemoryStore, Shelf, PersistClient, str]:
    """A shard with one part and one inline batch, and a client that has read nothing yet."""
    store, blob = MemoryStore(), Shelf()
    consensus = store.consensus(await store.raise_epoch())
    rows = [Update((f"row {i}", i), Timestamp(0), 1) for i in range(10_000)]
    async with PersistClient(consensus, blob) as writer:
        await writer.create_shard(SHARD)
        await writer.compare_and_append(SHARD, DESC, rows, Timestamp(0), Timestamp(1))
        more = [Update(("x", 1), Timestamp(1), 1)]
        await writer.compare_and_append(SHARD, DESC, more, Timestamp(1), Timestamp(2))
    (key,) = await blob.keys()
    return store, blob, PersistClient(consensus, blob), key


@each_read
async def test_every_read_names_a_damaged_part(read: Read) -> None:
    _, blob, client, key = await stored_shard()
    blob.damage = lambda value: value[:4000] + bytes([value[4000] ^ 1]) + value[4001:]
    with pytest.raises(Corrupt, match=f"shard {SHARD}, part {key}: is damaged"):
        await read(client)
    blob.damage = lambda value: value[:-1]
    with pytest.raises(Corrupt, match=f"shard {SHARD}, part {key}: is damaged"):
        await read(client)
    blob.damage = None
    assert await read(client)


@each_read
async def test_every_read_names_a_missing_part(read: Read) -> None:
    _, blob, client, key = await stored_shard()
    await blob.delete(key)
    with pytest.raises(BlobMissing, match=f"shard {SHARD}, part {key} does not exist"):
        await asyncio.wait_for(read(client), 60)


async def test_a_merge_names_the_part_and_leaves_everything_as_it_was() -> None:
    _, blob, client, key = await stored_shard()
    before = await client.state(SHARD)
    blob.damage = lambda value: value[:-1]
    with pytest.raises(Corrupt, match=f"shard {SHARD}, part {key}: is damaged"):
        await compact_shard(client.machine, owned(blob), SHARD, DESC, 0, choose=tuple)
    await blob.delete(key)
    with pytest.raises(BlobMissing, match=f"shard {SHARD}, part {key} does not exist"):
        await compact_shard(client.machine, owned(blob), SHARD, DESC, 0, choose=tuple)
    assert await client.state(SHARD) == before
    assert await blob.keys() == []


async def test_a_missing_part_is_missing_also_while_others_append() -> None:
    """A state that has moved on is no reason to look for ever: it still refers to the part."""
    store, _, _, key = await stored_shard()
    consensus = store.consensus(await store.current_epoch())
    moved = Timestamp(2)

    class Busy(MemoryBlob):
        async def get(self, key: str) -> bytes:
            nonlocal moved
            upper = Timestamp(moved + 1)
            await writer.compare_and_append(SHARD, DESC, [], moved, upper)
            moved = upper
            return await super().get(key)

    busy = Busy()
    writer = PersistClient(consensus, busy)
    for read in READS.values():
        with pytest.raises(BlobMissing, match=f"part {key} does not exist"):
            await asyncio.wait_for(read(PersistClient(consensus, busy)), 60)


@each_read
async def test_every_read_names_the_shard_of_a_damaged_state(read: Read) -> None:
    store, _, client, _ = await stored_shard()
    consensus = store.consensus(await store.current_epoch())
    head = await consensus.head(SHARD)
    assert isinstance(head, Head)
    damaged = head.value[:-20] + bytes([head.value[-20] ^ 1]) + head.value[-19:]
    await consensus.compare_and_set_all([CompareAndSet(SHARD, head.seqno, damaged)])
    with pytest.raises(Corrupt, match=f"the state of shard {SHARD} is damaged"):
        await read(client)


@each_read
async def test_every_read_names_the_shard_of_an_inline_batch_that_does_not_fit(read: Read) -> None:
    store, blob = MemoryStore(), MemoryBlob()
    consensus = store.consensus(await store.raise_epoch())
    part = InlinePart(encode_inline([Update((1, "x"), Timestamp(0), 1)]), 1)
    batch = Batch(MIN_TS, Timestamp(2), MIN_TS, (part,))
    state = initial_state()
    wrong = ShardState(
        since=MIN_TS, upper=Timestamp(2), since_lag=state.since_lag, batches=(batch,)
    )
    await consensus.compare_and_set_all([CompareAndSet(SHARD, None, encode_state(wrong))])
    with pytest.raises(Corrupt, match=f"shard {SHARD}, inline part: "):
        await read(PersistClient(consensus, blob))
