"""What a durable catalog offers, in three steps of trust: openable, readable, writable."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from evertide.catalog.objects import AuditEvent, CatalogUpdate
from evertide.catalog.snapshot import Snapshot
from evertide.persist.handle import Appended, Refused
from evertide.persist.state import ShardChange, UpperMismatch
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import Timestamp


class CatalogFault(Exception):
    """The stored catalog cannot be opened as it is; someone must act."""


class Uninitialized(CatalogFault):
    """Nobody has opened this environment for writing yet."""


class IncompatibleVersion(CatalogFault):
    """Written by a newer program, or to be upgraded first by one that opens it for writing."""

    def __init__(self, stored: int, known: int) -> None:
        super().__init__(f"incompatible catalog version {stored}, this program knows {known}")
        self.stored = stored
        self.known = known


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

    def follow(self, from_upper: Timestamp) -> AsyncIterator[Progress]:
        """Every transaction at or beyond this timestamp, in order, for ever."""
        ...

    async def audit_events(self, as_of: Timestamp) -> list[AuditEvent]:
        """All events up to this catalog timestamp, oldest first. Not kept in memory."""
        ...

    async def dump(self) -> str:
        """Every stored row as one JSON object per line, for people."""
        ...


class WritableCatalog(ReadableCatalog, Protocol):
    """The catalog under one epoch. Every write raises Fenced once a newer generation has opened."""

    @property
    def epoch(self) -> Epoch: ...

    async def compare_and_append(
        self,
        updates: Sequence[CatalogUpdate],
        *,
        expected_upper: Timestamp,
        write_ts: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
    ) -> AppendOutcome:
        """Append at `write_ts`, change data shards and apply the oracle's write, all or nothing."""
        ...

    async def confirm_leadership(self) -> None:
        """Raises Fenced if the epoch is no longer the current one."""
        ...


class OpenableCatalog(Protocol):
    """A catalog that is not open yet; only what is needed before opening can be asked."""

    async def is_initialized(self) -> bool: ...

    async def current_epoch(self) -> Epoch:
        """0 before the first generation."""
        ...

    async def open(self) -> WritableCatalog:
        """Begin a generation: raise the epoch, fill an empty environment, upgrade an old one."""
        ...

    async def join(self, epoch: Epoch) -> WritableCatalog:
        """Write under a generation that is current; raises Fenced if it is not."""
        ...

    async def open_read_only(self) -> ReadableCatalog:
        """Raises Uninitialized, or IncompatibleVersion where an upgrade is needed."""
        ...

    async def check_open(self) -> None:
        """Whether `open` would succeed, without changing anything; raises why not."""
        ...
