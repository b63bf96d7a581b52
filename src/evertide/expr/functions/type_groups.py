"""Types by family, for rows that exist once per type."""

from typing import Final

from evertide.vocab.errors import NumericOutOfRange
from evertide.vocab.sql_type import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    MZ_TIMESTAMP,
    NAME,
    NUMERIC,
    OID,
    RANGE_BASES,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
    array_of,
)

VARCHAR: Final = SqlType(Kind.VARCHAR)
BPCHAR: Final = SqlType(Kind.BPCHAR)
CHAR: Final = SqlType(Kind.CHAR)
REGCLASS: Final = SqlType(Kind.REGCLASS)
REGPROC: Final = SqlType(Kind.REGPROC)
REGTYPE: Final = SqlType(Kind.REGTYPE)
UINT2: Final = SqlType(Kind.UINT2)
UINT4: Final = SqlType(Kind.UINT4)
UINT8: Final = SqlType(Kind.UINT8)
TEXT_ARRAY: Final = array_of(TEXT)

SIGNED: Final = (INT2, INT4, INT8)
UNSIGNED: Final = (UINT2, UINT4, UINT8)
INTEGERS: Final = SIGNED + UNSIGNED
FLOATS: Final = (FLOAT4, FLOAT8)
NUMBERS: Final = (*INTEGERS, *FLOATS, NUMERIC)
REGISTERED: Final = (REGCLASS, REGPROC, REGTYPE)
STRINGS: Final = (TEXT, VARCHAR, BPCHAR, NAME, CHAR)

RANGE_TYPES: Final = tuple(SqlType(kind) for kind in RANGE_BASES)

# Every type a column can have that is not made of others.
SCALARS: Final = (
    BOOL, *NUMBERS, *STRINGS, BYTEA, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID, JSONB,
    OID, *REGISTERED, MZ_TIMESTAMP, *RANGE_TYPES,
)  # fmt: skip
ARRAYS: Final = tuple(array_of(element) for element in SCALARS)
LISTS: Final = tuple(SqlType(Kind.LIST, element=element) for element in SCALARS)
EVERY_TYPE: Final = SCALARS + ARRAYS + LISTS

RANGES: Final[dict[SqlType, tuple[int, int]]] = {
    INT2: (-(2**15), 2**15 - 1),
    INT4: (-(2**31), 2**31 - 1),
    INT8: (-(2**63), 2**63 - 1),
    UINT2: (0, 2**16 - 1),
    UINT4: (0, 2**32 - 1),
    UINT8: (0, 2**64 - 1),
    OID: (0, 2**32 - 1),
    MZ_TIMESTAMP: (0, 2**63 - 1),
}


def out_of_range(sql_type: SqlType) -> NumericOutOfRange:
    """What a result says that its type cannot hold."""
    return NumericOutOfRange(f"{sql_type} out of range")


def unmodified(sql_type: SqlType) -> SqlType:
    """The type without precision, scale and length, as the function table knows it.

    >>> str(unmodified(SqlType(Kind.NUMERIC, precision=10, scale=2)))
    'numeric'
    """
    element = None if sql_type.element is None else unmodified(sql_type.element)
    return SqlType(sql_type.kind, element=element, fields=sql_type.fields)
