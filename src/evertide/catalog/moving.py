"""ALTER ... SET SCHEMA: another place for an item or a secret, and nothing else."""

import msgspec

from evertide.catalog.checks import described
from evertide.catalog.create import refuse_taken_name
from evertide.catalog.draft import Draft, full_name
from evertide.catalog.moving_ops import MoveToSchemaOp
from evertide.catalog.objects import Item, Secret
from evertide.catalog.rewriting import rewrite
from evertide.vocab.errors import UndefinedObject, UndefinedSchema
from evertide.vocab.ids import SchemaId


def move_to_schema(draft: Draft, op: MoveToSchemaOp) -> None:
    found = draft.snapshot.find(op.target)
    if not isinstance(found, Item | Secret):
        raise UndefinedObject(f"{described(op.target)} is in no schema")
    if op.schema_id not in draft.snapshot.schemas:
        raise UndefinedSchema(f"unknown schema '{op.schema_id}'")
    if found.schema_id == op.schema_id:
        return
    parts = draft.snapshot.indexes_on(found.item_id) if isinstance(found, Item) else []
    for one in (found, *parts):
        if one.schema_id != op.schema_id:
            _move(draft, one, op.schema_id)
    rewrite(draft, op.items_sql)


def _move(draft: Draft, found: Item | Secret, schema_id: SchemaId) -> None:
    if isinstance(found, Item):
        object_id, kind = found.item_id, found.kind.value
    else:
        object_id, kind = found.secret_id, "secret"
    refuse_taken_name(draft, schema_id, found.name, kind)
    old_name = full_name(draft.snapshot, found)
    moved = msgspec.structs.replace(found, schema_id=schema_id)
    draft.replace(found, moved)
    new_name = full_name(draft.snapshot, moved)
    draft.audit("alter", kind, {"id": object_id, "old_name": old_name, "new_name": new_name})
