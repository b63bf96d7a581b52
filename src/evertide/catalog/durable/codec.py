"""Objects as rows of text: (kind, key, value), key and value as JSON.

Text, so that a dump can be read and edited by hand. The same object gives the same bytes always: a
retraction must equal the row it takes back.
"""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

import msgspec

from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.faults import CatalogFault
from evertide.catalog.objects import OBJECT_TYPES, CatalogObject, CatalogUpdate, record_types
from evertide.vocab.datum import Row
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# Raised together with a new file in upgrade/ whenever a stored row would look different.
CATALOG_VERSION: Final = 5
VERSION_CONFIG: Final = "catalog_version"
GENERATION_CONFIG: Final = "deployment_generation"

ROW_DESC: Final = RelationDesc(
    tuple(ColumnDesc(name, TEXT, nullable=False) for name in ("kind", "key", "value"))
)


_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_KEY_DECODER: Final = msgspec.json.Decoder(dict[str, str | int | None])


class _Form(NamedTuple):
    """How rows of one kind are read."""

    decoder: "msgspec.json.Decoder[CatalogObject]"
    fields: frozenset[str]  # of the key


def _decoder(records: tuple[type[CatalogObject], ...]) -> "msgspec.json.Decoder[CatalogObject]":
    """Of one kind's records; the tag says which of several a row is."""
    return msgspec.json.Decoder(reduce(or_, records))


_FORMS: Final[Mapping[str, _Form]] = {
    kind.value: _Form(_decoder(record_types(kind)), frozenset(found.KEY))
    for kind, found in OBJECT_TYPES.items()
}


class CorruptCatalog(CatalogFault):
    """A stored row is not an object this version knows, although its version says so."""


def encode_object(catalog_object: CatalogObject) -> StoredRow:
    """The stored row of an object."""
    fields: dict[str, object] = msgspec.to_builtins(catalog_object)
    key = {name: fields.pop(name) for name in catalog_object.KEY}
    return StoredRow(catalog_object.KIND.value, _encode_json(key), _encode_json(fields))


def decode_object(row: Row) -> CatalogObject:
    """Inverse of encode_object."""
    kind, key, value = row
    assert isinstance(kind, str), "catalog rows are text"
    assert isinstance(key, str), "catalog rows are text"
    assert isinstance(value, str), "catalog rows are text"
    try:
        return _decoded(kind, key.strip(), value.strip())
    except ValueError as error:
        raise CorruptCatalog(f"{kind} {key} does not decode: {error}") from error


def _decoded(kind: str, key: str, value: str) -> CatalogObject:
    """Key and value as one JSON object: half the work of reading them one by one.

    Since the key by itself is one, nothing but a whole object can complete it.
    """
    if kind not in _FORMS:
        raise ValueError("no such kind of object")
    form = _FORMS[kind]
    identity = _KEY_DECODER.decode(key)
    if identity.keys() != form.fields:
        raise ValueError(f"the key of a {kind} is {', '.join(sorted(form.fields))}")
    if not (value.startswith("{") and value.endswith("}")):
        raise ValueError("the value is no JSON object")
    members = value[1:-1].strip()
    found = form.decoder.decode(f"{key[:-1]},{members}}}" if members else key)
    for name, part in identity.items():
        if getattr(found, name) != part:
            raise ValueError("the value contradicts the key")
    return found


def encode_update(update: CatalogUpdate, write_ts: Timestamp) -> Update:
    """A change as the shard keeps it."""
    return Update(encode_object(update.object), write_ts, update.diff)


def decode_update(update: Update) -> CatalogUpdate:
    """Inverse of encode_update, without its timestamp."""
    return CatalogUpdate(decode_object(update.row), update.diff)


def _encode_json(fields: dict[str, object]) -> str:
    return _ENCODER.encode(fields).decode()
