"""From any stored version to the one this program writes."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.upgrade.from_1_to_2 import from_1_to_2
from evertide.catalog.durable.upgrade.from_2_to_3 import from_2_to_3
from evertide.catalog.durable.upgrade.from_2_to_3_cluster_items import cluster_items_from_2_to_3
from evertide.catalog.durable.upgrade.from_2_to_3_privileges import privileges_from_2_to_3
from evertide.catalog.durable.upgrade.from_3_to_4 import from_3_to_4
from evertide.catalog.durable.upgrade.from_4_to_5 import from_4_to_5
from evertide.catalog.durable.upgrade.plain import PlainRow, to_plain, to_stored
from evertide.catalog.faults import CatalogFault

Step: TypeAlias = Callable[[Sequence[PlainRow]], Sequence[PlainRow]]


def _to_3(rows: Sequence[PlainRow]) -> Sequence[PlainRow]:
    return cluster_items_from_2_to_3(privileges_from_2_to_3(from_2_to_3(rows)))


# Version N to the step that turns its rows into those of N + 1.
STEPS: Final[Mapping[int, Step]] = {1: from_1_to_2, 2: _to_3, 3: from_3_to_4, 4: from_4_to_5}

_VERSION_KEY: Final = {"name": "catalog_version"}


def stored_version(rows: Iterable[StoredRow]) -> int | None:
    """The version that rows say they are of; None if they do not say. The same in all versions."""
    for row in rows:
        if row.kind == "config" and json.loads(row.key) == _VERSION_KEY:
            return int(json.loads(row.value)["value"])
    return None


def upgraded(rows: Sequence[StoredRow], *, stored: int, wanted: int) -> Sequence[StoredRow]:
    """The rows after every step in between, with the version that they then are of."""
    if stored == wanted:
        return rows
    if stored < min(STEPS):
        raise CatalogFault(f"the catalog says that it is of version {stored}, which never was")
    plain_rows: Sequence[PlainRow] = [to_plain(row) for row in rows]
    for version in range(stored, wanted):
        plain_rows = STEPS[version](plain_rows)
    return [to_stored(_with_version(row, wanted)) for row in plain_rows]


def _with_version(row: PlainRow, version: int) -> PlainRow:
    if row.kind == "config" and row.key == _VERSION_KEY:
        return row._replace(value={"value": version})
    return row
