"""A shard's columns by version: what an append brings, and what a merge must keep."""

from collections.abc import Iterable
from functools import lru_cache

from evertide.persist.coding.encoding import type_name, type_named
from evertide.persist.faults import Corrupt
from evertide.persist.state import ColumnTypes, Part, Schema, ShardState
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc


@lru_cache(maxsize=1024)
def column_types(desc: RelationDesc) -> ColumnTypes:
    """What an append of this relation tells the shard about its columns."""
    required = (place for place, column in enumerate(desc.columns, 1) if not column.nullable)
    return ColumnTypes(tuple(map(type_name, desc.types)), max(required, default=0))


def merged_relation(
    state: ShardState, parts: Iterable[Part], desc: RelationDesc
) -> tuple[RelationDesc, int]:
    """A relation that has every column of these parts, and its version.

    `desc` is that of whoever merges, which may be older than the parts: it only serves for shards
    from before schemas, all of whose parts it fits.
    """
    version = max((part.schema for part in parts), default=0)
    if not state.schemas:
        return desc, version
    return relation_of(state.schemas[version]), version


@lru_cache(maxsize=1024)
def relation_of(schema: Schema) -> RelationDesc:
    """A relation with these columns; their names are nobody's business here."""
    try:
        types = [type_named(name) for name in schema.columns]
    except ValueError as error:
        raise Corrupt(f"a schema has a type that is unknown here: {error}") from error
    return RelationDesc(tuple(ColumnDesc(f"c{i}", t) for i, t in enumerate(types)))
