"""The ops that change what exists: names, owners, comments, history."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from evertide.catalog.acl import Guarded
from evertide.catalog.checks import described
from evertide.catalog.create import is_reserved, refuse_taken_name, refuse_unknown_role
from evertide.catalog.draft import Draft, full_name
from evertide.catalog.drop import with_parts
from evertide.catalog.kinds.privileges import handed_over
from evertide.catalog.objects import (
    CatalogObject,
    Cluster,
    ClusterProfile,
    ClusterReplica,
    Comment,
    Database,
    Item,
    NamedType,
    ObjectKey,
    ObjectKind,
    Role,
    Schema,
    Secret,
    Sink,
    Subsource,
    Table,
    View,
    kind_name,
    object_key,
)
from evertide.catalog.ops import (
    ChangeOwnerOp,
    RenameItemOp,
    RenameObjectOp,
    SetClusterOp,
    SetCommentOp,
    SetHistoryOp,
    SetSecretOp,
)
from evertide.catalog.profiles import replica_name, replicas_in
from evertide.catalog.references import names_of
from evertide.catalog.replacements import keep_staged
from evertide.catalog.rewriting import existing_item, rewrite
from evertide.vocab.errors import (
    DuplicateObject,
    InsufficientPrivilege,
    InvalidName,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from evertide.vocab.ids import RoleId

Renamable: TypeAlias = Database | Schema | Role | Cluster | ClusterReplica | ClusterProfile | Secret
Owned: TypeAlias = Database | Schema | Cluster | ClusterReplica | ClusterProfile | Item | Secret
Commentable: TypeAlias = Owned | Role


def rename_item(draft: Draft, op: RenameItemOp) -> None:
    item = existing_item(draft, op.item_id)
    refuse_taken_name(draft, item.schema_id, op.new_name, item.kind.value)
    renamed = msgspec.structs.replace(item, name=op.new_name, create_sql=op.create_sql)
    draft.replace(item, renamed)
    rewrite(draft, op.dependants_sql)
    new_name = full_name(draft.snapshot, renamed)
    old_name = {**new_name, "item": item.name}
    draft.audit(
        "alter",
        item.kind.value,
        {"id": item.item_id, "old_name": old_name, "new_name": new_name},
    )


def set_history(draft: Draft, op: SetHistoryOp) -> None:
    item = existing_item(draft, op.item_id)
    if isinstance(item.definition, View | Sink | NamedType):
        raise WrongObjectType(f'{item.kind.sql_words} "{item.name}" keeps no history')
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


def set_cluster(draft: Draft, op: SetClusterOp) -> None:
    item = existing_item(draft, op.item_id)
    if item.cluster_id is None:
        raise WrongObjectType(f'{item.kind.sql_words} "{item.name}" runs in no cluster')
    if op.cluster_id not in draft.snapshot.clusters:
        raise UndefinedObject(f"unknown cluster '{op.cluster_id}'")
    if item.cluster_id == op.cluster_id:
        return
    assert not isinstance(item.definition, Table | View | Subsource | NamedType), (
        "those run in no cluster"
    )
    definition = msgspec.structs.replace(item.definition, cluster_id=op.cluster_id)
    draft.replace(
        item, msgspec.structs.replace(item, definition=definition, create_sql=op.create_sql)
    )
    draft.audit(
        "alter",
        item.kind.value,
        {"id": item.item_id, "old_cluster": item.cluster_id, "new_cluster": op.cluster_id},
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
    rewrite(draft, op.items_sql)


def _rename(draft: Draft, before: Renamable, new_name: str) -> None:
    renamed = msgspec.structs.replace(before, name=new_name)
    own = object_key(before)
    if any(key != own for name in names_of(renamed) for key in draft.snapshot.named(name)):
        raise DuplicateObject(f"{_words(before)} '{new_name}' already exists")
    draft.replace(before, renamed)
    details = {"id": str(own[1]), "old_name": before.name, "new_name": new_name}
    if isinstance(before, Schema) and before.database_id is not None:
        details["database_name"] = draft.snapshot.databases[before.database_id].name
    draft.audit("alter", _words(before).replace(" ", "-"), {**details})
    if isinstance(before, ClusterProfile) and before.managed:
        # A managed profile's replicas are found by its name.
        for number in range(1, (before.replication_factor or 0) + 1):
            for replica in replicas_in(draft, before):
                if replica.name == replica_name(before.name, number):
                    _rename(draft, replica, replica_name(new_name, number))


def set_secret(draft: Draft, op: SetSecretOp) -> None:
    """The audit log tells that there is another value, and no more."""
    secret = draft.snapshot.secrets.get(op.secret_id)
    if secret is None:
        raise UndefinedObject(f"unknown secret '{op.secret_id}'")
    draft.replace(secret, msgspec.structs.replace(secret, stored_at=op.stored_at))
    draft.audit("alter", "secret", {"id": secret.secret_id})


def change_owner(draft: Draft, op: ChangeOwnerOp) -> None:
    """Parts go with the whole: indexes with their relation, replicas with their cluster.

    So does what is staged to replace a view: no definition of one's own is left to come to it.
    """
    before = _existing(draft, op.target)
    if not isinstance(before, Owned):
        raise UndefinedObject(f"{described(op.target)} has no owner")
    _refuse_system(before)
    refuse_unknown_role(draft, op.new_owner)
    if before.owner == op.new_owner:
        return
    for part in (before, *_parts(draft, before)):
        if part.owner != op.new_owner:
            _hand_over(draft, part, op.new_owner)


def _hand_over(draft: Draft, before: Owned, new_owner: RoleId) -> None:
    after = msgspec.structs.replace(before, owner=new_owner)
    if isinstance(before, Guarded):
        acl = handed_over(before.privileges, before.owner, new_owner)
        after = msgspec.structs.replace(after, privileges=acl)
    draft.replace(before, after)
    details = {
        "object_id": str(object_key(before)[1]),
        "old_owner_id": before.owner,
        "new_owner_id": new_owner,
    }
    draft.audit("alter", _words(before).replace(" ", "-"), {**details})
    if isinstance(after, Item):
        keep_staged(draft, after)


def _parts(draft: Draft, found: Owned) -> Sequence[Owned]:
    match found:
        case Item(item_id=item_id):
            parts = with_parts(draft.snapshot, [item_id]) - {item_id}
            staged = draft.snapshot.replacement_of(item_id)
            found_parts = [draft.snapshot.items[part] for part in sorted(parts)]
            return found_parts if staged is None else [*found_parts, staged]
        case Cluster(cluster_id=cluster_id):
            replicas = draft.snapshot.replicas_of(cluster_id)
            return [*draft.snapshot.profiles_of(cluster_id), *replicas]
        case _:
            return ()


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


def _refuse_system(found: Commentable) -> None:
    if str(object_key(found)[1]).startswith("s"):
        raise InsufficientPrivilege(f"system {_words(found)} '{found.name}' cannot be modified")


def _words(found: Commentable) -> str:
    """What the object is, as messages say it."""
    return found.kind.sql_words if isinstance(found, Item) else kind_name(found).replace("_", " ")
