"""The change of the schema that something is in; part of ops.py's unions."""

from dataclasses import dataclass

from evertide.catalog.objects import ObjectKey
from evertide.vocab.ids import ItemId, SchemaId


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveToSchemaOp:
    """Another schema for an item or a secret; the indexes of a relation go with it.

    `items_sql` holds the new definition of every item whose text names what moves.
    """

    target: ObjectKey
    schema_id: SchemaId
    items_sql: tuple[tuple[ItemId, str], ...] = ()
