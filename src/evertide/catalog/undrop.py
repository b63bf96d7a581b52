"""The ops that bring dropped items back, and that end their being kept."""

from collections.abc import Container
from typing import assert_never

import msgspec

from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.create import refuse_taken_name, refuse_unknown_role, shard_of
from evertide.catalog.draft import Allocator, Draft
from evertide.catalog.dropped_ops import DroppedOp, PurgeDroppedOp, Returning, UndropItemsOp
from evertide.catalog.kinds.privileges import handed_over
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    Acl,
    Comment,
    Definition,
    DroppedItem,
    Index,
    Item,
    ItemVersion,
    MaterializedView,
    ObjectKind,
    PastVersion,
)
from evertide.catalog.repeated_versions import versions_meant, without_repetition
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import UndefinedObject, UndefinedSchema, UndefinedTable
from evertide.vocab.ids import GlobalId


def change_dropped(draft: Draft, op: DroppedOp) -> None:
    match op:
        case UndropItemsOp(items=items):
            meant = versions_meant(draft.snapshot)
            for returning in items:
                _undrop(draft, returning, meant)
        case PurgeDroppedOp():
            _purge(draft, op)
        case _:
            assert_never(op)


def _undrop(draft: Draft, returning: Returning, meant: Container[GlobalId]) -> None:
    """`meant`: versions of views that texts were planned against."""
    dropped = draft.snapshot.dropped_items.get(returning.item_id)
    if dropped is None:
        raise UndefinedTable(f"unknown dropped item '{returning.item_id}'")
    schema = draft.snapshot.schemas.get(returning.schema_id)
    if schema is None or schema.database_id is None:
        raise UndefinedSchema(f"unknown schema '{returning.schema_id}'")
    refuse_taken_name(draft, returning.schema_id, returning.name, dropped.kind.value)
    refuse_unknown_role(draft, returning.owner)
    if returning.cluster_id is not None and returning.cluster_id not in draft.snapshot.clusters:
        raise UndefinedObject(f"unknown cluster '{returning.cluster_id}'")
    for item_id in dropped.item.reads:
        if item_id not in draft.snapshot.items and builtin_of(item_id) is None:
            raise UndefinedTable(f"unknown catalog item '{item_id}'")
    draft.remove(dropped)
    item = without_repetition(_returned(draft, dropped, returning), meant)
    draft.create(item)
    for kept in dropped.comments:
        draft.create(
            Comment(
                object_kind=ObjectKind.ITEM,
                object_id=item.item_id,
                sub_id=kept.sub_id,
                comment=kept.comment,
            )
        )
    draft.audit_item("undrop", item)


def _returned(draft: Draft, dropped: DroppedItem, returning: Returning) -> Item:
    """The item as it goes on.

    What a cluster works for gets a new GlobalId: a replica that has not heard of the drop, or
    hears of both at once, must not take the old dataflow for the new one.
    """
    item = dropped.item
    versions, definition = item.versions, item.definition
    if isinstance(definition, MaterializedView | Index):
        new = GlobalId(draft.allocate_id(Allocator.USER))
        version = ItemVersion(global_id=new, columns=item.columns)
        definition = _going_on(dropped, returning, new)
        # Texts may have been planned against the view's last version, so that stays.
        versions = (*versions, version) if isinstance(definition, MaterializedView) else (version,)
    return msgspec.structs.replace(
        item,
        schema_id=returning.schema_id,
        name=returning.name,
        owner=returning.owner,
        create_sql=returning.create_sql,
        versions=versions,
        depends_on=item.reads,
        definition=definition,
        privileges=_left_of(item, returning, draft.snapshot),
    )


def _going_on(dropped: DroppedItem, returning: Returning, new: GlobalId) -> Definition:
    item, definition = dropped.item, dropped.item.definition
    assert returning.cluster_id is not None, "a cluster works for it"
    if isinstance(definition, Index):
        return msgspec.structs.replace(definition, cluster_id=returning.cluster_id)
    assert isinstance(definition, MaterializedView), "nothing else is computed by a cluster"
    before = PastVersion(
        global_id=item.global_id,
        create_sql=item.create_sql,
        depends_on=item.reads,
        cluster_id=definition.cluster_id,
        as_of=definition.as_of,
        planned_against=item.planned_against,
        names=tuple(name for name in dropped.names if name.item_id in item.reads),
    )
    anew = returning.anew_from
    return msgspec.structs.replace(
        definition,
        shard_id=definition.shard_id if anew is None else shard_of(new),
        cluster_id=returning.cluster_id,
        as_of=definition.as_of if anew is None else anew,
        past=(*definition.past, before),
        handing_over=False,
        forward_time=False,
        depends_on_after=(),
    )


def _left_of(item: Item, returning: Returning, snapshot: Snapshot) -> Acl:
    """Its privileges, but for those of roles that are gone."""
    acl = item.privileges
    if returning.owner != item.owner:
        acl = handed_over(acl, item.owner, returning.owner)
    there = {*snapshot.roles, PUBLIC_ROLE_ID}
    return tuple(entry for entry in acl if {entry.grantee, entry.grantor} <= there)


def _purge(draft: Draft, op: PurgeDroppedOp) -> None:
    for item_id in op.item_ids:
        dropped = draft.snapshot.dropped_items.get(item_id)
        if dropped is not None:
            draft.remove(dropped)
            database, schema = dropped.place
            named = {"database": database, "schema": schema, "item": dropped.name}
            draft.audit("purge", dropped.kind.value, {"id": item_id, **named})
