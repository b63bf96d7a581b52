"""Changes of single objects by hand, checked and audited like all others.

A server that runs has decided things by what it knows of the catalog, so a change by hand fences
it: the epoch is raised in the very transaction.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from evertide.catalog.checks import REQUIRED_SETTING, faults_of, named, referring
from evertide.catalog.draft import Draft
from evertide.catalog.durable.codec import (
    CATALOG_VERSION,
    VERSION_CONFIG,
    CorruptCatalog,
    decode_object,
    encode_object,
)
from evertide.catalog.durable.hiding import HIDDEN, HIDDEN_VERIFIER
from evertide.catalog.durable.log import RowChange, read_all
from evertide.catalog.durable.place import CatalogPlace
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.today import check_version, row_changes, snapshot_of, version_of
from evertide.catalog.faults import BrokenCatalog, CatalogFault
from evertide.catalog.objects import (
    AuditDetail,
    CatalogObject,
    ClusterProfile,
    ClusterReplica,
    IdAllocator,
    Item,
    ObjectKind,
    kind_name,
    object_key,
)
from evertide.catalog.references import numbers_of
from evertide.catalog.wellformed import COMMENTABLE, oddities_of
from evertide.persist.append import Appended
from evertide.persist.faults import Fenced
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import MIN_TS

# So many reasons are told in words, of the others only their number.
_TOLD: Final = 10

# No catalog can be without these.
_NEVER_DELETED: Final = frozenset(
    {ObjectKind.CONFIG, ObjectKind.ID_ALLOCATOR, ObjectKind.TIMESTAMP}
)


class BadEdit(CatalogFault):
    """What was asked for makes no sense, or would break the catalog. Nothing was changed."""


async def change_by_hand(
    place: CatalogPlace, decide: Callable[[Sequence[StoredRow]], Sequence[RowChange]]
) -> Epoch:
    """Commit what is decided about the newest rows, and raise the epoch with it; returns that."""
    while True:
        epoch = await place.store.current_epoch()
        log = await place.log_for(epoch)
        stored = await read_all(log)
        changes = decide(stored.rows)
        try:
            await log.prepare()
            outcome = await log.append(changes, expected_upper=stored.upper, raises_epoch=True)
        except Fenced:
            continue  # somebody opened the environment meanwhile: decide again
        if isinstance(outcome, Appended):
            raised = Epoch(epoch + 1)
            await (await place.log_for(raised)).prepare()
            return raised


def edited(
    rows: Sequence[StoredRow],
    kind: str,
    key: str,
    value: str,
    *,
    now_ms: int,
    sql_fault: Callable[[Item], str | None] = lambda _: None,
) -> list[RowChange]:
    """What gives the object of this key this value, whether or not there is one; raises BadEdit.

    `sql_fault` says what is wrong with the SQL of an item: the catalog itself reads none.
    """
    wanted = StoredRow(_kind(kind), _json("key", key), _json("value", value))
    if f":{HIDDEN}@" in value or HIDDEN_VERIFIER in value:
        raise BadEdit("the value shows where a dump left out a password: write the password there")
    after = _sensible(wanted)
    fault = sql_fault(after) if isinstance(after, Item) else None
    if fault is not None:
        raise BadEdit(fault)
    before = _found(rows, wanted)
    if _is_version(wanted) and before is not None:
        # Also where the version is not today's, so that a mistake can be undone.
        return [RowChange(before, -1), RowChange(encode_object(after), 1)]
    return _decided(rows, before, after, now_ms)


def deleted(rows: Sequence[StoredRow], kind: str, key: str, *, now_ms: int) -> list[RowChange]:
    """What removes the object of this key; raises BadEdit."""
    wanted = StoredRow(_kind(kind), _json("key", key), "")
    _refuse_history(kind)
    before = _found(rows, wanted)
    if before is None:
        raise BadEdit(f"there is no {kind} with the key {key}")
    if kind in _NEVER_DELETED or _is_systems(wanted):
        raise BadEdit(f"{kind} {key} cannot be deleted: no catalog can be without it")
    return _decided(rows, before, None, now_ms)


def noted(
    rows: Sequence[StoredRow], details: dict[str, AuditDetail], now_ms: int
) -> list[RowChange]:
    """An audit event about the catalog itself; none in one of another version than today's."""
    if version_of(rows) != CATALOG_VERSION:
        return []
    draft = Draft(snapshot_of(rows, MIN_TS), now_ms=now_ms, user=None)
    draft.audit("alter", "catalog", {"by": "catalog-debug", **details})
    return _as_stored(rows, row_changes(draft.updates()))


def _sensible(wanted: StoredRow) -> CatalogObject:
    """The object of a row, if it can be meant; raises BadEdit."""
    _refuse_history(wanted.kind)
    if wanted.kind == ObjectKind.COMMENT:
        _refuse_uncommentable(json.loads(wanted.key).get("object_kind"))
    try:
        found = decode_object(wanted)
    except CorruptCatalog as fault:
        raise BadEdit(f"not an object of the catalog: {fault}") from fault
    odd = [f"{wanted.kind} {wanted.key} {oddity}" for oddity in oddities_of(found)]
    if _is_version(wanted) and json.loads(wanted.value)["value"] < 1:
        odd.append(f"{VERSION_CONFIG} must be at least 1: there is no earlier version")
    if odd:
        raise BadEdit(_listed("this makes no sense:", odd))
    return found


