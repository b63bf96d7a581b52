"""The names that the system's own types go by."""

from evertide.vocab.sql_type import Kind

SYNONYMS: dict[str, Kind] = {
    "boolean": Kind.BOOL,
    "smallint": Kind.INT2,
    "int": Kind.INT4,
    "integer": Kind.INT4,
    "bigint": Kind.INT8,
    "real": Kind.FLOAT4,
    "float": Kind.FLOAT8,
    "double": Kind.FLOAT8,
    "decimal": Kind.NUMERIC,
    "dec": Kind.NUMERIC,
    "string": Kind.TEXT,
    "bytes": Kind.BYTEA,
    "json": Kind.JSONB,
}
# No value is of these types unless something around it says more.
_NOT_NAMEABLE = {Kind.ARRAY, Kind.LIST, Kind.MAP, Kind.RECORD, Kind.UNKNOWN}
NAMED: dict[str, Kind] = {
    **{kind.value: kind for kind in Kind if kind not in _NOT_NAMEABLE},
    **SYNONYMS,
}
TYPE_SCHEMAS = {"pg_catalog", "mz_catalog"}


def is_system_type(parts: tuple[str, ...]) -> bool:
    """Whether a name means one of the system's types, as it does before any user's."""
    *schema, name = parts
    if schema and (name in SYNONYMS or schema[-1] not in TYPE_SCHEMAS):
        return False  # synonyms are words of the grammar, which no schema holds
    return name in NAMED or (name.startswith("_") and name[1:] in NAMED)
