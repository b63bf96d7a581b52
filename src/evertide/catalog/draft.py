"""A snapshot being changed by one transaction: later ops see what earlier ones did."""

from enum import StrEnum

import msgspec

from evertide.catalog.objects import (
    AuditDetail,
    AuditEvent,
    CatalogObject,
    CatalogUpdate,
    IdAllocator,
    Item,
    ObjectKey,
    object_key,
)
from evertide.catalog.snapshot import Snapshot


class Allocator(StrEnum):
    """Families of ids; each has its own counter. Item ids and global ids share one."""

    AUDIT_EVENT = "audit_event"
    CLUSTER = "cluster"
    CLUSTER_REPLICA = "cluster_replica"
    DATABASE = "database"
    OID = "oid"
    ROLE = "role"
    SCHEMA = "schema"
    USER = "user"


class _Touched(msgspec.Struct):
    """One object's first state in the transaction, and its last; None: it does not exist."""

    before: CatalogObject | None
    after: CatalogObject | None


class Draft:
    """Keeps the changed snapshot, and of every touched object only its first and last state."""

    def __init__(self, snapshot: Snapshot, *, now_ms: int, user: str | None) -> None:
        self.snapshot = snapshot
        self._now_ms = now_ms
        self._user = user
        self._touched: dict[ObjectKey, _Touched] = {}

    def create(self, created: CatalogObject) -> None:
        self._change(None, created)

    def replace(self, before: CatalogObject, after: CatalogObject) -> None:
        assert object_key(before) == object_key(after), "an object keeps its key"
        self._change(before, after)

    def remove(self, removed: CatalogObject) -> None:
        self._change(removed, None)

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
        """Record the change in the same transaction."""
        event = AuditEvent(
            event_id=self.allocate(Allocator.AUDIT_EVENT),
            event_type=event_type,
            object_type=object_type,
            details=details,
            user=self._user,
            occurred_at_ms=self._now_ms,
        )
        self.create(event)

    def audit_item(self, event_type: str, item: Item, **details: AuditDetail) -> None:
        """Record what happened to an item that the draft's snapshot holds."""
        named: dict[str, AuditDetail] = {"id": item.item_id, **full_name(self.snapshot, item)}
        self.audit(event_type, item.kind.value, {**named, **details})

    def updates(self) -> tuple[CatalogUpdate, ...]:
        """What the transaction changes, each object at most once gone and once come."""
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


def full_name(snapshot: Snapshot, item: Item) -> dict[str, str]:
    """An item's name in the parts that audit events use."""
    schema = snapshot.schemas[item.schema_id]
    assert schema.database_id is not None, "items live in schemas of databases"
    database = snapshot.databases[schema.database_id]
    return {"database": database.name, "schema": schema.name, "item": item.name}
