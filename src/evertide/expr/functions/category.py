"""Type categories: which types are alike, and which of the alike is preferred.

Letters and choices are those of PostgreSQL's pg_type, which overload resolution is defined by.
"""

from typing import Final

from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

STRING: Final = "S"
UNKNOWN_CATEGORY: Final = "X"

_CATEGORIES: Final[dict[Kind, str]] = {
    Kind.BOOL: "B",
    **dict.fromkeys(
        (
            Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.UINT8, Kind.FLOAT4,
            Kind.FLOAT8, Kind.NUMERIC, Kind.OID, Kind.REGCLASS, Kind.REGPROC, Kind.REGTYPE,
            Kind.MZ_TIMESTAMP,
        ),
        "N",
    ),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME), STRING),
    Kind.CHAR: "Z",
    **dict.fromkeys((Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ), "D"),
    Kind.INTERVAL: "T",
    **dict.fromkeys(RANGE_BASES, "R"),
    Kind.ARRAY: "A",
    Kind.LIST: "A",
    Kind.RECORD: "P",
    Kind.UNKNOWN: UNKNOWN_CATEGORY,
}  # fmt: skip
_PREFERRED: Final = frozenset(
    {Kind.BOOL, Kind.FLOAT8, Kind.OID, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL}
)


def category(sql_type: SqlType) -> str:
    """The category's letter; `U` for types that are like no other."""
    return _CATEGORIES.get(sql_type.kind, "U")


def is_preferred(sql_type: SqlType) -> bool:
    """Whether the type is the one its category is best represented by."""
    return sql_type.kind in _PREFERRED
