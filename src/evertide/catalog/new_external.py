"""Sources, sinks and indexes to be created, before anything of theirs has an id."""

from dataclasses import dataclass

from evertide.catalog.objects import IndexKey, Load
from evertide.vocab.ids import ClusterId, ItemId, SchemaId
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Beside:
    """An item that an earlier op of the same transaction creates, so that its id is not known."""

    schema_id: SchemaId
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSource:
    """A source; with `stored`, its shard gets its name from the new GlobalId."""

    cluster_id: ClusterId
    as_of: Timestamp
    load: Load
    stored: bool  # else its rows are in its subsources
    history_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSubsource:
    """One of the tables of a source."""

    of: Beside
    table: str
    as_of: Timestamp
    history_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSink:
    """A file that follows a collection."""

    from_id: ItemId
    cluster_id: ClusterId
    as_of: Timestamp
    path: str
    snapshot: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIndex:
    """An index of what comes with it."""

    on: Beside
    cluster_id: ClusterId
    keys: tuple[IndexKey, ...]
