"""Ops against a snapshot give updates: the one place that decides what a transaction changes.

Pure, so that a transaction that lost a race is planned again and decided again against the new
snapshot, and nothing of the first attempt is left anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from evertide.catalog.alter import (
    change_owner,
    rename_item,
    rename_object,
    set_cluster,
    set_comment,
    set_history,
    set_secret,
)
from evertide.catalog.clusters import (
    create_cluster,
    create_cluster_replica,
    drop_cluster,
    drop_cluster_replica,
)
from evertide.catalog.create import (
    create_database,
    create_item,
    create_role,
    create_schema,
    create_secret,
)
from evertide.catalog.draft import Allocator, Draft
from evertide.catalog.drop import drop_database, drop_items, drop_schema, drop_secret
from evertide.catalog.drop_role import drop_role
from evertide.catalog.dropped_ops import DroppedOp
from evertide.catalog.grants import (
    alter_role,
    grant_privileges,
    grant_role,
    revoke_privileges,
    revoke_role,
    set_default_privilege,
    set_role_variable,
    set_system_privilege,
)
from evertide.catalog.moving import move_to_schema
from evertide.catalog.moving_ops import MoveToSchemaOp
from evertide.catalog.notes import (
    record_storage_usage,
    set_config,
    set_setting,
    set_system_configuration,
)
from evertide.catalog.objects import CatalogUpdate, DroppedItem, Item
from evertide.catalog.ops import (
    AllocateIdsOp,
    AlterClusterOp,
    AlterClusterProfileOp,
    AlterOp,
    ChangeOwnerOp,
    ClusterOp,
    CreateClusterOp,
    CreateClusterProfileOp,
    CreateClusterReplicaOp,
    CreateDatabaseOp,
    CreateItemOp,
    CreateOp,
    CreateRoleOp,
    CreateSchemaOp,
    CreateSecretOp,
    DropClusterOp,
    DropClusterProfileOp,
    DropClusterReplicaOp,
    DropDatabaseOp,
    DropItemsOp,
    DropOp,
    DropRoleOp,
    DropSchemaOp,
    DropSecretOp,
    FinishReconfigurationOp,
    GrantOp,
    GrantRoleOp,
    MoveReplicaOp,
    NoteOp,
    Op,
    RecordReplicaRestartOp,
    RecordStorageUsageOp,
    RenameItemOp,
    RenameObjectOp,
    RevokeRoleOp,
    SetClusterOp,
    SetCommentOp,
    SetConfigOp,
    SetDefaultPrivilegeOp,
    SetHistoryOp,
    SetSecretOp,
    SetSettingOp,
    SetSystemConfigurationOp,
    SetSystemPrivilegeOp,
    StartReconfigurationOp,
    SwapClustersOp,
)
from evertide.catalog.privilege_ops import (
    AlterRoleOp,
    GrantPrivilegesOp,
    RevokePrivilegesOp,
    SetPasswordOp,
    SetRoleVariableOp,
)
from evertide.catalog.profiles import (
    alter_cluster_profile,
    create_cluster_profile,
    drop_cluster_profile,
    move_replica,
)
from evertide.catalog.reconfigure import (
    alter_cluster,
    finish_reconfiguration,
    record_replica_restart,
    start_reconfiguration,
    swap_clusters,
)
from evertide.catalog.replacement_ops import ReplacementOp
from evertide.catalog.replacements import change_replacement
from evertide.catalog.set_password import set_password
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.undrop import change_dropped
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

    @property
    def changed_items(self) -> tuple[tuple[Item, Item], ...]:
        """Items that exist before and after, as they were and as they are."""
        before = {item.item_id: item for item in self._items(-1)}
        after = (item for item in self._items(1) if item.item_id in before)
        return tuple((before[item.item_id], item) for item in after)

    @property
    def shelved(self) -> dict[ItemId, DroppedItem]:
        """Items that are kept from now on, to be brought back."""
        return self._kept(1)

    @property
    def unshelved(self) -> dict[ItemId, DroppedItem]:
        """Items that were kept, and came back or are gone for good."""
        return self._kept(-1)

    def _kept(self, diff: int) -> dict[ItemId, DroppedItem]:
        objects = (update.object for update in self.updates if update.diff == diff)
        return {found.item_id: found for found in objects if isinstance(found, DroppedItem)}

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
    if isinstance(op, AllocateIdsOp):
        return [draft.allocate_id(Allocator.USER) for _ in range(op.count)]
    if isinstance(op, CreateOp):
        _create(draft, op)
    elif isinstance(op, DropOp):
        _drop(draft, op)
    elif isinstance(op, AlterOp):
        _alter(draft, op)
    elif isinstance(op, GrantOp):
        _grant(draft, op)
    else:
        _note(draft, op)
    return ()


def _create(draft: Draft, op: CreateOp) -> None:
    match op:
        case CreateDatabaseOp():
            create_database(draft, op)
        case CreateSchemaOp():
            create_schema(draft, op)
        case CreateRoleOp():
            create_role(draft, op)
        case CreateClusterOp():
            create_cluster(draft, op)
        case CreateClusterProfileOp():
            create_cluster_profile(draft, op)
        case CreateClusterReplicaOp():
            create_cluster_replica(draft, op)
        case CreateItemOp():
            create_item(draft, op)
        case CreateSecretOp():
            create_secret(draft, op)
        case _:
            assert_never(op)


def _drop(draft: Draft, op: DropOp) -> None:
    match op:
        case DropItemsOp():
            drop_items(draft, op)
        case DropSecretOp():
            drop_secret(draft, op)
        case DropSchemaOp():
            drop_schema(draft, op)
        case DropDatabaseOp():
            drop_database(draft, op)
        case DropClusterOp():
            drop_cluster(draft, op)
        case DropClusterProfileOp():
            drop_cluster_profile(draft, op)
        case DropClusterReplicaOp():
            drop_cluster_replica(draft, op)
        case DropRoleOp():
            drop_role(draft, op)
        case _:
            assert_never(op)


def _alter(draft: Draft, op: AlterOp) -> None:
    if isinstance(op, ClusterOp):
        _alter_cluster(draft, op)
        return
    if isinstance(op, DroppedOp):
        change_dropped(draft, op)
        return
    if isinstance(op, ReplacementOp):
        change_replacement(draft, op)
        return
    match op:
        case RenameItemOp():
            rename_item(draft, op)
        case RenameObjectOp():
            rename_object(draft, op)
        case MoveToSchemaOp():
            move_to_schema(draft, op)
        case ChangeOwnerOp():
            change_owner(draft, op)
        case SetCommentOp():
            set_comment(draft, op)
        case SetHistoryOp():
            set_history(draft, op)
        case SetClusterOp():
            set_cluster(draft, op)
        case SetSecretOp():
            set_secret(draft, op)
        case _:
            assert_never(op)


def _alter_cluster(draft: Draft, op: ClusterOp) -> None:
    match op:
        case AlterClusterOp():
            alter_cluster(draft, op)
        case AlterClusterProfileOp():
            alter_cluster_profile(draft, op)
        case MoveReplicaOp():
            move_replica(draft, op)
        case SwapClustersOp():
            swap_clusters(draft, op)
        case StartReconfigurationOp():
            start_reconfiguration(draft, op)
        case FinishReconfigurationOp():
            finish_reconfiguration(draft, op)
        case RecordReplicaRestartOp():
            record_replica_restart(draft, op)
        case _:
            assert_never(op)


def _grant(draft: Draft, op: GrantOp) -> None:
    match op:
        case GrantRoleOp():
            grant_role(draft, op)
        case RevokeRoleOp():
            revoke_role(draft, op)
        case SetDefaultPrivilegeOp():
            set_default_privilege(draft, op)
        case SetSystemPrivilegeOp():
            set_system_privilege(draft, op)
        case GrantPrivilegesOp():
            grant_privileges(draft, op)
        case RevokePrivilegesOp():
            revoke_privileges(draft, op)
        case AlterRoleOp():
            alter_role(draft, op)
        case SetRoleVariableOp():
            set_role_variable(draft, op)
        case SetPasswordOp():
            set_password(draft, op)
        case _:
            assert_never(op)


def _note(draft: Draft, op: NoteOp) -> None:
    match op:
        case SetConfigOp():
            set_config(draft, op)
        case SetSettingOp():
            set_setting(draft, op)
        case SetSystemConfigurationOp():
            set_system_configuration(draft, op)
        case RecordStorageUsageOp():
            record_storage_usage(draft, op)
        case _:
            assert_never(op)
