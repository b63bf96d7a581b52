"""What the catalog notes about itself, about the environment, and about other objects."""

from typing import ClassVar, TypeAlias

import msgspec

from evertide.catalog.kinds.kind import ObjectKind
from evertide.vocab.ids import ItemId
from evertide.vocab.timestamp import Timeline, Timestamp


class IdAllocator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The next number of one family of ids."""

    KIND: ClassVar[ObjectKind] = ObjectKind.ID_ALLOCATOR
    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    next_number: int


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A number about the catalog itself, such as its stored version."""

    KIND: ClassVar[ObjectKind] = ObjectKind.CONFIG
    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    value: int


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A text about the environment, such as its id; not for users to change."""

    KIND: ClassVar[ObjectKind] = ObjectKind.SETTING
    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    value: str


class SystemConfiguration(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """A variable that ALTER SYSTEM SET gave a value; absent ones have their default."""

    KIND: ClassVar[ObjectKind] = ObjectKind.SYSTEM_CONFIGURATION
    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    value: str


AuditDetail: TypeAlias = str | int | bool | dict[str, str] | None


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One change, who made it and when. Only ever added; a snapshot does not keep them."""

    KIND: ClassVar[ObjectKind] = ObjectKind.AUDIT_EVENT
    KEY: ClassVar[tuple[str, ...]] = ("event_id",)

    event_id: int
    event_type: str  # create, alter, drop
    object_type: str  # table, view, cluster, ...
    details: dict[str, AuditDetail]
    user: str | None  # None: the system itself
    occurred_at_ms: int


class StorageUsage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """How much an object took at one moment. Only ever added; a snapshot does not keep them."""

    KIND: ClassVar[ObjectKind] = ObjectKind.STORAGE_USAGE
    KEY: ClassVar[tuple[str, ...]] = ("usage_id",)

    usage_id: int
    object_id: ItemId  # may be of an item that is gone by now
    size_bytes: int
    collected_at_ms: int


class Comment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What people should know about an object, or about one column of it."""

    KIND: ClassVar[ObjectKind] = ObjectKind.COMMENT
    KEY: ClassVar[tuple[str, ...]] = ("object_kind", "object_id", "sub_id")

    object_kind: ObjectKind
    object_id: str  # the only field of the object's key
    sub_id: int | None  # a column's number, from 1; None: the object itself
    comment: str


class SystemObjectMapping(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """The id of a system relation, and what it looked like when the catalog was last opened."""

    KIND: ClassVar[ObjectKind] = ObjectKind.SYSTEM_OBJECT_MAPPING
    KEY: ClassVar[tuple[str, ...]] = ("schema", "object_type", "name")

    schema: str
    object_type: str  # table, view
    name: str
    object_id: ItemId
    fingerprint: str


class TimelineTimestamp(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """How far a timeline was when the catalog was last opened.

    The oracle's own rows are the truth; this is what is left of them in a copy of the catalog.
    """

    KIND: ClassVar[ObjectKind] = ObjectKind.TIMESTAMP
    KEY: ClassVar[tuple[str, ...]] = ("timeline",)

    timeline: Timeline
    ts: Timestamp
