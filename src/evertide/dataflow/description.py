"""A dataflow: what it reads, what it computes, where the result goes."""

from dataclasses import dataclass
from typing import TypeAlias

from evertide.expr.relation import Relation
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.refresh import RefreshSchedule
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Import:
    """A collection that the dataflow reads from its shard.

    A table's upper is that of the txns shard, which moves all tables at once.
    """

    global_id: GlobalId
    shard_id: ShardId
    desc: RelationDesc
    is_table: bool
    # None where the collection does not follow from others alone.
    derived: "Derived | None" = None


@dataclass(frozen=True, slots=True)
class Derived:
    """How a view's collection follows from others: while they stand still, so does it."""

    inputs: tuple[Import, ...]
    # Where its shard starts: it holds nothing of the view before its upper is beyond this.
    as_of: Timestamp
    # The version of the view that this is about: it holds only while that one has the shard.
    writer: GlobalId
    # It may look at the time itself, so that it changes though no input does.
    by_time: bool = False
    # It changes at these times alone; None: whenever an input does.
    refresh: RefreshSchedule | None = None


@dataclass(frozen=True, slots=True)
class Takeover:
    """The shard is another version's, from which this one is to take it over."""

    # The view under the version that writes its shard until then.
    old: Import
    # The catalog has switched: from now on the shard may be taken.
    may_write: bool
    # The old version is not waited for: an interval may be left unreadable.
    forward_time: bool = False


@dataclass(frozen=True, slots=True)
class ShardExport:
    """A materialized view: output diffs are appended to this shard by this writer."""

    shard_id: ShardId
    desc: RelationDesc
    # None: the shard is this version's.
    takeover: Takeover | None = None
    # The only times at which the shard changes; None: whenever the output does.
    refresh: RefreshSchedule | None = None


@dataclass(frozen=True, slots=True)
class IndexExport:
    """An index: the output is kept arranged by these columns and answers peeks.

    It may be wider than what readers see of it, `desc`: behind that are expressions of the key.
    """

    on_id: GlobalId
    key: tuple[int, ...]
    desc: RelationDesc
    # How long its past stays readable; None: as usual.
    history_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SubscribeExport:
    """A subscription: the output's changes are told to whoever asked, and kept nowhere."""

    desc: RelationDesc


Export: TypeAlias = ShardExport | IndexExport | SubscribeExport


@dataclass(frozen=True, slots=True)
class DataflowDescription:
    """One running computation of one cluster. `relation` is lowered: no OuterJoin in it."""

    global_id: GlobalId
    cluster_id: ClusterId
    imports: tuple[Import, ...]
    relation: Relation
    export: Export
    # Where the dataflow starts: the output is exact from here on.
    as_of: Timestamp

    @property
    def refresh(self) -> RefreshSchedule | None:
        """The only times at which a view's shard changes; None: whenever its output does."""
        return self.export.refresh if isinstance(self.export, ShardExport) else None


def hold_owner(global_id: GlobalId) -> str:
    """The name under which a view's critical hold stands in its inputs' states.

    Whoever creates the view takes the hold, and whoever runs it moves it: both must agree.
    """
    return f"view {global_id}"
