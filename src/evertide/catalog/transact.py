"""Ops against a snapshot give updates: the one place that decides what a transaction changes.

Pure, so that a transaction that lost a race is planned again and decided again against the new
snapshot, and nothing of the first attempt is left anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import msgspec

from evertide.catalog.create import (
    create_cluster,
    create_cluster_replica,
    create_database,
    create_item,
    create_role,
    create_schema,
    refuse_taken_name,
)
from evertide.catalog.draft import Allocator, Draft, full_name
from evertide.catalog.drop import (
    drop_cluster,
    drop_cluster_replica,
    drop_database,
    drop_items,
    drop_schema,
)
from evertide.catalog.objects import CatalogUpdate, Item, SystemConfiguration
from evertide.catalog.ops import (
    AllocateIdsOp,
    CreateClusterOp,
    CreateClusterReplicaOp,
    CreateDatabaseOp,
    CreateItemOp,
    CreateRoleOp,
    CreateSchemaOp,
    DropClusterOp,
    DropClusterReplicaOp,
    DropDatabaseOp,
    DropItemsOp,
    DropSchemaOp,
    Op,
    RenameItemOp,
    SetSystemConfigurationOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import UndefinedTable
from evertide.vocab.ids import ItemId


@dataclass(frozen=True, slots=True)
class TransactResult:
    """What to append. `allocated` holds the ids that AllocateIdsOp asked for."""

    updates: tuple[CatalogUpdate, ...]
    allocated: tuple[str, ...] = ()

    @property
    def created_items(self) -> tuple[Item, ...]:
        """Items that did not exist before, in the order of their ops."""
        gone = {item.item_id for item in self._items(-1)}
        return tuple(item for item in self._items(1) if item.item_id not in gone)

    @property
    def dropped_items(self) -> tuple[Item, ...]:
        """Items that no longer exist, in the order they went."""
        came = {item.item_id for item in self._items(1)}
        return tuple(item for item in self._items(-1) if item.item_id not in came)

    def _items(self, diff: int) -> list[Item]:
        objects = (update.object for update in self.updates if update.diff == diff)
        return [found for found in objects if isinstance(found, Item)]


def transact(
    snapshot: Snapshot, ops: Sequence[Op], *, now_ms: int, user: str | None
) -> TransactResult:
    """The updates that these ops, one after another, make of the snapshot.

    Raises SqlError where one is not possible. `user` is whom audit events name; None: the system.
    """
    draft = Draft(snapshot, now_ms=now_ms, user=user)
    allocated: list[str] = []
    for op in ops:
        allocated.extend(apply_op(draft, op))
    return TransactResult(draft.updates(), tuple(allocated))


def apply_op(draft: Draft, op: Op) -> Sequence[str]:
    """Change the draft; gives the ids that the op asked for, if it asked for any."""
    match op:
        case CreateDatabaseOp():
            create_database(draft, op)
        case CreateSchemaOp():
            create_schema(draft, op)
        case CreateRoleOp():
            create_role(draft, op)
        case CreateClusterOp():
            create_cluster(draft, op)
        case CreateClusterReplicaOp():
            create_cluster_replica(draft, op)
        case CreateItemOp():
            create_item(draft, op)
        case DropItemsOp():
            drop_items(draft, op)
        case DropSchemaOp():
            drop_schema(draft, op)
        case DropDatabaseOp():
            drop_database(draft, op)
        case DropClusterOp():
            drop_cluster(draft, op)
        case DropClusterReplicaOp():
            drop_cluster_replica(draft, op)
        case RenameItemOp():
            _rename_item(draft, op)
        case SetSystemConfigurationOp():
            _set_system_configuration(draft, op)
        case AllocateIdsOp(count=count):
            return [draft.allocate_id(Allocator.USER) for _ in range(count)]
        case _:
            assert_never(op)
    return ()


def _rename_item(draft: Draft, op: RenameItemOp) -> None:
    item = _existing_item(draft, op.item_id)
    refuse_taken_name(draft, item.schema_id, op.new_name)
    renamed = msgspec.structs.replace(item, name=op.new_name, create_sql=op.create_sql)
    draft.replace(item, renamed)
    for dependant_id, create_sql in op.dependants_sql:
        dependant = _existing_item(draft, dependant_id)
        draft.replace(dependant, msgspec.structs.replace(dependant, create_sql=create_sql))
    new_name = full_name(draft.snapshot, renamed)
    old_name = {**new_name, "item": item.name}
    draft.audit(
        "alter",
        item.kind.value,
        {"id": item.item_id, "old_name": old_name, "new_name": new_name},
    )


def _existing_item(draft: Draft, item_id: ItemId) -> Item:
    item = draft.snapshot.items.get(item_id)
    if item is None:
        raise UndefinedTable(f"unknown catalog item '{item_id}'")
    return item


def _set_system_configuration(draft: Draft, op: SetSystemConfigurationOp) -> None:
    before_value = draft.snapshot.system_configurations.get(op.name)
    if before_value == op.value:
        return
    if before_value is not None:
        draft.remove(SystemConfiguration(name=op.name, value=before_value))
    if op.value is not None:
        draft.create(SystemConfiguration(name=op.name, value=op.value))
    draft.audit("alter", "system", {"name": op.name, "value": op.value})
