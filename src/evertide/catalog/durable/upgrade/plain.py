"""Stored rows as plain values: what upgrade steps work on.

The same for every version, like the three texts that they are read from.
"""

import json
from typing import NamedTuple, TypeAlias

from evertide.catalog.durable.rows import StoredRow

Plain: TypeAlias = "bool | int | str | list[Plain] | dict[str, Plain] | None"


class PlainRow(NamedTuple):
    """A stored row, its key and value as JSON has them."""

    kind: str
    key: dict[str, Plain]
    value: dict[str, Plain]


def to_plain(row: StoredRow) -> PlainRow:
    """The row without its texts."""
    return PlainRow(row.kind, json.loads(row.key), json.loads(row.value))


def to_stored(row: PlainRow) -> StoredRow:
    """Inverse of to_plain.

    >>> to_stored(PlainRow("setting", {"name": "a"}, {"value": "b"}))
    StoredRow(kind='setting', key='{"name":"a"}', value='{"value":"b"}')
    """
    return StoredRow(row.kind, _text(row.key), _text(row.value))


def _text(fields: dict[str, Plain]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
