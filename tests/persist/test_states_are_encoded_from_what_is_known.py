"""Goal: the bytes of a state do not depend on what the encoder kept of those before it.

Method: random histories of a few shards, in which batches are appended, merged, dropped and
replaced by equal ones, encoded with and without the memory of what came before.
"""

import random

import msgspec
import pytest

from evertide.persist.state import (
    Batch,
    BlobPart,
    Hold,
    InlinePart,
    Part,
    ShardState,
    decode_state,
    encode_batch,
    encode_state,
    initial_state,
)
from evertide.persist.state_encoder import StateEncoder
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp

SHARDS = [ShardId(name) for name in "abc"]


def new_batch(rng: random.Random, lower: Timestamp) -> Batch:
    part: Part = InlinePart(rng.randbytes(rng.randrange(300)), rng.randrange(9))
    if rng.random() < 0.1:
        part = BlobPart(f"key {rng.random()}", 1, 2, rng.getrandbits(64))
    return Batch(lower, Timestamp(lower + 1), MIN_TS, (part,))


def changed(state: ShardState, rng: random.Random) -> ShardState:
    batches, upper = state.batches, Timestamp(state.upper + 1)
    match rng.choices(["append", "move", "merge", "copy", "hold"], [20, 2, 1, 1, 1])[0]:
        case "append":
            batches = (*batches, new_batch(rng, state.upper))
        case "merge" if batches:
            start = rng.randrange(len(batches))
            batches = (*batches[:start], new_batch(rng, MIN_TS), *batches[start + 40 :])
        case "copy":
            batches = tuple(map(msgspec.structs.replace, batches))
        case "hold":
            hold = Hold(f"owner {upper}", upper, None)
            return msgspec.structs.replace(state, holds=(*state.holds, hold))
        case _:
            pass
    return msgspec.structs.replace(state, upper=upper, batches=batches)


@pytest.mark.parametrize("seed", range(20))
def test_what_was_kept_changes_nothing(seed: int) -> None:
    rng, encoder = random.Random(seed), StateEncoder()
    states, most = dict.fromkeys(SHARDS, initial_state()), 0
    for _ in range(600):
        shard_id = rng.choice(SHARDS)
        after = changed(states[shard_id], rng)
        assert encoder.encode(shard_id, after) == encode_state(after)
        if rng.random() < 0.9:  # else the change was not made, and another follows what was there
            states[shard_id] = after
        most = max(most, len(after.batches))
    assert most > 40, "some have so many that they are worth keeping"


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 65_535, 65_536])
def test_any_number_of_batches(count: int) -> None:
    one = Batch(Timestamp(1), Timestamp(2), MIN_TS, (InlinePart(b"x", 1),))
    state = msgspec.structs.replace(initial_state(), batches=(one,) * count)
    stored = encode_state(state, encode_batch(one) * count)
    assert stored == encode_state(state)
    assert decode_state(stored) == state
