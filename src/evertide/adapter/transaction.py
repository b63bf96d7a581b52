"""A session's transaction: nothing yet, reading at one timestamp, collecting writes, or collecting
changes of objects.

Queries fix their timestamp once and never write. Writes are collected and committed together at the
end; those that depend on stored rows (UPDATE, DELETE, INSERT ... SELECT) read at one timestamp too,
see what the transaction wrote before them, and commit only if nothing they read has changed since.
So a transaction needs no locks: it is one read of, or one write to, history.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from evertide.adapter.client import RowStream
from evertide.catalog.draft import Draft
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.temporary import is_held
from evertide.dataflow.description import Import
from evertide.persist.image import Places, TableImage
from evertide.persist.leases import ReadHold
from evertide.persist.txn import TableWrite, join_writes
from evertide.sql.plan.plans import DdlPlan
from evertide.sql.plan.roles.rights import Privilege
from evertide.vocab.errors import ActiveTransaction, InvalidTransactionState, ReadOnlyTransaction
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Untouched:
    """No statement has read or written yet."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Every read of the transaction is at this timestamp, of collections in this domain."""

    as_of: Timestamp
    domain: frozenset[ShardId] = frozenset()


@dataclass(frozen=True, slots=True)
class Subscribing:
    """A subscription is all that the transaction does."""


@dataclass(slots=True)
class ReadSet:
    """What writes were computed from: collections, complete below one upper of all tables."""

    upper: Timestamp
    collections: dict[ShardId, Import] = field(default_factory=dict)


@dataclass(slots=True)
class SeenImage:
    """A table as the transaction sees it, after the first of its own changes."""

    base: TableImage
    changes: int
    # Rows of it that went with the last of these: taken away when somebody looks.
    gone: Places | None = None

    @property
    def image(self) -> TableImage:
        if self.gone is not None:
            self.base, self.gone = self.base.without(self.gone), None
        return self.base


@dataclass(slots=True)
class Writing:
    """Changes to be committed, by table, and what they depend on."""

    changes: dict[ShardId, list[TableWrite]] = field(default_factory=dict)
    names: dict[ShardId, str] = field(default_factory=dict)
    # None: they depend on nothing.
    read_set: ReadSet | None = None
    images: dict[ShardId, SeenImage] = field(default_factory=dict)
    # What each change takes that is bounded.
    weights: dict[ShardId, list[int]] = field(default_factory=dict)

    def add(self, shard_id: ShardId, name: str, write: TableWrite, weight: int = 0) -> None:
        """Collect a change of a table."""
        self.names[shard_id] = name
        changes = self.changes.setdefault(shard_id, [])
        if not write.empty:
            changes.append(write)
            self.weights.setdefault(shard_id, []).append(weight)

    @property
    def collected(self) -> int:
        """What all changes take that is bounded."""
        return sum(map(sum, self.weights.values()))

    def go_back(self, counts: Mapping[ShardId, int]) -> None:
        """Forget all but so many changes of each table."""
        for shard_id in list(self.changes):
            if shard_id not in counts:
                del self.changes[shard_id]
                self.weights.pop(shard_id, None)
                continue
            del self.changes[shard_id][counts[shard_id] :]
            del self.weights.get(shard_id, [])[counts[shard_id] :]
        # They show changes that are gone; they are made anew when they are asked for.
        self.images.clear()

    def changes_of(self, shard_id: ShardId) -> list[TableWrite]:
        """What the transaction has done to a table so far."""
        return self.changes.get(shard_id, [])

    def writes(self) -> dict[ShardId, TableWrite]:
        """What is to be committed."""
        return self._joined(held=False)

    def own_writes(self) -> dict[ShardId, TableWrite]:
        """What is to be written to temporary tables, which nobody else sees."""
        return self._joined(held=True)

    def _joined(self, *, held: bool) -> dict[ShardId, TableWrite]:
        found = self.changes.items()
        return {s: join_writes(changes) for s, changes in found if changes and is_held(s) is held}


# Plans a statement against another snapshot; None: it has become one of another kind.
Planning: TypeAlias = Callable[[Snapshot], DdlPlan | None]


@dataclass(frozen=True, slots=True)
class Tried:
    """The version of the catalog that a block's steps were tried on, and what came of it."""

    version: tuple[int, int]
    draft: Draft
    snapshot: Snapshot


@dataclass(slots=True)
class Defining:
    """Changes of objects, to be made one after another when the block is committed."""

    steps: list[Planning] = field(default_factory=list)
    alone: bool = False  # nothing may come beside the one step
    # What they make of the catalog; None: to be found out.
    tried: Tried | None = None


