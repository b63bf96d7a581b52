"""Objects as rows of text: (kind, key, value), key and value as JSON.

Text, so that a dump can be read and edited by hand. The same object gives the same bytes always: a
retraction must equal the row it takes back.
"""

from typing import Final

import msgspec

from evertide.catalog.objects import OBJECT_TYPES, CatalogObject, CatalogUpdate, ObjectKind
from evertide.vocab.datum import Row
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# Raised together with a new file in upgrade/ whenever a stored row would look different.
CATALOG_VERSION: Final = 1
VERSION_CONFIG: Final = "catalog_version"

ROW_DESC: Final = RelationDesc(
    tuple(ColumnDesc(name, TEXT, nullable=False) for name in ("kind", "key", "value"))
)


class CorruptCatalog(Exception):
    """A stored row is not an object this version knows, although its version says so."""


def encode_object(catalog_object: CatalogObject) -> Row:
    """The stored row of an object."""
    fields: dict[str, object] = msgspec.to_builtins(catalog_object)
    key = {name: fields.pop(name) for name in catalog_object.KEY}
    return catalog_object.KIND.value, _encode_json(key), _encode_json(fields)


def decode_object(row: Row) -> CatalogObject:
    """Inverse of encode_object."""
    kind, key, value = (str(column) for column in row)
    try:
        object_type = OBJECT_TYPES[ObjectKind(kind)]
        fields = {**msgspec.json.decode(key, type=dict), **msgspec.json.decode(value, type=dict)}
        return msgspec.convert(fields, object_type)
    except (ValueError, msgspec.ValidationError) as error:
        raise CorruptCatalog(f"{kind} {key} does not decode: {error}") from error


def encode_update(update: CatalogUpdate, write_ts: Timestamp) -> Update:
    """A change as the shard keeps it."""
    return Update(encode_object(update.object), write_ts, update.diff)


def decode_update(update: Update) -> CatalogUpdate:
    """Inverse of encode_update, without its timestamp."""
    return CatalogUpdate(decode_object(update.row), update.diff)


def _encode_json(fields: dict[str, object]) -> str:
    return msgspec.json.encode(fields, order="sorted").decode()
