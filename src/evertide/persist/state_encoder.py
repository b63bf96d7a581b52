"""Encoding states of which all but the last batch was there before, as after most appends.

The bytes of the other batches are kept, so that an append costs what it brings, not what lies in
the state already: the many small objects of that would have to be gone through each time.
"""

from typing import Final, TypeAlias

from evertide.persist.cache import SizedCache
from evertide.persist.state import Batch, ShardState, encode_batch, encode_state
from evertide.vocab.ids import ShardId

_KEPT_BYTES: Final = 16 * 1024**2
# So few are encoded as quickly as their bytes are found.
_FEW: Final = 24

# Batches, and the bytes of one after the other.
_Kept: TypeAlias = tuple[tuple[Batch, ...], bytes]


class StateEncoder:
    """What encode_state gives, sooner."""

    def __init__(self) -> None:
        self._kept: SizedCache[ShardId, _Kept] = SizedCache(_KEPT_BYTES)

    def encode(self, shard_id: ShardId, state: ShardState) -> bytes:
        """The stored form of the shard's next state, or of what one was meant to be."""
        batches = state.batches
        if len(batches) < _FEW:
            return encode_state(state)
        encoded = _encode(batches, self._kept.get(shard_id))
        self._kept.put(shard_id, (batches, encoded), len(encoded))
        return encode_state(state, encoded)


def _encode(batches: tuple[Batch, ...], kept: _Kept | None) -> bytes:
    if kept is not None:
        before, encoded = kept
        if batches is before:
            return encoded
        # Batches never change, and those that were there are the same objects: quick to compare.
        if batches[:-1] == before:
            return encoded + encode_batch(batches[-1])
    return b"".join(map(encode_batch, batches))