def _refuse_history(kind: str) -> None:
    if kind == ObjectKind.AUDIT_EVENT:
        raise BadEdit("audit events are only ever added: none can be edited or deleted by hand")


def _refuse_uncommentable(kind: object) -> None:
    if kind not in COMMENTABLE:
        raise BadEdit(f"object_kind of a comment must be one of {', '.join(COMMENTABLE)}")


def _decided(
    rows: Sequence[StoredRow], before: StoredRow | None, after: CatalogObject | None, now_ms: int
) -> list[RowChange]:
    """The change and its audit event, if the catalog is as whole with them as it was without."""
    check_version(rows)
    draft = Draft(snapshot_of(rows, MIN_TS), now_ms=now_ms, user=None)
    known = set(faults_of(draft.snapshot))
    try:
        _change(draft, None if before is None else decode_object(before), after)
        updates = draft.updates()
    except BrokenCatalog as fault:
        raise BadEdit(_listed("the catalog would be broken:", fault.faults)) from fault
    broken = [fault for fault in faults_of(draft.snapshot) if fault not in known]
    if broken:
        raise BadEdit(_listed("the catalog would be broken:", broken))
    return _as_stored(rows, row_changes(updates))


def _change(draft: Draft, before: CatalogObject | None, after: CatalogObject | None) -> None:
    numbers = [one.next_number for one in (before, after) if isinstance(one, IdAllocator)]
    if numbers != sorted(numbers):
        raise BadEdit("an id allocator cannot go back: ids would be given twice")
    changed = after if before is None else before
    assert changed is not None, "a change has a before or an after"
    match before, after:
        case None, _:
            draft.create(changed)
        case _, None:
            draft.remove(changed)
            _refuse_needed(draft, changed)
        case _:
            draft.replace(changed, after)
    if after is not None:
        _use_up(draft, after)
    event_type = "create" if before is None else "drop" if after is None else "alter"
    details = {"by": "catalog-debug", **_identity(changed)}
    draft.audit(event_type, kind_name(changed).replace("_", "-"), details)


def _identity(changed: CatalogObject) -> dict[str, AuditDetail]:
    """The object's key under the names that the audit log has for it, which bills are made from."""
    match changed:
        case ClusterReplica(replica_id=replica_id):
            return {"replica_id": replica_id}
        case ClusterProfile(profile_id=profile_id):
            return {"profile_id": profile_id}
        case _:
            key: dict[str, AuditDetail] = json.loads(encode_object(changed).key)
            return key


def _refuse_needed(draft: Draft, removed: CatalogObject) -> None:
    who = named(removed)
    needing = [
        f"{named(each)} refers to {who}, which would no longer exist"
        for each in referring(draft.snapshot, object_key(removed))
    ]
    if needing:
        raise BadEdit(_listed(f"{who} cannot be deleted:", needing))


def _use_up(draft: Draft, came: CatalogObject) -> None:
    """No allocator gives again what somebody has given by hand."""
    for name, number in numbers_of(came):
        following = draft.snapshot.next_numbers.get(name)
        if following is not None and following <= number:
            draft.replace(
                IdAllocator(name=name, next_number=following),
                IdAllocator(name=name, next_number=number + 1),
            )


def _listed(title: str, reasons: Iterable[str]) -> str:
    """One line for each, as far as anybody would read them."""
    lines = sorted(set(reasons))
    more = [f"and {len(lines) - _TOLD} more"] if len(lines) > _TOLD else []
    return "\n  ".join([title, *lines[:_TOLD], *more])


def _as_stored(rows: Sequence[StoredRow], changes: Sequence[RowChange]) -> list[RowChange]:
    """The same changes, with what goes spelled as it is stored."""
    stored = set(rows)
    return [
        change
        if change.diff > 0 or change.row in stored
        else change._replace(row=_found(rows, change.row) or change.row)
        for change in changes
    ]


def _found(rows: Sequence[StoredRow], wanted: StoredRow) -> StoredRow | None:
    """The row of the same kind and, by meaning, of the same key."""
    key = json.loads(wanted.key)
    same_kind = (row for row in rows if row.kind == wanted.kind)
    return next((row for row in same_kind if json.loads(row.key) == key), None)


def _is_version(row: StoredRow) -> bool:
    return row.kind == ObjectKind.CONFIG and json.loads(row.key) == {"name": VERSION_CONFIG}


def _is_systems(row: StoredRow) -> bool:
    """Whether the row is of something that the system itself relies on."""
    key = json.loads(row.key)
    match row.kind:
        case ObjectKind.SETTING:
            return bool(key == {"name": REQUIRED_SETTING})
        case ObjectKind.SCHEMA | ObjectKind.ROLE:
            return all(str(part).startswith("s") for part in key.values())
        case _:
            return False


def _kind(kind: str) -> str:
    if kind not in set(ObjectKind):
        raise BadEdit(f"unknown object type {kind}: it must be one of {', '.join(ObjectKind)}")
    return kind


def _json(name: str, text: str) -> str:
    """The text, if it is a JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadEdit(f"the {name} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadEdit(f"the {name} must be a JSON object, such as a dump shows it")
    return text
