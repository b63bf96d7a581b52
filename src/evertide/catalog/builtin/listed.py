"""mz_internal: which relations the system brings with it."""

from collections.abc import Iterable
from typing import Final

from evertide.catalog.builtin.relation import OWNER_OF_BUILTINS, Builtin, Viewpoint, shape
from evertide.vocab.datum import Row

_COLUMNS: Final = "id text!, oid oid!, schema_id text!, name text!, owner_id text!"


def _rows(at: Viewpoint, *, is_view: bool) -> Iterable[Row]:
    schemas = {s.name: s.schema_id for s in at.snapshot.schemas.values() if s.database_id is None}
    for one in at.builtins:
        if one.is_view is is_view:
            yield one.item_id, one.oid, schemas[one.schema], one.name, OWNER_OF_BUILTINS


def builtin_tables(at: Viewpoint) -> Iterable[Row]:
    return _rows(at, is_view=False)


def builtin_views(at: Viewpoint) -> Iterable[Row]:
    return _rows(at, is_view=True)


LISTED: Final = (
    Builtin(
        oid=16_815,
        schema="mz_internal",
        name="mz_builtin_tables",
        desc=shape(_COLUMNS),
        rows=builtin_tables,
        is_view=True,
    ),
    Builtin(
        oid=16_816,
        schema="mz_internal",
        name="mz_builtin_views",
        desc=shape(_COLUMNS),
        rows=builtin_views,
        is_view=True,
    ),
)
