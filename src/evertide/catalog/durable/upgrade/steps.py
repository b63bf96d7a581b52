"""From any stored version to the one this program writes."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias


class StoredRow(NamedTuple):
    """A row as it lies in the shard."""

    kind: str
    key: str
    value: str


Step: TypeAlias = Callable[[Sequence[StoredRow]], Sequence[StoredRow]]

# Version N to the step that turns its rows into those of N + 1.
STEPS: Final[Mapping[int, Step]] = {}


_VERSION_KEY: Final = {"name": "catalog_version"}


def stored_version(rows: Iterable[StoredRow]) -> int | None:
    """The version that rows say they are of; None if they do not say. The same in all versions."""
    for row in rows:
        if _is_version(row):
            return int(json.loads(row.value)["value"])
    return None


def upgraded(rows: Sequence[StoredRow], *, stored: int, wanted: int) -> Sequence[StoredRow]:
    """The rows after every step in between, with the version that they then are of."""
    for version in range(stored, wanted):
        rows = STEPS[version](rows)
    value = json.dumps({"value": wanted}, separators=(",", ":"))
    return [row._replace(value=value) if _is_version(row) else row for row in rows]


def _is_version(row: StoredRow) -> bool:
    return row.kind == "config" and json.loads(row.key) == _VERSION_KEY
