"""What a client is told of a fault.

Few faults concern the whole process: one that is fenced, or without a store, must end, and nobody
gets a better answer from it. All others concern the statement that met them.
"""

from evertide.persist.faults import (
    BelowSince,
    BlobMissing,
    Corrupt,
    DamagedState,
    PersistFault,
    ShardMissing,
    StoreFailing,
    StoreFull,
)
from evertide.vocab.errors import (
    DataCorrupted,
    DiskFull,
    InternalError,
    IoError,
    ObjectNotInPrerequisiteState,
    SqlError,
    UndefinedTable,
)


def ends_the_process(fault: PersistFault) -> bool:
    """Whether no later statement of this process could be answered either."""
    return isinstance(told(fault), InternalError)


def told(fault: PersistFault, whose: str | None = None) -> SqlError:
    """The error that a statement ends with; `whose` shard is damaged, where somebody knows that."""
    match fault:
        case StoreFull(reason=reason):
            return DiskFull(
                "could not write: there is no room left",
                detail=reason,
                hint="Nothing was written. Free some space and try again; reads go on meanwhile.",
            )
        case StoreFailing(reason=reason):
            return IoError(
                "the store failed",
                detail=reason,
                hint="A write may or may not take effect: look before trying again.",
            )
        case Corrupt() | BlobMissing():
            return DataCorrupted(
                str(fault) if whose is None else f"{whose} is damaged",
                detail=None if whose is None else str(fault),
                hint="Restore the consensus store from a copy, or drop what is damaged."
                if isinstance(fault, DamagedState)
                else "Restore the part from a copy of the blob store.",
            )
        case BelowSince():
            return ObjectNotInPrerequisiteState(
                "the timestamp of the query is no longer readable",
                detail=str(fault),
                hint="Run the query, or its transaction, again.",
            )
        case ShardMissing():
            return UndefinedTable("what the statement reads was dropped", detail=str(fault))
        case _:
            return InternalError(str(fault))
