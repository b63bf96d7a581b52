"""mz_internal: what was dropped and can still be brought back."""

from collections.abc import Iterable
from typing import Final

from evertide.catalog.builtin.relation import Builtin, Viewpoint, shape
from evertide.catalog.grace import expires_at_ms
from evertide.catalog.objects import DroppedItem
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row


def place_today(dropped: DroppedItem, snapshot: Snapshot) -> tuple[str, str]:
    """The database and schema that it was in, by the names they have now; by those of then if
    they are gone."""
    schema = snapshot.schemas.get(dropped.item.schema_id)
    if schema is None or schema.database_id is None:
        return dropped.place
    return snapshot.databases[schema.database_id].name, schema.name


def _dropped_objects(at: Viewpoint) -> Iterable[Row]:
    for d in at.snapshot.dropped_items.values():
        named = (d.item_id, d.item.oid, d.kind.value, *place_today(d, at.snapshot), d.name)
        times = (d.dropped_at_ms * 1_000, expires_at_ms(d, at.snapshot) * 1_000)
        yield *named, d.owner, *times, d.dropped_with, d.item.create_sql


DROPPED: Final = (
    Builtin(
        oid=16_990,
        schema="mz_internal",
        name="mz_dropped_objects",
        desc=shape(
            "id text!, oid oid!, type text!, database_name text!, schema_name text!, name text!, "
            "owner_id text!, dropped_at timestamptz!, expires_at timestamptz!, dropped_with text, "
            "create_sql text!"
        ),
        rows=_dropped_objects,
    ),
)
