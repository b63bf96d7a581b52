"""The form in which every durable catalog keeps an object, wherever that is."""

from typing import NamedTuple


class StoredRow(NamedTuple):
    """An object as three texts: its kind, and its key and value as JSON."""

    kind: str
    key: str
    value: str
