"""A session's transaction: nothing yet, reading at one timestamp, or collecting writes.

Queries fix their timestamp once and never write. Writes are collected and committed together at the
end; those that depend on stored rows (UPDATE, DELETE, INSERT ... SELECT) read at one timestamp too,
see what the transaction wrote before them, and commit only if nothing they read has changed since.
So a transaction needs no locks: it is one read of, or one write to, history.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from evertide.adapter.client import RowStream
from evertide.dataflow.description import Import
from evertide.persist.image import TableImage
from evertide.persist.leases import ReadHold
from evertide.persist.txn import TableWrite, join_writes
from evertide.sql.plan.roles.rights import Privilege
from evertide.vocab.errors import InvalidTransactionState, ReadOnlyTransaction
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Untouched:
    """No statement has read or written yet."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Every read of the transaction is at this timestamp."""

    as_of: Timestamp


@dataclass(frozen=True, slots=True)
class Subscribing:
    """A subscription is all that the transaction does."""


@dataclass(slots=True)
class ReadSet:
    """What writes were computed from: collections, complete below one upper of all tables."""

    upper: Timestamp
    collections: dict[ShardId, Import] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeenImage:
    """A table as the transaction sees it, after the first of its own changes."""

    image: TableImage
    changes: int


@dataclass(slots=True)
class Writing:
    """Changes to be committed, by table, and what they depend on."""

    changes: dict[ShardId, list[TableWrite]] = field(default_factory=dict)
    names: dict[ShardId, str] = field(default_factory=dict)
    # None: they depend on nothing.
    read_set: ReadSet | None = None
    images: dict[ShardId, SeenImage] = field(default_factory=dict)

    def add(self, shard_id: ShardId, name: str, write: TableWrite) -> None:
        """Collect a change of a table."""
        self.names[shard_id] = name
        self.changes.setdefault(shard_id, [])
        if not write.empty:
            self.changes[shard_id].append(write)

    def changes_of(self, shard_id: ShardId) -> list[TableWrite]:
        """What the transaction has done to a table so far."""
        return self.changes.get(shard_id, [])

    def writes(self) -> dict[ShardId, TableWrite]:
        """What is to be committed."""
        return {s: join_writes(changes) for s, changes in self.changes.items() if changes}


Work: TypeAlias = Untouched | Reading | Subscribing | Writing


def _only_subscribe() -> InvalidTransactionState:
    return InvalidTransactionState("SUBSCRIBE in transactions must be the only read statement")


@dataclass(slots=True)
class Transaction:
    """`explicit` transactions were begun by BEGIN; implicit ones last one query or until Sync."""

    explicit: bool
    read_only: bool = False
    failed: bool = False
    work: Work = field(default_factory=Untouched)
    # What keeps its timestamp readable until it ends.
    holds: list[ReadHold] = field(default_factory=list)
    # What its writes take, to be asked for again when they are committed.
    taken: dict[Privilege, None] = field(default_factory=dict)
    # Rows that still come, no longer than it lasts.
    streams: list[RowStream] = field(default_factory=list)

    def reading_as_of(self) -> Timestamp | None:
        """The timestamp that reads are at, once it is fixed; refused while writing."""
        match self.work:
            case Reading(as_of=as_of):
                return as_of
            case Writing():
                raise InvalidTransactionState(
                    "transaction in write-only mode",
                    hint="Commit the writes first; a transaction either reads or writes.",
                )
            case Subscribing():
                raise _only_subscribe()
            case Untouched():
                return None

    def end(self) -> None:
        """History that was kept for it may go, and its streams end."""
        for stream in self.streams:
            stream.close()
        self.streams.clear()
        for hold in self.holds:
            hold.release()
        self.holds.clear()

    def start_reading(self, as_of: Timestamp) -> None:
        """Fix the timestamp of this and later reads."""
        if self.explicit and isinstance(self.work, Untouched):
            self.work = Reading(as_of)

    def start_subscribing(self) -> None:
        """A subscription has a time of its own, so it must be all that a transaction reads."""
        if not self.explicit:
            return
        if not isinstance(self.work, Untouched):
            raise _only_subscribe()
        self.work = Subscribing()

    def start_writing(self) -> Writing:
        """The rows collected so far; refused in a transaction that has read."""
        if self.read_only or isinstance(self.work, Reading | Subscribing):
            raise ReadOnlyTransaction(
                "transaction in read-only mode",
                hint="A transaction either reads or writes; run the write in one of its own.",
            )
        if not isinstance(self.work, Writing):
            self.work = Writing()
        return self.work
