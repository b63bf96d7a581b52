"""What goes with an object, what keeps it from going, and the ops that drop."""

from collections.abc import Collection, Iterable

from evertide.catalog.draft import Draft, full_name
from evertide.catalog.objects import AuditDetail, Index, Item, Replacement, Subsource
from evertide.catalog.ops import (
    DropDatabaseOp,
    DropItemsOp,
    DropSchemaOp,
    DropSecretOp,
)
from evertide.catalog.shelving import kept
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    InsufficientPrivilege,
    UndefinedDatabase,
    UndefinedSchema,
    UndefinedTable,
)
from evertide.vocab.ids import ItemId

CASCADE_HINT = "Use DROP ... CASCADE to drop the dependent objects too."


def with_dependants(snapshot: Snapshot, item_ids: Iterable[ItemId]) -> tuple[ItemId, ...]:
    """These items and all that depend on them, directly or not, dependants first."""
    seen: set[ItemId] = set()
    ordered: list[ItemId] = []
    stack = [(item_id, False) for item_id in reversed(list(item_ids))]
    while stack:
        item_id, dependants_done = stack.pop()
        if dependants_done:
            ordered.append(item_id)
        elif item_id not in seen:
            seen.add(item_id)
            stack.append((item_id, True))
            dependants = snapshot.dependants(item_id)
            stack.extend((dependant.item_id, False) for dependant in reversed(dependants))
    return tuple(ordered)


def without_cascade(snapshot: Snapshot, item_ids: Collection[ItemId]) -> tuple[ItemId, ...]:
    """These items and their parts, dependants first; refused if anything else depends on them."""
    _refuse_dependants(snapshot, with_parts(snapshot, item_ids))
    return with_dependants(snapshot, item_ids)


def with_parts(snapshot: Snapshot, item_ids: Iterable[ItemId]) -> set[ItemId]:
    """These items, their indexes, and of sources the subsources with theirs.

    An index is part of its relation's life: nobody queries it by name. A subsource is made by its
    source, not by users.
    """
    found: set[ItemId] = set()
    waiting = list(item_ids)
    while waiting:
        item_id = waiting.pop()
        found.add(item_id)
        waiting += [
            part.item_id
            for part in snapshot.dependants(item_id)
            if isinstance(part.definition, Index | Subsource) and part.item_id not in found
        ]
    return found


def _refuse_dependants(snapshot: Snapshot, going: Collection[ItemId]) -> None:
    """Whatever depends on something that goes must go too."""
    for item_id in going:
        for dependant in snapshot.dependants(item_id):
            if dependant.item_id not in going:
                raise _still_depended_upon(snapshot.items[item_id], dependant)


def _still_depended_upon(item: Item, dependant: Item) -> DependentObjectsStillExist:
    what = f'{item.kind.sql_words} "{item.name}"'
    who = f'{dependant.kind.sql_words} "{dependant.name}"'
    return DependentObjectsStillExist(
        f"cannot drop {what}: still depended upon by {who}",
        detail=f"{who} depends on {what}",
        hint=CASCADE_HINT,
    )


def drop_items(draft: Draft, op: DropItemsOp) -> None:
    """Dependants first, whatever the order asked for."""
    for item_id in op.item_ids:
        if item_id not in draft.snapshot.items:
            raise UndefinedTable(f"unknown catalog item '{item_id}'")
    _refuse_dependants(draft.snapshot, op.item_ids)
    going = with_dependants(draft.snapshot, op.item_ids)
    to_keep = kept(draft, going) if op.keep else {}
    for item_id in going:
        item = draft.snapshot.items[item_id]
        replaces = {} if item.replacement is None else _discarded(item.replacement)
        draft.audit_item("drop", item, **replaces)
        draft.remove(item)
        if item_id in to_keep:
            draft.create(to_keep[item_id])


def _discarded(replacement: Replacement) -> dict[str, AuditDetail]:
    return {"reason": "discarded", "target_id": replacement.target}


def drop_schema(draft: Draft, op: DropSchemaOp) -> None:
    schema = draft.snapshot.schemas.get(op.schema_id)
    if schema is None:
        raise UndefinedSchema(f"unknown schema '{op.schema_id}'")
    if schema.database_id is None:
        raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")
    database = draft.snapshot.databases[schema.database_id]
    snapshot = draft.snapshot
    if snapshot.items_in_schema(schema.schema_id) or snapshot.secrets_in_schema(schema.schema_id):
        raise DependentObjectsStillExist(
            f"schema '{database.name}.{schema.name}' cannot be dropped without CASCADE "
            "while it contains objects",
            hint=CASCADE_HINT,
        )
    draft.remove(schema)
    details = {"id": schema.schema_id, "name": schema.name, "database_name": database.name}
    draft.audit("drop", "schema", {**details})


def drop_database(draft: Draft, op: DropDatabaseOp) -> None:
    database = draft.snapshot.databases.get(op.database_id)
    if database is None:
        raise UndefinedDatabase(f"unknown database '{op.database_id}'")
    if draft.snapshot.schemas_in(database.database_id):
        raise DependentObjectsStillExist(
            f"database '{database.name}' cannot be dropped with RESTRICT while it contains schemas",
            hint=CASCADE_HINT,
        )
    draft.remove(database)
    draft.audit("drop", "database", {"id": database.database_id, "name": database.name})


def drop_secret(draft: Draft, op: DropSecretOp) -> None:
    secret = draft.snapshot.secrets.get(op.secret_id)
    if secret is None:
        raise UndefinedTable(f"unknown catalog item '{op.secret_id}'")
    named = full_name(draft.snapshot, secret)
    draft.remove(secret)
    draft.audit("drop", "secret", {"id": secret.secret_id, **named})
