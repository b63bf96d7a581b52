"""What must hold of an object by itself: ids, names, numbers and times that can be meant.

Ops only ever make such objects. Edits by hand may ask for others, and a catalog may hold some from
a time when nobody looked.
"""

import re
from collections.abc import Iterator
from typing import Final

from evertide.catalog.hands import odd_hands
from evertide.catalog.objects import (
    CatalogObject,
    Cluster,
    ClusterProfile,
    Comment,
    Config,
    DroppedItem,
    IdAllocator,
    IntrospectionSourceIndex,
    Item,
    ManagedCluster,
    MaterializedView,
    ObjectKind,
    RolePassword,
    Sink,
    Source,
    StorageUsage,
    Subsource,
    TimelineTimestamp,
)
from evertide.catalog.references import OID_ALLOCATOR, ids_of, oids_of
from evertide.vocab.scram import read_verifier
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp

COMMENTABLE: Final = (
    ObjectKind.CLUSTER,
    ObjectKind.CLUSTER_ITEM,
    ObjectKind.DATABASE,
    ObjectKind.ITEM,
    ObjectKind.ROLE,
    ObjectKind.SCHEMA,
    ObjectKind.SECRET,
)

_ID: Final = re.compile(r"[su][1-9][0-9]*")
_REPORT_ID: Final = re.compile(r"si[1-9][0-9]*")
_LAST_OID: Final = 2**32 - 1
_LAST_NUMBER: Final = 2**63 - 1


def oddities_of(found: CatalogObject) -> Iterator[str]:
    """What is wrong with the object, each as the end of a sentence that begins with its name."""
    yield from _odd_ids(found)
    if getattr(found, "name", None) == "":
        yield "has an empty name"
    for oid in oids_of(found):
        if not 1 <= oid <= _LAST_OID:
            yield f"has the oid {oid}, which is not between 1 and {_LAST_OID}"
    yield from _odd_numbers(found)
    if isinstance(found, Item):
        yield from _odd_versions(found)
        yield from odd_hands(found)
    if isinstance(found, DroppedItem):
        yield from _odd_dropped(found)
    if isinstance(found, RolePassword) and read_verifier(found.verifier) is None:
        yield "has a verifier that no password can be checked by"
    if isinstance(found, Comment) and found.object_kind not in COMMENTABLE:
        yield f"is on a {found.object_kind}, but must be on one of {', '.join(COMMENTABLE)}"


def _odd_ids(found: CatalogObject) -> Iterator[str]:
    reports = isinstance(found, IntrospectionSourceIndex)
    wanted, words = (_REPORT_ID, "si") if reports else (_ID, "u or s")
    for _, text in ids_of(found):
        if wanted.fullmatch(text) is None:
            yield f"has the id '{text}', which is not {words} and a number"


def _odd_numbers(found: CatalogObject) -> Iterator[str]:
    match found:
        case TimelineTimestamp(ts=ts):
            yield from _odd_time(ts)
        case Item(definition=MaterializedView() as definition):
            for ts in (definition.as_of, *(past.as_of for past in definition.past)):
                yield from _odd_time(ts)
        case Item(definition=Source() | Subsource() | Sink() as definition):
            yield from _odd_time(definition.as_of)
            if isinstance(definition, Source) and definition.load.tick_ms < 1:
                yield f"has ticks of {definition.load.tick_ms} ms, which is not positive"
        case StorageUsage():
            yield from _odd_time(found.collected_at_ms)
            yield from _negative("size", found.size_bytes)
        case Config(value=value):
            yield from _negative("value", value)
        case ClusterProfile():
            yield from _negative("replication factor", found.replication_factor or 0)
            if found.expires_at_ms is not None:
                yield from _odd_time(found.expires_at_ms)
        case Cluster(variant=ManagedCluster(replication_factor=factor, pending=pending)):
            yield from _negative("replication factor", factor)
            if pending is not None:
                yield from _negative("replication factor", pending.target.replication_factor)
                yield from _odd_time(pending.deadline_ms)
        case IdAllocator(name=name, next_number=number):
            last = _LAST_OID if name == OID_ALLOCATOR else _LAST_NUMBER
            if not 1 <= number <= last:
                yield f"has the next number {number}, which is not between 1 and {last}"
        case _:
            return


def _odd_time(ts: Timestamp | int) -> Iterator[str]:
    if not MIN_TS <= ts < EMPTY_FRONTIER:
        yield f"has the timestamp {ts}, which is not between 0 and {EMPTY_FRONTIER - 1}"


def _negative(name: str, value: int) -> Iterator[str]:
    if value < 0:
        yield f"has the {name} {value}, which is negative"


def _odd_dropped(dropped: DroppedItem) -> Iterator[str]:
    if dropped.item.item_id != dropped.item_id:
        yield f"keeps item {dropped.item.item_id}"
    yield from oddities_of(dropped.item)
    yield from _odd_time(dropped.dropped_at_ms)


def _odd_versions(item: Item) -> Iterator[str]:
    if not item.versions:
        yield "has no version"
    for column in (column for version in item.versions for column in version.columns):
        try:
            column.type.to_sql_type()
        except ValueError as error:
            yield f"has the column '{column.name}' of an unknown type: {error}"
