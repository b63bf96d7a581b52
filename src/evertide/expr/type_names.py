"""Types by the names SQL knows them by, for regtype and format_type."""

from evertide.vocab.sql_type import Kind, SqlType, array_of

_SCALARS: dict[Kind, SqlType] = {
    kind: SqlType(kind) for kind in Kind if kind not in (Kind.ARRAY, Kind.LIST, Kind.MAP)
}
_ALIASES = {
    "int": Kind.INT4, "bigint": Kind.INT8, "smallint": Kind.INT2, "integer": Kind.INT4,
    "boolean": Kind.BOOL, "real": Kind.FLOAT4, "double precision": Kind.FLOAT8,
    "float": Kind.FLOAT8, "decimal": Kind.NUMERIC, "character varying": Kind.VARCHAR,
    "string": Kind.TEXT, "character": Kind.BPCHAR, "char": Kind.BPCHAR, '"char"': Kind.CHAR,
    "time without time zone": Kind.TIME, "timestamp without time zone": Kind.TIMESTAMP,
    "timestamp with time zone": Kind.TIMESTAMPTZ, "json": Kind.JSONB,
}  # fmt: skip

# Types of things that no value of a column can be: what functions take and give.
PSEUDO_TYPES: dict[str, int] = {
    "any": 2276, "anyarray": 2277, "anyelement": 2283, "anynonarray": 2776, "cstring": 2275,
    "anyrange": 3831, "event_trigger": 3838, "internal": 2281, "record": 2249, "trigger": 2279,
    "void": 2278,
}  # fmt: skip
_PSEUDO_NAMES: dict[int, str] = {
    **{oid: f'"{name}"' if name == "any" else name for name, oid in PSEUDO_TYPES.items()},
    # What functions that read type modifiers take.
    1263: "cstring[]",
    # Of lists and maps, pg_type has one row each, whatever is in them.
    SqlType(Kind.LIST).oid: "list",
    SqlType(Kind.MAP).oid: "map",
}

TYPES_BY_NAME: dict[str, SqlType] = {
    **{kind.value: sql_type for kind, sql_type in _SCALARS.items()},
    **{alias: _SCALARS[kind] for alias, kind in _ALIASES.items()},
}
TYPES_BY_OID: dict[int, SqlType] = {
    **{sql_type.oid: sql_type for sql_type in _SCALARS.values()},
    **{
        array.oid: array
        for array in (array_of(sql_type) for sql_type in _SCALARS.values())
        if array.oid
    },
}


def type_name(oid: int) -> str | None:
    """The SQL name of the type with this oid, if there is one.

    >>> type_name(23), type_name(2279), type_name(1)
    ('integer', 'trigger', None)
    """
    found = TYPES_BY_OID.get(oid)
    return _PSEUDO_NAMES.get(oid) if found is None else str(found)


def type_oid(name: str) -> int | None:
    """The oid of the type with this SQL name, `[]` after it for arrays; None if there is none.

    >>> type_oid("integer"), type_oid("text[]"), type_oid("nothing")
    (23, 1009, None)
    """
    words = " ".join(name.lower().split())
    is_array = words.endswith("[]")
    bare = words.removesuffix("[]").removeprefix("pg_catalog.")
    found = TYPES_BY_NAME.get(bare)
    if found is None:
        return PSEUDO_TYPES.get(bare.strip('"'))
    return array_of(found).oid if is_array else found.oid
