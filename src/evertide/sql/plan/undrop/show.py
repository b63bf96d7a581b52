"""SHOW DROPPED OBJECTS."""

from typing import Final

DROPPED_SQL: Final = (
    "SELECT d.id, d.database_name AS database, d.schema_name AS schema, d.name, d.type,"
    " d.dropped_at, d.expires_at FROM mz_internal.mz_dropped_objects d"
)
DROPPED_COLUMNS: Final = ("name", "type", "database", "schema", "dropped_at", "expires_at", "id")
