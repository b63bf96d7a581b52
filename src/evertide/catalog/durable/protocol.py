"""What a durable catalog offers, in three steps of trust: openable, readable, writable."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from evertide.catalog.durable.transaction import Transaction
from evertide.catalog.faults import CatalogFault
from evertide.catalog.objects import CatalogObject, CatalogUpdate
from evertide.catalog.snapshot import Snapshot
from evertide.persist.append import Appended
from evertide.persist.machine import Refused
from evertide.persist.state import ShardChange, UpperMismatch
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import Timestamp

ObjectT = TypeVar("ObjectT", bound=CatalogObject)


class Uninitialized(CatalogFault):
    """Nobody has opened this environment for writing yet."""


class IncompatibleVersion(CatalogFault):
    """Written by a newer program, or to be upgraded first by one that opens it for writing."""

    def __init__(self, stored: int, known: int) -> None:
        super().__init__(f"incompatible catalog version {stored}, this program knows {known}")
        self.stored = stored
        self.known = known


class ShadowDifference(CatalogFault):
    """The two catalogs of a shadow do not tell the same; going on would hide which is right."""

    def __init__(self, difference: str) -> None:
        super().__init__(f"the two catalogs of the shadow differ: {difference}")


@dataclass(frozen=True, slots=True)
class Progress:
    """The changes of at most one transaction, and how far the catalog is complete with them."""

    updates: tuple[CatalogUpdate, ...]
    upper: Timestamp


# Refused names a data shard whose change, asked for in the same transaction, was not possible.
AppendOutcome: TypeAlias = Appended | UpperMismatch | Refused


class ReadableCatalog(Protocol):
    """The catalog as it is and as it changes. Never writes, so it may outlive its generation."""

    async def load(self) -> Snapshot:
        """The newest contents."""
        ...

    async def get(
        self, object_type: type[ObjectT], as_of: Timestamp | None = None
    ) -> list[ObjectT]:
        """All objects of one kind, by key; the newest, or those of a catalog timestamp.

        Read from the store each time: for kinds that no snapshot keeps, and for tools.
        """
        ...

    def follow(self, from_upper: Timestamp) -> AsyncIterator[Progress]:
        """Every transaction at or beyond this timestamp, in order, for ever."""
        ...

    async def dump(self) -> str:
        """Every stored row as one JSON object per line, for people; passwords are left out."""
        ...


class WritableCatalog(ReadableCatalog, Protocol):
    """The catalog under one epoch. Every write raises Fenced once a newer generation has opened."""

    @property
    def epoch(self) -> Epoch: ...

    async def transaction(self, *, user: str | None = None) -> Transaction:
        """Begin to change the newest contents, in memory; audit events name the user."""
        ...

    async def commit_transaction(
        self, transaction: Transaction, shard_changes: Sequence[ShardChange] = ()
    ) -> AppendOutcome:
        """Make its changes durable, unless somebody else was first."""
        ...

    async def compare_and_append(
        self,
        updates: Sequence[CatalogUpdate],
        *,
        expected_upper: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
    ) -> AppendOutcome:
        """Append, change data shards and take a timestamp of the oracle, all or nothing."""
        ...

    async def confirm_leadership(self) -> None:
        """Raises Fenced if the epoch is no longer the current one."""
        ...


class OpenableCatalog(Protocol):
    """A catalog that is not open yet; only what is needed before opening can be asked."""

    @property
    def boot_ts(self) -> int:
        """When this was made, in milliseconds."""
        ...

    async def is_initialized(self) -> bool: ...

    async def current_epoch(self) -> Epoch:
        """0 before the first generation."""
        ...

    async def deployment_generation(self) -> int | None:
        """That of whoever opened it last with one; None before. Needs no upgrade."""
        ...

    async def open(self, deployment_generation: int | None = None) -> WritableCatalog:
        """Begin a generation: fill an empty environment, or upgrade an old one.

        One store transaction raises the epoch and makes the changes. If they are not possible,
        nothing is changed and nobody is fenced.
        """
        ...

    async def join(self, epoch: Epoch) -> WritableCatalog:
        """Write under a generation that is current; raises Fenced if it is not."""
        ...

    async def open_read_only(self) -> ReadableCatalog:
        """Raises Uninitialized, or IncompatibleVersion where an upgrade is needed."""
        ...

    async def open_savepoint(self) -> WritableCatalog:
        """A copy in memory, opened as `open` would: changes of it are never stored."""
        ...

    async def check_open(self) -> Snapshot:
        """What `open` would make of what is stored, changing nothing; raises why it would fail."""
        ...
