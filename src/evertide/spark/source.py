"""Where input changes come from: collections as updates over an interval of time."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from evertide.dataflow.description import Import
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.contents import Contents
from evertide.persist.leases import ReadHold
from evertide.persist.spark_input import PartFiles
from evertide.persist.state import ShardState
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from evertide.vocab.update import Update


class Look(Protocol):
    """How far several collections were, all at one moment."""

    def upper(self, collection: Import) -> Timestamp:
        """The first timestamp at which it was not known yet."""
        ...

    def state(self, collection: Import) -> ShardState:
        """What its shard said."""
        ...

    def unchanged(self, collection: Import, from_ts: Timestamp) -> bool:
        """Whether it certainly has no updates from this timestamp up to its upper."""
        ...


class ColumnReads(Protocol):
    """Reads that leave rows in columns; controller/columns.py offers them."""

    async def updates(
        self,
        collection: Import,
        lower: Timestamp,
        upper: Timestamp,
        seen: ShardState | None = None,
    ) -> UpdateBatch: ...

    async def snapshot(self, collection: Import, as_of: Timestamp) -> UpdateBatch: ...


class Collections(Protocol):
    """Reads of durable collections; controller/storage.py offers it."""

    @property
    def columns(self) -> ColumnReads: ...

    async def since(self, collection: Import) -> Timestamp: ...

    async def upper(self, collection: Import) -> Timestamp: ...

    async def look(self, collections: Sequence[Import]) -> Look: ...

    async def hold(self, collections: Sequence[Import], as_of: Timestamp) -> ReadHold: ...

    async def records(self, collection: Import) -> int: ...

    async def decoded_bytes(self, collection: Import) -> int: ...

    async def contents(self, collection: Import, as_of: Timestamp) -> Contents: ...

    def part_files(
        self, collection: Import, as_of: Timestamp
    ) -> AbstractAsyncContextManager[PartFiles]: ...


async def input_upper(collections: Collections, imports: Sequence[Import]) -> Timestamp:
    """The timestamp up to which every input is complete; without inputs, all of time."""
    return min([await collections.upper(i) for i in imports], default=EMPTY_FRONTIER)


async def input_since(collections: Collections, imports: Sequence[Import]) -> Timestamp:
    """The earliest timestamp at which every input is exact."""
    return max([await collections.since(i) for i in imports], default=Timestamp(0))


async def snapshot_inputs(
    collections: Collections, imports: Sequence[Import], as_of: Timestamp
) -> dict[GlobalId, Sequence[Update]]:
    """Every input's contents as updates at `as_of`: the delta from nothing."""
    return {i.global_id: await collections.columns.snapshot(i, as_of) for i in imports}


async def input_deltas(
    collections: Collections,
    imports: Sequence[Import],
    lower: Timestamp,
    upper: Timestamp,
    look: Look | None = None,
) -> dict[GlobalId, Sequence[Update]]:
    """Every input's changes at lower <= ts < upper, all of which are known, as they were stored.

    `look`: the one that found them complete up to `upper`.
    """
    found: dict[GlobalId, Sequence[Update]] = {}
    for one in imports:
        seen = None if look is None else look.state(one)
        found[one.global_id] = await collections.columns.updates(one, lower, upper, seen)
    return found


def count_updates(inputs: Mapping[GlobalId, Sequence[Update]]) -> int:
    """How many changes a tick looks at."""
    return sum(len(updates) for updates in inputs.values())
