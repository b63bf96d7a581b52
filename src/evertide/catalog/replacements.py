"""The ops that change which definition a materialized view has, and what keeps one from staging.

A view changes hands in two transactions. The first gives it the replacement's version: from then on
the new dataflow may take the shard, while the old one still runs. The second notes that it has.
"""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from evertide.catalog.acl import roles_above
from evertide.catalog.draft import Draft, full_name
from evertide.catalog.hands import extends
from evertide.catalog.objects import Item, MaterializedView, PastVersion, Replacement
from evertide.catalog.replacement_ops import (
    ApplyReplacementOp,
    FinishHandoverOp,
    GiveUpApplyOp,
    NoteHydratedOp,
    ReplacementOp,
    SetApplyWhenReadyOp,
)
from evertide.catalog.rewriting import existing_item, rewrite
from evertide.catalog.shelving import names_of_inputs
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import (
    FeatureNotSupported,
    ObjectNotInPrerequisiteState,
    UndefinedTable,
    WrongObjectType,
)
from evertide.vocab.ids import GlobalId, ItemId


def change_replacement(draft: Draft, op: ReplacementOp) -> None:
    match op:
        case ApplyReplacementOp():
            _apply(draft, op)
        case FinishHandoverOp():
            _finish(draft, op)
        case SetApplyWhenReadyOp():
            _set_apply_when_ready(draft, op)
        case NoteHydratedOp():
            _note_hydrated(draft, op)
        case GiveUpApplyOp():
            _give_up(draft, op)
        case _:
            assert_never(op)


def last_versions(snapshot: Snapshot, read: Iterable[ItemId]) -> tuple[GlobalId, ...]:
    """What a text that is planned now is planned against, where that is not a first version."""
    items = (snapshot.items.get(item_id) for item_id in read)
    return tuple(item.global_id for item in items if item is not None and len(item.versions) > 1)


def staged(snapshot: Snapshot, item: Item, replacement: Replacement) -> Item:
    """A new view as a replacement: over its target's shard, which it does not write yet."""
    assert isinstance(item.definition, MaterializedView), "only views replace"
    target = _target(snapshot, item, replacement)
    definition = msgspec.structs.replace(
        item.definition, shard_id=target.shard_id, replacement=replacement
    )
    depends_on = (*item.depends_on, replacement.target)
    return msgspec.structs.replace(item, definition=definition, depends_on=depends_on)


def _target(snapshot: Snapshot, item: Item, replacement: Replacement) -> MaterializedView:
    """The definition that the item may be staged for, or why it may not."""
    target = snapshot.items.get(replacement.target)
    if target is None:
        raise UndefinedTable(f"unknown catalog item '{replacement.target}'")
    if not isinstance(target.definition, MaterializedView):
        raise _not_for(target, item.name)
    if target.replacement is not None:
        raise FeatureNotSupported(
            f"cannot replace {target.name} because it is itself a replacement"
        )
    other = snapshot.replacement_of(target.item_id)
    if other is not None:
        raise ObjectNotInPrerequisiteState(
            f"cannot replace {target.name} because it already has a replacement: {other.name}"
        )
    refuse_circle(snapshot, target, item.depends_on)
    if not extends(target.columns, item.columns):
        raise FeatureNotSupported("replacement schema differs from target schema")
    return target.definition


def refuse_circle(snapshot: Snapshot, target: Item, read: Iterable[ItemId]) -> None:
    """Nothing that a view's new definition reads may depend on the view, through others neither.

    Looked at again when it is applied: views that it reads may have been replaced since.
    """
    seen: set[ItemId] = set()
    waiting = list(read)
    while waiting:
        item_id = waiting.pop()
        if item_id == target.item_id:
            raise FeatureNotSupported(f"replacement would cause {target.name} to depend on itself")
        if item_id not in seen:
            seen.add(item_id)
            below = snapshot.items.get(item_id)
            waiting += () if below is None else below.depends_on


def refuse_staged(snapshot: Snapshot, depends_on: Iterable[ItemId]) -> None:
    """What is only staged may be read, but nothing may rely on it."""
    for item_id in depends_on:
        item = snapshot.items.get(item_id)
        if item is not None and item.replacement is not None:
            raise FeatureNotSupported(
                f"replacement materialized view {item.name} cannot be depended upon"
            )


