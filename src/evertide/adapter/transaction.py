"""A session's transaction: nothing yet, reading at one timestamp, or collecting writes.

Reads fix their timestamp once and never write; writes are collected and committed together at the
end and never read. So a transaction needs no locks: it is one read of, or one write to, history.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from evertide.persist.leases import ReadHold
from evertide.persist.txn import TableWrite
from evertide.vocab.datum import Row
from evertide.vocab.errors import InvalidTransactionState, ReadOnlyTransaction
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Untouched:
    """No statement has read or written yet."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Every read of the transaction is at this timestamp."""

    as_of: Timestamp


@dataclass(slots=True)
class Writing:
    """Rows to be committed, by table."""

    rows: dict[ShardId, list[tuple[Row, int]]] = field(default_factory=dict)
    descs: dict[ShardId, RelationDesc] = field(default_factory=dict)
    names: dict[ShardId, str] = field(default_factory=dict)

    def add(
        self, shard_id: ShardId, name: str, desc: RelationDesc, rows: list[tuple[Row, int]]
    ) -> None:
        """Collect rows for a table."""
        self.rows.setdefault(shard_id, []).extend(rows)
        self.descs[shard_id] = desc
        self.names[shard_id] = name

    def writes(self) -> dict[ShardId, TableWrite]:
        """What is to be committed."""
        return {s: TableWrite(self.descs[s], rows) for s, rows in self.rows.items()}


Work: TypeAlias = Untouched | Reading | Writing


@dataclass(slots=True)
class Transaction:
    """`explicit` transactions were begun by BEGIN; implicit ones last one query or until Sync."""

    explicit: bool
    read_only: bool = False
    failed: bool = False
    work: Work = field(default_factory=Untouched)
    # What keeps its timestamp readable until it ends.
    holds: list[ReadHold] = field(default_factory=list)

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
            case Untouched():
                return None

    def end(self) -> None:
        """History that was kept for it may go."""
        for hold in self.holds:
            hold.release()
        self.holds.clear()

    def start_reading(self, as_of: Timestamp) -> None:
        """Fix the timestamp of this and later reads."""
        if self.explicit and isinstance(self.work, Untouched):
            self.work = Reading(as_of)

    def start_writing(self) -> Writing:
        """The rows collected so far; refused in a transaction that has read."""
        if self.read_only or isinstance(self.work, Reading):
            raise ReadOnlyTransaction(
                "transaction in read-only mode",
                hint="A transaction either reads or writes; run the write in one of its own.",
            )
        if not isinstance(self.work, Writing):
            self.work = Writing()
        return self.work
