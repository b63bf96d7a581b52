"""Encoding states of which all but the last batch was there before, as after most appends.

The bytes of the other batches are kept, so that an append costs what it brings, not what lies in
the state already: the many small objects of that would have to be gone through each time.
"""

from typing import Final, TypeAlias

from evertide.persist.state import Batch, ShardState, encode_batch, encode_state
from evertide.vocab.ids import ShardId

_KEPT_BYTES: Final = 16 * 1024**2
# So few are encoded as quickly as their bytes are found.
_FEW: Final = 12

# Batches, and the bytes of one after the other.
_Kept: TypeAlias = tuple[tuple[Batch, ...], bytes]
_NOTHING: Final[_Kept] = ((), b"")


class StateEncoder:
    """What encode_state gives, sooner."""

    def __init__(self) -> None:
        self._kept: dict[ShardId, _Kept] = {}
        self._kept_bytes = 0

    def encode(self, shard_id: ShardId, state: ShardState) -> bytes:
        """The stored form of the shard's next state, or of what one was meant to be."""
        batches = state.batches
        if len(batches) < _FEW:
            return encode_state(state)
        kept = self._kept.get(shard_id, _NOTHING)
        encoded = _encode(batches, kept)
        self._kept_bytes += len(encoded) - len(kept[1])
        if self._kept_bytes > _KEPT_BYTES:
            # Seldom, and all of them are soon made again where they are of use.
            self._kept.clear()
            self._kept_bytes = len(encoded)
        self._kept[shard_id] = (batches, encoded)
        return encode_state(state, encoded)


def _encode(batches: tuple[Batch, ...], kept: _Kept) -> bytes:
    before, encoded = kept
    if batches is before:
        return encoded
    # Batches never change, and those that were there are the same objects: quick to compare.
    if batches[:-1] == before:
        return encoded + encode_batch(batches[-1])
    return b"".join(map(encode_batch, batches))
