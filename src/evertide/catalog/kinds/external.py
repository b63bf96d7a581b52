"""Sources and sinks: collections that a cluster writes by itself, and those it writes out."""

from typing import TypeAlias

import msgspec

from evertide.vocab.ids import ClusterId, ItemId, ShardId
from evertide.vocab.timestamp import Timestamp


class CounterLoad(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="counter",
    omit_defaults=True,
    gc=False,
):
    """The numbers 1, 2, 3, … one at each tick."""

    tick_ms: int
    from_tick: int = 0  # what earlier ticks bring is there from the beginning
    up_to_tick: int | None = None  # nothing comes from this tick on; None: it never ends
    max_cardinality: int | None = None  # so many of the newest are kept; None: all


class AuctionLoad(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="auction",
    omit_defaults=True,
    gc=False,
):
    """An auction house: at each tick an auction begins, or somebody bids."""

    tick_ms: int
    from_tick: int = 0
    up_to_tick: int | None = None
    seed: int = 0


Load: TypeAlias = CounterLoad | AuctionLoad


class Source(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="source",
    omit_defaults=True,
    gc=False,
):
    """Rows that a load generator makes; the replicas of one cluster write them."""

    cluster_id: ClusterId
    as_of: Timestamp  # when its first tick was: contents at every time follow from this
    load: Load
    shard_id: ShardId | None = None  # None: its rows are in its subsources
    history_ms: int | None = None


class Subsource(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="subsource",
    omit_defaults=True,
    gc=False,
):
    """One of the tables of a source that makes several."""

    source_id: ItemId
    table: str  # what the generator calls it
    as_of: Timestamp
    shard_id: ShardId
    history_ms: int | None = None


class Sink(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="sink",
    omit_defaults=True,
    gc=False,
):
    """A file into which one cluster writes all changes of a collection."""

    from_id: ItemId
    cluster_id: ClusterId
    as_of: Timestamp  # changes after this are written, and what there was then
    path: str  # under the directory of sinks, parts with slashes between them
    snapshot: bool = True  # whether what there was at as_of is written too


def external_type(definition: Source | Subsource | Sink) -> str:
    """What sort of source or sink it is, in the words of system relations and audit events."""
    match definition:
        case Source():
            return "load-generator"
        case Subsource():
            return "subsource"
        case Sink():
            return "file"
