"""What the storage layer raises: states of the world in which a call has no answer.

None of these is a SqlError. A lost race is not here either: that is a value the caller looks at.
"""

from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timestamp


class PersistFault(Exception):
    """A call could not be answered."""


class Fenced(PersistFault):
    """A newer generation has opened the environment; this process must exit with code 3."""

    def __init__(self, own_epoch: Epoch, current_epoch: Epoch) -> None:
        super().__init__(f"fenced: own epoch {own_epoch}, current epoch {current_epoch}")
        self.own_epoch = own_epoch
        self.current_epoch = current_epoch


class StoreUnreachable(PersistFault):
    """The store gave no answer, so the outcome of the call is unknown; exit code 4."""

    def __init__(self, reason: str, *, holder_pid: int | None = None) -> None:
        held = "" if holder_pid is None else f"; its write lock is held by process {holder_pid}"
        super().__init__(f"store unreachable: {reason}{held}")
        self.holder_pid = holder_pid


class StoreFull(PersistFault):
    """The store has no room. Nothing was done, or what was done is undone; ask again later."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"store full: {reason}")
        self.reason = reason


class StoreFailing(PersistFault):
    """The store answers with I/O errors; ask again later.

    A change that ended so is settled as far as the store can be asked: it is not visible. Only a
    crash before the store's next commit may still bring it to light, so it is done once at most.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"store failing: {reason}")
        self.reason = reason


class BelowSince(PersistFault):
    """History before `since` has been merged, so contents at `as_of` are no longer exact."""

    def __init__(self, shard_id: ShardId, as_of: Timestamp, since: Timestamp) -> None:
        super().__init__(f"shard {shard_id} is not readable at {as_of}, its since is {since}")
        self.shard_id = shard_id
        self.as_of = as_of
        self.since = since


class ShardMissing(PersistFault):
    """No such shard was ever created."""

    def __init__(self, shard_id: ShardId) -> None:
        super().__init__(f"shard {shard_id} does not exist")
        self.shard_id = shard_id


class BlobMissing(PersistFault):
    """The store holds nothing under this key: collected as garbage, or lost."""

    def __init__(self, key: str, *, shard_id: ShardId | None = None) -> None:
        name = f"blob {key}" if shard_id is None else _part(shard_id, key)
        super().__init__(f"{name} does not exist")
        self.key = key
        self.shard_id = shard_id


class Corrupt(PersistFault):
    """Stored bytes are not what was written."""

    def __init__(
        self, message: str, *, shard_id: ShardId | None = None, key: str | None = None
    ) -> None:
        part = _part(shard_id, key)
        super().__init__(f"{part}: {message}" if part else message)
        self.shard_id = shard_id
        self.key = key


class DamagedState(Corrupt):
    """The record of a shard is not what was written: of this shard, nothing is known."""

    def __init__(self, shard_id: ShardId | None, reason: str) -> None:
        name = "a shard" if shard_id is None else f"shard {shard_id}"
        super().__init__(f"the state of {name} is damaged{reason}")
        self.shard_id = shard_id


def _part(shard_id: ShardId | None, key: str | None) -> str:
    """What a message calls the part, as far as it is known."""
    if shard_id is None:
        return "" if key is None else f"part {key}"
    return f"shard {shard_id}, " + ("inline part" if key is None else f"part {key}")
