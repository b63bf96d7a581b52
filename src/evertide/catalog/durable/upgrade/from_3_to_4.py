"""Version 4 knows replacements, and against which versions of others an item was planned.

Everything here is as it was when version 4 came, whatever those things are called today.
"""

from collections.abc import Sequence

from evertide.catalog.durable.upgrade.plain import PlainRow


def from_3_to_4(rows: Sequence[PlainRow]) -> Sequence[PlainRow]:
    """Every item has had one version so far, so none was planned against another."""
    return [_changed(row) for row in rows]


def _changed(row: PlainRow) -> PlainRow:
    if row.kind != "item":
        return row
    return row._replace(value={**row.value, "planned_against": []})
