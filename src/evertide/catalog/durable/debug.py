"""Changes of single objects by hand, checked and audited like all others.

A server that runs has decided things by what it knows of the catalog, so a change by hand fences
it: the epoch is raised in the very transaction.
"""

import json
from collections.abc import Callable, Sequence

from evertide.catalog.checks import faults_of
from evertide.catalog.draft import Draft
from evertide.catalog.durable.catalog import HIDDEN
from evertide.catalog.durable.codec import (
    VERSION_CONFIG,
    CorruptCatalog,
    decode_object,
    encode_object,
)
from evertide.catalog.durable.log import RowChange, read_all
from evertide.catalog.durable.place import CatalogPlace
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.today import check_version, row_changes, snapshot_of
from evertide.catalog.faults import BrokenCatalog, CatalogFault
from evertide.catalog.objects import AuditDetail, CatalogObject, IdAllocator, ObjectKind
from evertide.persist.append import Appended
from evertide.persist.faults import Fenced
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import MIN_TS


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
    rows: Sequence[StoredRow], kind: str, key: str, value: str, *, now_ms: int
) -> list[RowChange]:
    """What gives the object of this key this value, whether or not there is one; raises BadEdit."""
    wanted = StoredRow(_kind(kind), _json("key", key), _json("value", value))
    if f":{HIDDEN}@" in value:
        raise BadEdit("the value shows where a dump left out a password: write the password there")
    try:
        after = decode_object(wanted)
    except CorruptCatalog as fault:
        raise BadEdit(f"not an object of the catalog: {fault}") from fault
    before = _found(rows, wanted)
    if _is_version(wanted) and before is not None:
        # Also where the version is not today's, so that a mistake can be undone.
        return [RowChange(before, -1), RowChange(encode_object(after), 1)]
    return _decided(rows, before, after, now_ms)


def deleted(rows: Sequence[StoredRow], kind: str, key: str, *, now_ms: int) -> list[RowChange]:
    """What removes the object of this key; raises BadEdit."""
    wanted = StoredRow(_kind(kind), _json("key", key), "")
    before = _found(rows, wanted)
    if before is None:
        raise BadEdit(f"there is no {kind} with the key {key}")
    if _is_version(wanted) or kind == ObjectKind.ID_ALLOCATOR:
        raise BadEdit(f"{kind} {key} cannot be deleted: no catalog can be without it")
    return _decided(rows, before, None, now_ms)


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
        raise BadEdit(f"the catalog would be broken: {fault}") from fault
    broken = [fault for fault in faults_of(draft.snapshot) if fault not in known]
    if broken:
        raise BadEdit(f"the catalog would be broken: {'; '.join(broken)}")
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
        case _:
            draft.replace(changed, after)
    event_type = "create" if before is None else "drop" if after is None else "alter"
    key: dict[str, AuditDetail] = json.loads(encode_object(changed).key)
    draft.audit(event_type, changed.KIND.value.replace("_", "-"), {"by": "catalog-debug", **key})


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
