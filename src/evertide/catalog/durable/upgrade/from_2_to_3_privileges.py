"""Version 3 knows who may do what with each object, and what sessions of a role start with.

Everything here is as it was when version 3 came, whatever those things are called today.
"""

from collections.abc import Sequence

from evertide.catalog.durable.upgrade.plain import Plain, PlainRow

_SYSTEM, _SUPPORT, _EVERYONE = "s1", "s2", "p"
# What owners have of their items, by the item's definition.
_OF_ITEMS = {"table": "arwd", "view": "r", "materialized_view": "r", "index": ""}
# What is for everyone to use: the first database and the first cluster, and schemas of this name.
_FIRST, _SHARED_SCHEMA = "u1", "public"


def privileges_from_2_to_3(rows: Sequence[PlainRow]) -> Sequence[PlainRow]:
    """Owners may do everything with what is theirs, and others what they may in a new one."""
    roles = {str(row.key["role_id"]) for row in rows if row.kind == "role"} | {_EVERYONE}
    return [_changed(row, roles) for row in rows]


def _changed(row: PlainRow, roles: set[str]) -> PlainRow:
    if row.kind == "role":
        return row._replace(value={**row.value, "login": None, "variables": []})
    if row.kind == "system_privilege" and row.value["privileges"] == "RBN":
        return row._replace(value={"privileges": "RBNP"})
    if row.kind not in ("cluster", "database", "item", "schema", "secret"):
        return row
    granted = [entry for entry in _granted(row) if entry[0] in roles and entry[2]]
    acl: list[Plain] = [list(entry) for entry in granted]
    return row._replace(value={**row.value, "privileges": acl})


def _granted(row: PlainRow) -> list[tuple[str, str, str]]:
    """(grantee, grantor, letters): system roles first, everyone last."""
    owner = str(row.value["owner"])
    if row.kind == "item":
        definition = row.value["definition"]
        assert isinstance(definition, dict), "a definition is a record"
        return [(owner, owner, _OF_ITEMS[str(definition["is"])])]
    if row.kind == "secret":
        return [(owner, owner, "U")]
    entries = [(_SUPPORT, owner, "U"), (owner, owner, "UC")]
    if owner == _SYSTEM:
        entries.reverse()
    if _is_for_everyone(row):
        entries.append((_EVERYONE, owner, "U"))
    return entries


def _is_for_everyone(row: PlainRow) -> bool:
    if row.kind == "schema":
        return row.value["database_id"] is None or row.value["name"] == _SHARED_SCHEMA
    return _FIRST in row.key.values()