def _apply(draft: Draft, op: ApplyReplacementOp) -> None:
    item, replacing = existing_item(draft, op.item_id), existing_item(draft, op.replacement_id)
    if replacing.replacement is None or replacing.replacement.target != item.item_id:
        raise _not_for(item, replacing.name)
    old, new = item.definition, replacing.definition
    assert isinstance(old, MaterializedView), "checked when the replacement was staged"
    assert isinstance(new, MaterializedView), "only views replace"
    if old.handing_over:
        raise ObjectNotInPrerequisiteState(
            f'materialized view "{item.name}" is still being handed over to its last replacement',
            hint="Try again in a moment.",
        )
    refuse_circle(draft.snapshot, item, replacing.reads)
    definition = msgspec.structs.replace(
        old,
        cluster_id=new.cluster_id,
        as_of=new.as_of,
        past=(*old.past, _kept(draft.snapshot, item, old)),
        handing_over=True,
        forward_time=op.forward_time,
        depends_on_after=replacing.reads,
    )
    changed = msgspec.structs.replace(
        item,
        create_sql=op.create_sql,
        versions=(*item.versions, *replacing.versions),
        depends_on=tuple(dict.fromkeys((*item.depends_on, *replacing.reads))),
        definition=definition,
        planned_against=replacing.planned_against,
    )
    names = {"target": full_name(draft.snapshot, item), "by": full_name(draft.snapshot, replacing)}
    draft.audit_item("drop", replacing, reason="applied", target_id=item.item_id)
    draft.remove(replacing)
    draft.replace(item, changed)
    rewrite(draft, op.dependants_sql)
    draft.audit(
        "alter",
        item.kind.value,
        {
            "id": item.item_id,
            "target": names["target"],
            "replacement_id": replacing.item_id,
            "replacement": names["by"],
            "old_global_id": item.global_id,
            "new_global_id": changed.global_id,
            "forward_time": op.forward_time,
        },
    )
    if old.cluster_id != new.cluster_id:
        moved = {"old_cluster": old.cluster_id, "new_cluster": new.cluster_id}
        draft.audit("alter", item.kind.value, {"id": item.item_id, **moved})


def _kept(snapshot: Snapshot, item: Item, definition: MaterializedView) -> PastVersion:
    """The item's definition as it is, with what its names mean while they still mean that."""
    return PastVersion(
        global_id=item.global_id,
        create_sql=item.create_sql,
        depends_on=item.depends_on,
        cluster_id=definition.cluster_id,
        as_of=definition.as_of,
        planned_against=item.planned_against,
        names=names_of_inputs(snapshot, item),
    )


def _finish(draft: Draft, op: FinishHandoverOp) -> None:
    item = draft.snapshot.items.get(op.item_id)
    if item is None or not isinstance(item.definition, MaterializedView):
        return
    if not item.definition.handing_over or item.global_id != op.global_id:
        return
    definition = msgspec.structs.replace(
        item.definition, handing_over=False, forward_time=False, depends_on_after=()
    )
    draft.replace(item, msgspec.structs.replace(item, definition=definition, depends_on=item.reads))


def _set_apply_when_ready(draft: Draft, op: SetApplyWhenReadyOp) -> None:
    item = existing_item(draft, op.replacement_id)
    if item.replacement is None:
        raise WrongObjectType(f'{item.kind.sql_words} "{item.name}" is no replacement')
    wanted = msgspec.structs.replace(
        item.replacement, apply_when_ready=True, forward_time=op.forward_time
    )
    if wanted != item.replacement:
        _set(draft, item, wanted)
        draft.audit_item(
            "alter",
            item,
            target_id=wanted.target,
            apply_when_ready=True,
            forward_time=op.forward_time,
        )


def _note_hydrated(draft: Draft, op: NoteHydratedOp) -> None:
    item = draft.snapshot.items.get(op.replacement_id)
    if item is None or item.replacement is None or item.replacement.hydrated:
        return
    _set(draft, item, msgspec.structs.replace(item.replacement, hydrated=True))
    draft.audit_item("hydrated", item, target_id=item.replacement.target)


def _give_up(draft: Draft, op: GiveUpApplyOp) -> None:
    item = draft.snapshot.items.get(op.replacement_id)
    if item is None or item.replacement is None or not item.replacement.apply_when_ready:
        return
    wanted = msgspec.structs.replace(item.replacement, apply_when_ready=False, forward_time=False)
    _set(draft, item, wanted)
    draft.audit_item("failed", item, target_id=wanted.target, reason=op.reason)


def keep_staged(draft: Draft, item: Item) -> None:
    """A replacement that came to another owner is not applied before he says so."""
    if item.replacement is None or not item.replacement.apply_when_ready:
        return
    wanted = msgspec.structs.replace(item.replacement, apply_when_ready=False, forward_time=False)
    _set(draft, item, wanted)
    draft.audit_item("alter", item, target_id=wanted.target, apply_when_ready=False)


def may_apply_itself(replacement: Item, snapshot: Snapshot) -> bool:
    """Whether its owner could still apply it: views are their owners' to define."""
    assert replacement.replacement is not None, "asked of a replacement"
    target = snapshot.items[replacement.replacement.target]
    owner = snapshot.roles.get(replacement.owner)
    if owner is None:
        return False
    return owner.superuser or target.owner in roles_above(snapshot, owner.role_id)


def _set(draft: Draft, item: Item, replacement: Replacement) -> None:
    assert isinstance(item.definition, MaterializedView), "only views replace"
    definition = msgspec.structs.replace(item.definition, replacement=replacement)
    draft.replace(item, msgspec.structs.replace(item, definition=definition))


def _not_for(target: Item, name: str) -> WrongObjectType:
    return WrongObjectType(
        f"cannot replace {target.kind.sql_words} {target.name} with materialized view {name}"
    )
