"""Definitions of a materialized view besides the one it has: the staged one, and earlier ones."""

import msgspec

from evertide.vocab.ids import ClusterId, GlobalId, ItemId
from evertide.vocab.timestamp import Timestamp


class Replacement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """That a materialized view is staged: it computes, but another one's shard is not yet its."""

    target: ItemId
    apply_when_ready: bool = False
    hydrated: bool = False  # it has been noted that it was, once
    forward_time: bool = False  # an automatic apply may leave an interval unreadable


class NamedInput(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a name in a kept text meant when the text was in use."""

    name: tuple[str, ...]
    item_id: ItemId


class PastVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One earlier definition of a materialized view, as it was when another took its place.

    What it reads may be renamed or dropped since, so the text alone no longer tells what it means.
    """

    global_id: GlobalId
    create_sql: str
    depends_on: tuple[ItemId, ...] = ()
    cluster_id: ClusterId
    as_of: Timestamp
    planned_against: tuple[GlobalId, ...] = ()
    names: tuple[NamedInput, ...] = ()
