"""Stored rows of any version as today's objects, and what opening makes of them. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from evertide.catalog.durable.bootstrap import bootstrap_updates
from evertide.catalog.durable.codec import (
    CATALOG_VERSION,
    CorruptCatalog,
    decode_object,
    encode_object,
)
from evertide.catalog.durable.log import RowChange
from evertide.catalog.durable.opening import opened_updates
from evertide.catalog.durable.protocol import IncompatibleVersion
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.upgrade.steps import stored_version, upgraded
from evertide.catalog.objects import CatalogObject, CatalogUpdate
from evertide.catalog.snapshot import NOT_KEPT, Snapshot
from evertide.vocab.ids import EnvironmentId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

_NOT_KEPT: Final = frozenset(kind.value for kind in NOT_KEPT)


def version_of(rows: Iterable[StoredRow]) -> int:
    """The version that the rows say they are of."""
    stored = stored_version(rows)
    if stored is None:
        raise CorruptCatalog("the catalog does not say of which version it is")
    return stored


def check_version(rows: Iterable[StoredRow]) -> None:
    """Refuse rows of any version but the one that this program writes."""
    stored = version_of(rows)
    if stored != CATALOG_VERSION:
        raise IncompatibleVersion(stored, CATALOG_VERSION)


def todays_objects(rows: Sequence[StoredRow]) -> list[CatalogObject]:
    """The objects of rows of any version up to today's."""
    stored = version_of(rows)
    if stored > CATALOG_VERSION:
        raise IncompatibleVersion(stored, CATALOG_VERSION)
    try:
        wanted = upgraded(rows, stored=stored, wanted=CATALOG_VERSION)
    except (LookupError, TypeError, ValueError) as error:
        raise CorruptCatalog(
            f"the catalog cannot be upgraded from version {stored} to {CATALOG_VERSION}: {error!r}"
        ) from error
    return [decode_object(row) for row in wanted]


def _todays_rows(objects: Iterable[CatalogObject]) -> list[StoredRow]:
    """The rows as this program writes them, each key once.

    Whatever is stored is encoded anew: a retraction has to equal the stored row byte for byte.
    """
    found = [encode_object(one) for one in objects]
    keys = Counter((row.kind, row.key) for row in found)
    if len(keys) < len(found):
        (kind, key), count = keys.most_common(1)[0]
        raise CorruptCatalog(f"{kind} {key} is stored {count} times")
    return found


def snapshot_of(rows: Iterable[StoredRow], upper: Timestamp) -> Snapshot:
    """The objects that a snapshot keeps, of rows of today's version."""
    kept = (row for row in rows if row.kind not in _NOT_KEPT)
    return Snapshot().apply([CatalogUpdate(decode_object(row), 1) for row in kept], upper)


def row_changes(updates: Iterable[CatalogUpdate]) -> list[RowChange]:
    """Changes of objects as changes of rows."""
    return [RowChange(encode_object(update.object), update.diff) for update in updates]


class Opening(NamedTuple):
    """What the catalog holds once it has been opened: its rows, and the snapshot of them.

    The snapshot comes along because decoding a large catalog twice is felt in every start. Its
    upper is not known before the rows are committed.
    """

    rows: list[StoredRow]
    snapshot: Snapshot

    def at(self, upper: Timestamp) -> Snapshot:
        """The snapshot, once it is known which upper it has."""
        return self.snapshot.apply((), upper)


def opened(
    rows: Sequence[StoredRow],
    *,
    environment_id: EnvironmentId,
    now_ms: int,
    deployment_generation: int | None,
    timestamps: Mapping[Timeline, Timestamp],
) -> Opening:
    """What opening makes of these rows; no rows: it is a new environment."""
    if rows:
        objects = todays_objects(rows)
    else:
        first = bootstrap_updates(environment_id, now_ms)
        objects = [update.object for update in first if update.diff > 0]
    before = _todays_rows(objects)
    snapshot = Snapshot().apply([CatalogUpdate(one, 1) for one in objects], MIN_TS)
    updates = opened_updates(
        snapshot,
        now_ms=now_ms,
        deployment_generation=deployment_generation,
        timestamps=timestamps,
    )
    after = changed_rows(before, row_changes(updates))
    return Opening(after, snapshot.apply(updates, MIN_TS))


def changed_rows(rows: Iterable[StoredRow], changes: Iterable[RowChange]) -> list[StoredRow]:
    """The rows after some changes."""
    found = set(rows)
    for row, diff in sorted(changes, key=lambda change: change.diff):
        if diff < 0:
            found.remove(row)
        else:
            assert row not in found, f"{row.kind} {row.key} comes twice"
            found.add(row)
    return list(found)
