"""A snapshot being changed by one transaction: later ops see what earlier ones did."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from evertide.catalog.checks import refuse_broken
from evertide.catalog.kinds.temporary import is_temporary_id
from evertide.catalog.objects import (
    AuditDetail,
    AuditEvent,
    CatalogObject,
    CatalogUpdate,
    Cluster,
    Comment,
    Database,
    DefaultPrivilege,
    IdAllocator,
    IntrospectionSourceIndex,
    Item,
    ObjectKey,
    Role,
    RoleMembership,
    RolePassword,
    Schema,
    Secret,
    object_key,
)
from evertide.catalog.snapshot import Snapshot


class Allocator(StrEnum):
    """Families of ids; each has its own counter. Items, secrets and global ids share one."""

    AUDIT_EVENT = "audit_event"
    CLUSTER = "cluster"
    CLUSTER_ITEM = "cluster_item"
    DATABASE = "database"
    INTROSPECTION_SOURCE_INDEX = "introspection_source_index"
    OID = "oid"
    ROLE = "role"
    SCHEMA = "schema"
    STORAGE_USAGE = "storage_usage"
    USER = "user"


class _Touched(msgspec.Struct):
    """One object's first state in the transaction, and its last; None: it does not exist."""

    before: CatalogObject | None
    after: CatalogObject | None


class Draft:
    """Keeps the changed snapshot, and of every touched object only its first and last state."""

    def __init__(self, snapshot: Snapshot, *, now_ms: int, user: str | None) -> None:
        self.snapshot = snapshot
        self.now_ms = now_ms
        self.user = user
        self._touched: dict[ObjectKey, _Touched] = {}

    def create(self, created: CatalogObject) -> None:
        self._change(None, created)

    def replace(self, before: CatalogObject, after: CatalogObject) -> None:
        assert object_key(before) == object_key(after), "an object keeps its key"
        self._change(before, after)

    def remove(self, removed: CatalogObject) -> None:
        """The object goes, and with it what exists only for its sake."""
        for attached in _attached(self.snapshot, removed):
            self._change(attached, None)
        self._change(removed, None)

    def is_new(self, found: CatalogObject) -> bool:
        """Whether the transaction itself has made it."""
        touched = self._touched.get(object_key(found))
        return touched is not None and touched.before is None

    def allocate(self, allocator: Allocator) -> int:
        """The next number of a family. It is used up only if the transaction commits."""
        number = self.snapshot.next_numbers[allocator]
        self.replace(
            IdAllocator(name=allocator, next_number=number),
            IdAllocator(name=allocator, next_number=number + 1),
        )
        return number

    def allocate_id(self, allocator: Allocator) -> str:
        """The next id of a family, in the form that users' objects have."""
        return f"u{self.allocate(allocator)}"

    def audit(self, event_type: str, object_type: str, details: dict[str, AuditDetail]) -> None:
        """Record the change in the same transaction; what one session does to its own is nobody's
        business."""
        if is_temporary_id(details.get("id", details.get("object_id"))):
            return
        event = AuditEvent(
            event_id=self.allocate(Allocator.AUDIT_EVENT),
            event_type=event_type,
            object_type=object_type,
            details=details,
            user=self.user,
            occurred_at_ms=self.now_ms,
        )
        self.create(event)

    def audit_item(self, event_type: str, item: Item, **details: AuditDetail) -> None:
        """Record what happened to an item that the draft's snapshot holds."""
        named: dict[str, AuditDetail] = {"id": item.item_id, **full_name(self.snapshot, item)}
        self.audit(event_type, item.kind.value, {**named, **details})

    def updates(self) -> tuple[CatalogUpdate, ...]:
        """What the transaction changes, each object at most once gone and once come.

        Raises BrokenCatalog if that would leave objects which contradict one another.
        """
        refuse_broken(
            self.snapshot,
            [each.after for each in self._touched.values() if each.after is not None],
            [key for key, each in self._touched.items() if each.after is None],
        )
        found: list[CatalogUpdate] = []
        for touched in self._touched.values():
            if touched.before == touched.after:
                continue
            if touched.before is not None:
                found.append(CatalogUpdate(touched.before, -1))
            if touched.after is not None:
                found.append(CatalogUpdate(touched.after, 1))
        return tuple(found)

    def _change(self, before: CatalogObject | None, after: CatalogObject | None) -> None:
        gone = () if before is None else (CatalogUpdate(before, -1),)
        came = () if after is None else (CatalogUpdate(after, 1),)
        self.snapshot = self.snapshot.apply((*gone, *came), self.snapshot.upper)
        identified = after if before is None else before
        assert identified is not None, "a change has a before or an after"
        touched = self._touched.setdefault(object_key(identified), _Touched(before, after))
        touched.after = after


def _attached(snapshot: Snapshot, removed: CatalogObject) -> Sequence[CatalogObject]:
    """Comments on the object; what a cluster's replicas report; a role's memberships; defaults.

    A membership that the role merely granted is none of its own: it keeps the role from going.
    """
    key = object_key(removed)
    comments = snapshot.referrers(Comment, key)
    match removed:
        case Cluster():
            return [*comments, *snapshot.referrers(IntrospectionSourceIndex, key)]
        case Database() | Schema():
            return [*comments, *snapshot.referrers(DefaultPrivilege, key)]
        case Role(role_id=role_id):
            memberships = snapshot.referrers(RoleMembership, key)
            own = [m for m in memberships if role_id in (m.role_id, m.member_id)]
            return [*comments, *own, *snapshot.referrers(RolePassword, key)]
        case _:
            return comments


def full_name(snapshot: Snapshot, item: Item | Secret) -> dict[str, str]:
    """An item's name in the parts that audit events use."""
    schema = snapshot.schemas[item.schema_id]
    if schema.database_id is None:
        return {"schema": schema.name, "item": item.name}
    database = snapshot.databases[schema.database_id]
    return {"database": database.name, "schema": schema.name, "item": item.name}