Work: TypeAlias = Untouched | Reading | Subscribing | Writing | Defining


def _only_subscribe() -> InvalidTransactionState:
    return InvalidTransactionState("SUBSCRIBE in transactions must be the only read statement")


def only_defining() -> InvalidTransactionState:
    """The error of what reads or writes rows where objects are changed."""
    return InvalidTransactionState(
        "transactions which modify objects are restricted to just modifying objects",
        hint="Commit first.",
    )


class Span(Enum):
    """How long a transaction lasts."""

    STATEMENT = 1
    STRING = 2  # of several statements that were sent as one
    BLOCK = 3  # from BEGIN to COMMIT
    PIPELINE = 4  # of statements before one Sync


@dataclass(slots=True)
class Transaction:
    """Reads at one timestamp, and commits what it writes when it ends."""

    span: Span = Span.STATEMENT
    read_only: bool = False
    failed: bool = False
    queried: bool = False  # some of what it is cannot be changed any more
    work: Work = field(default_factory=Untouched)
    # What keeps its timestamp readable until it ends.
    holds: list[ReadHold] = field(default_factory=list)
    # What its writes take, to be asked for again when they are committed.
    taken: dict[Privilege, None] = field(default_factory=dict)
    # Rows that still come, no longer than it lasts.
    streams: list[RowStream] = field(default_factory=list)

    @property
    def explicit(self) -> bool:
        """Whether it was begun by BEGIN, and ends with COMMIT or ROLLBACK."""
        return self.span is Span.BLOCK

    @property
    def goes_on(self) -> bool:
        """Whether more than one statement may belong to it."""
        return self.span is not Span.STATEMENT

    def reading_as_of(self, *, timed: bool = False) -> Timestamp | None:
        """The timestamp that reads are at, once it is fixed; refused while writing.

        `timed`: the statement says itself at what time it reads, whatever else is read.
        """
        match self.work:
            case Reading(as_of=as_of):
                return as_of
            case Writing():
                raise InvalidTransactionState("transaction in write-only mode")
            case Subscribing():
                if timed:
                    return None
                raise _only_subscribe()
            case Defining():
                raise only_defining()
            case Untouched():
                return None

    def become(self, *, read_only: bool | None, isolation: str | None) -> None:
        """Take other modes than it began with, as long as that makes no odds to what it did."""
        if read_only is False and self.read_only and self.queried:
            raise ActiveTransaction("transaction read-write mode must be set before any query")
        if isolation is not None and self.explicit and self.queried:
            raise ActiveTransaction(
                "SET TRANSACTION ISOLATION LEVEL must be called before any query"
            )
        if read_only is not None:
            self.read_only = read_only

    def end(self) -> None:
        """History that was kept for it may go, and its streams end."""
        for stream in self.streams:
            stream.close()
        self.streams.clear()
        for hold in self.holds:
            hold.release()
        self.holds.clear()

    def start_reading(self, as_of: Timestamp, domain: frozenset[ShardId] = frozenset()) -> None:
        """Fix the timestamp of this and later reads, and what they may read."""
        if self.goes_on and isinstance(self.work, Untouched):
            self.work = Reading(as_of, domain)

    def start_subscribing(self) -> None:
        """A subscription has a time of its own, so it must be all that a transaction reads."""
        if not self.goes_on:
            return
        if isinstance(self.work, Defining):
            raise only_defining()
        if isinstance(self.work, Reading):
            raise ReadOnlyTransaction(
                "transaction in read-only mode",
                detail="SELECT queries cannot be combined with other query types, including"
                " SUBSCRIBE.",
            )
        if not isinstance(self.work, Untouched):
            raise _only_subscribe()
        self.work = Subscribing()

    def start_writing(self) -> Writing:
        """The rows collected so far; refused in a transaction that has read."""
        if self.read_only or isinstance(self.work, Reading | Subscribing):
            raise ReadOnlyTransaction("transaction in read-only mode")
        if isinstance(self.work, Defining):
            raise only_defining()
        if not isinstance(self.work, Writing):
            self.work = Writing()
        return self.work

    def start_defining(self) -> Defining:
        """The changes of objects collected so far; a block that reads or writes has none."""
        if self.read_only or isinstance(self.work, Reading | Subscribing):
            raise ReadOnlyTransaction("transaction in read-only mode")
        if isinstance(self.work, Writing):
            raise InvalidTransactionState("transaction in write-only mode")
        if not isinstance(self.work, Defining):
            self.work = Defining()
        return self.work
