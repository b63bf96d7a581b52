"""Version 3 knows one kind of cluster item: replicas and profiles are its variants.

They have one family of ids. Replicas keep theirs, because their processes are known by them;
numbers of profiles go on where those of replicas end, in the audit log too. Everything here is as
it was when version 3 came, whatever those things are called today.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from evertide.catalog.durable.upgrade.plain import Plain, PlainRow

Fields: TypeAlias = dict[str, Plain]

_REPLICA, _PROFILE, _ITEM = "cluster_replica", "cluster_profile", "cluster_item"
_KEYS = {_REPLICA: "replica_id", _PROFILE: "profile_id"}
_GIVEN = re.compile(r"u([1-9][0-9]*)")


def cluster_items_from_2_to_3(rows: Sequence[PlainRow]) -> Sequence[PlainRow]:
    """Both kinds become one; of their two allocators as well."""
    next_replica, next_profile = _next_number(rows, _REPLICA), _next_number(rows, _PROFILE)
    shift = next_replica - 1
    kept = [row for row in rows if not _is_allocator(row)]
    changed = [_changed(row, shift) for row in kept]
    if len(kept) < len(rows):
        number = shift + next_profile
        changed.append(PlainRow("id_allocator", {"name": _ITEM}, {"next_number": number}))
    return changed


def _next_number(rows: Sequence[PlainRow], kind: str) -> int:
    """What the allocator would give next, and never a number that is in use."""
    numbers = [0]
    for row in rows:
        if row.kind == kind:
            numbers.append(_number(row.key[_KEYS[kind]]))
        elif row.kind == "id_allocator" and row.key["name"] == kind:
            numbers.append(int(str(row.value["next_number"])) - 1)
    return max(numbers) + 1


def _number(identifier: Plain) -> int:
    given = _GIVEN.fullmatch(str(identifier))
    return 0 if given is None else int(given[1])


def _is_allocator(row: PlainRow) -> bool:
    return row.kind == "id_allocator" and row.key["name"] in _KEYS


def _changed(row: PlainRow, shift: int) -> PlainRow:
    match row.kind:
        case "cluster_replica":
            profile_id = _shifted(row.value["profile_id"], shift)
            value = {**row.value, "profile_id": profile_id, "is": "replica"}
            return PlainRow(_ITEM, {"cluster_item_id": row.key["replica_id"]}, value)
        case "cluster_profile":
            key = {"cluster_item_id": _shifted(row.key["profile_id"], shift)}
            return PlainRow(_ITEM, {**key}, {**row.value, "is": "profile"})
        case "comment":
            return row._replace(key=_commented(row.key, shift))
        case "audit_event":
            return row._replace(value=_event(row.value, shift))
        case _:
            return row


def _shifted(identifier: Plain, shift: int) -> Plain:
    """A profile's new id; what is none stays as it is."""
    number = _number(identifier)
    return f"u{number + shift}" if number else identifier


def _commented(key: Fields, shift: int) -> Fields:
    kind, object_id = key["object_kind"], key["object_id"]
    if kind not in _KEYS:
        return key
    object_id = _shifted(object_id, shift) if kind == _PROFILE else object_id
    return {**key, "object_kind": _ITEM, "object_id": object_id}


def _event(value: Fields, shift: int) -> Fields:
    """Bills are made from the log by profile, so it calls each by the id that it has now."""
    details = value["details"]
    assert isinstance(details, Mapping), "details are a record"
    names = {"profile_id"}
    if value["object_type"] == "cluster-profile":
        names |= {"id", "object_id"}
    renamed = {name: _shifted(details[name], shift) for name in names & details.keys()}
    return {**value, "details": {**details, **renamed}}
