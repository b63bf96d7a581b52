"""What a process tells of a shard that it changed, for those who know the state before.

Most changes are appends: the next state has one batch more, and that is told. Whoever knows the
state of the seqno before thereby knows the next one without reading it, and what was told does not
make it look less often: a look then finds that nothing is new. A state is what its seqno says,
whoever tells of it, so news that are late, lost or out of order cost no more than a read.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from evertide.persist.state import ShardState
from evertide.vocab.ids import ShardId


class News(NamedTuple):
    """The state of `seqno`: the batches of the one before, then those of `rest`, and all else."""

    shard_id: ShardId
    seqno: int
    rest: ShardState


class Heard(NamedTuple):
    """News as they came, not read yet: most are of no use to most who hear them."""

    shard_id: ShardId
    seqno: int
    encoded: msgspec.Raw

    def state_after(self, before: ShardState) -> ShardState:
        """The state that is told of, to whoever has the one before; raises UNREADABLE."""
        rest = _state_decoder.decode(self.encoded)
        return msgspec.structs.replace(rest, batches=before.batches + rest.batches)


OnNews: TypeAlias = Callable[[Sequence[Heard]], None]
_Message: TypeAlias = tuple[list[ShardId] | None, list[Heard]]

# Of messages, and of the states in them.
_FORMAT: Final = 1
# What reading a message may raise: text that is no UTF-8 is not msgspec's own error.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[Literal[1], list[ShardId] | None, list[Heard]])
_state_decoder = msgspec.msgpack.Decoder(ShardState)


@runtime_checkable
class NewsBringer(Protocol):
    """A notifier that brings news along with hints."""

    def subscribe_news(self, on_news: OnNews) -> Callable[[], None]:
        """Call back before those who wait for the shards are told; the result ends it."""
        ...


def news_of(
    shard_id: ShardId, seqno: int, before: ShardState | None, after: ShardState
) -> News | None:
    """What to tell of a change; None: the state has not just grown, and must be read."""
    if before is None:
        return None
    kept = len(before.batches)
    # Those that stayed are the same objects: quick to compare.
    if after.batches[:kept] != before.batches:
        return None
    return News(shard_id, seqno, msgspec.structs.replace(after, batches=after.batches[kept:]))


def encode_message(
    shard_ids: Collection[ShardId] | None, news: Sequence[News], largest_bytes: int
) -> bytes:
    """Changed shards, None for all, and what there is to tell of them if it is not too much."""
    if shard_ids is not None:
        encoded = _encoder.encode((_FORMAT, list(shard_ids), news))
        if len(encoded) > largest_bytes and news:
            encoded = _encoder.encode((_FORMAT, list(shard_ids), ()))
        if len(encoded) <= largest_bytes:
            return encoded
    return _encoder.encode((_FORMAT, None, ()))


def decode_message(message: bytes | memoryview) -> _Message:
    """Inverse of encode_message; raises UNREADABLE, also for messages of another format."""
    _, shard_ids, news = _decoder.decode(message)
    return shard_ids, news
