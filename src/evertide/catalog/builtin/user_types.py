"""Types that users have named, as rows of mz_types, pg_type and their like."""

from collections.abc import Iterator
from typing import Final

from evertide.catalog.builtin.relation import Viewpoint
from evertide.catalog.builtin.rights import acl_texts
from evertide.catalog.builtin.text import redacted
from evertide.catalog.objects import Item, NamedType
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import Kind

# Of each sort, the word in mz_types.
_CATEGORIES: Final = {"list": "list", "map": "map", "record": "composite"}


def named_types(at: Viewpoint) -> Iterator[tuple[Item, NamedType]]:
    """Users' types, whichever database they are in."""
    for item in at.snapshot.items.values():
        if isinstance(item.definition, NamedType):
            yield item, item.definition


def type_rows(at: Viewpoint) -> Iterator[Row]:
    """Their rows of mz_types."""
    for item, named in named_types(at):
        shown = (item.item_id, item.oid, item.schema_id, item.name, _CATEGORIES[named.type.kind])
        created = (item.create_sql, redacted(item.create_sql))
        yield *shown, item.owner, acl_texts(item, at.snapshot), *created


def list_types(at: Viewpoint) -> Iterator[Row]:
    for item, named in named_types(at):
        if named.type.kind == Kind.LIST:
            (element,) = named.parts
            yield item.item_id, element, _modifiers(named)


def map_types(at: Viewpoint) -> Iterator[Row]:
    for item, named in named_types(at):
        if named.type.kind == Kind.MAP:
            key, value = named.parts
            yield item.item_id, key, value, None, _modifiers(named)


def _modifiers(named: NamedType) -> tuple[int, ...] | None:
    """Precision and scale of what a list or map holds, or its length; None: it has none."""
    held = named.type.element
    if held is None:
        return None
    if held.precision is not None:
        return (held.precision, held.scale or 0)
    return None if held.length is None else (held.length,)
