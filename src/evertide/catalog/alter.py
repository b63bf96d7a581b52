"""The ops that change what exists: names, owners, comments, history."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from evertide.catalog.checks import described
from evertide.catalog.create import is_reserved, refuse_taken_name, refuse_unknown_role
from evertide.catalog.draft import Draft, full_name
from evertide.catalog.objects import (
    CatalogObject,
    Cluster,
    ClusterProfile,
    ClusterReplica,
    Comment,
    Database,
    Item,
    ObjectKey,
    ObjectKind,
    Role,
    Schema,
    Secret,
    View,
    object_key,
)
from evertide.catalog.ops import (
    ChangeOwnerOp,
    RenameItemOp,
    RenameObjectOp,
    SetCommentOp,
    SetHistoryOp,
)
from evertide.catalog.profiles import replica_name, replicas_in
from evertide.catalog.references import names_of
from evertide.vocab.errors import (
    DuplicateObject,
    InsufficientPrivilege,
    InvalidName,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
    WrongObjectType,
)
from evertide.vocab.ids import ItemId

Renamable: TypeAlias = Database | Schema | Role | Cluster | ClusterReplica | ClusterProfile | Secret
Owned: TypeAlias = Database | Schema | Cluster | ClusterReplica | ClusterProfile | Item | Secret
Commentable: TypeAlias = Owned | Role


def rename_item(draft: Draft, op: RenameItemOp) -> None:
    item = _existing_item(draft, op.item_id)
    refuse_taken_name(draft, item.schema_id, op.new_name)
    renamed = msgspec.structs.replace(item, name=op.new_name, create_sql=op.create_sql)
    draft.replace(item, renamed)
    _rewrite(draft, op.dependants_sql)
    new_name = full_name(draft.snapshot, renamed)
    old_name = {**new_name, "item": item.name}
    draft.audit(
        "alter",
        item.kind.value,
        {"id": item.item_id, "old_name": old_name, "new_name": new_name},
    )


def set_history(draft: Draft, op: SetHistoryOp) -> None:
    item = _existing_item(draft, op.item_id)
    if isinstance(item.definition, View):
        raise WrongObjectType(f'view "{item.name}" keeps no history')
    definition = msgspec.structs.replace(item.definition, history_ms=op.history_ms)
    changed = msgspec.structs.replace(item, definition=definition, create_sql=op.create_sql)
    if changed == item:
        return
    draft.replace(item, changed)
    draft.audit(
        "alter",
        item.kind.value,
        {"id": item.item_id, "old_history_ms": item.history_ms, "new_history_ms": op.history_ms},
    )


def rename_object(draft: Draft, op: RenameObjectOp) -> None:
    before = _existing(draft, op.target)
    if not isinstance(before, Renamable):
        raise UndefinedObject(f"{described(op.target)} has no name of its own to change")
    _refuse_system(before)
    if is_reserved(op.new_name):
        raise InvalidName(
            f"unacceptable name '{op.new_name}'",
            detail='The prefixes "mz_" and "pg_" are reserved for the system.',
        )
    _rename(draft, before, op.new_name)
    _rewrite(draft, op.items_sql)


def _rename(draft: Draft, before: Renamable, new_name: str) -> None:
    renamed = msgspec.structs.replace(before, name=new_name)
    own = object_key(before)
    if any(key != own for name in names_of(renamed) for key in draft.snapshot.named(name)):
        raise DuplicateObject(f"{_words(before)} '{new_name}' already exists")
    draft.replace(before, renamed)
    details = {"id": str(own[1]), "old_name": before.name, "new_name": new_name}
    draft.audit("alter", _words(before).replace(" ", "-"), {**details})
    if isinstance(before, ClusterProfile) and before.managed:
        # A managed profile's replicas are found by its name.
        for number in range(1, (before.replication_factor or 0) + 1):
            for replica in replicas_in(draft, before):
                if replica.name == replica_name(before.name, number):
                    _rename(draft, replica, replica_name(new_name, number))


def change_owner(draft: Draft, op: ChangeOwnerOp) -> None:
    before = _existing(draft, op.target)
    if not isinstance(before, Owned):
        raise UndefinedObject(f"{described(op.target)} has no owner")
    _refuse_system(before)
    refuse_unknown_role(draft, op.new_owner)
    if before.owner == op.new_owner:
        return
    draft.replace(before, msgspec.structs.replace(before, owner=op.new_owner))
    details = {
        "object_id": str(op.target[1]),
        "old_owner_id": before.owner,
        "new_owner_id": op.new_owner,
    }
    draft.audit("alter", _words(before).replace(" ", "-"), {**details})


def set_comment(draft: Draft, op: SetCommentOp) -> None:
    target = _existing(draft, op.target)
    if not isinstance(target, Commentable):
        raise UndefinedObject(f"{described(op.target)} cannot have a comment")
    arity = len(target.columns) if isinstance(target, Item) else 0
    if op.column is not None and not 1 <= op.column <= arity:
        raise UndefinedColumn(f"column {op.column} of {described(op.target)} does not exist")
    kind, object_id = ObjectKind(str(op.target[0])), str(op.target[1])
    wanted = Comment(
        object_kind=kind, object_id=object_id, sub_id=op.column, comment=op.comment or ""
    )
    before = draft.snapshot.find(object_key(wanted))
    if before is not None:
        draft.remove(before)
    if op.comment is not None:
        draft.create(wanted)
    details = {"id": object_id, "name": target.name}
    draft.audit("comment", _words(target).replace(" ", "-"), {**details})


def _existing(draft: Draft, target: ObjectKey) -> CatalogObject:
    found = draft.snapshot.find(target)
    if found is None:
        raise UndefinedObject(f"unknown {described(target)}")
    return found


def _existing_item(draft: Draft, item_id: ItemId) -> Item:
    item = draft.snapshot.items.get(item_id)
    if item is None:
        raise UndefinedTable(f"unknown catalog item '{item_id}'")
    return item


def _rewrite(draft: Draft, definitions: Sequence[tuple[ItemId, str]]) -> None:
    for item_id, create_sql in definitions:
        item = _existing_item(draft, item_id)
        draft.replace(item, msgspec.structs.replace(item, create_sql=create_sql))


def _refuse_system(found: Commentable) -> None:
    if str(object_key(found)[1]).startswith("s"):
        raise InsufficientPrivilege(f"system {_words(found)} '{found.name}' cannot be modified")


def _words(found: Commentable) -> str:
    """What the object is, as messages say it."""
    return found.kind.sql_words if isinstance(found, Item) else found.KIND.value.replace("_", " ")
