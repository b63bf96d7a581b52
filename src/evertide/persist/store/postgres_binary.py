"""Values in the binary forms of PostgreSQL's protocol: nothing is quoted, nothing is parsed."""

import struct
from collections.abc import Collection
from typing import Final

from psycopg.pq.abc import PGresult

# Oids of the types that arrays hold here.
_BYTEA, _BIGINT, _TEXT = 17, 20, 25
_length: Final = struct.Struct(">i").pack
_empty_array: Final = struct.Struct(">iii").pack
_array_head: Final = struct.Struct(">iiiii").pack
_NULL: Final = _length(-1)

bigint: Final = struct.Struct(">q").pack
FALSE, TRUE = b"\x00", b"\x01"


def maybe_bigint(value: int | None) -> bytes | None:
    """NULL stays NULL."""
    return None if value is None else bigint(value)


def texts(values: Collection[str]) -> bytes:
    """text[]"""
    return _array(_TEXT, [value.encode() for value in values])


def bigints(values: Collection[int | None]) -> bytes:
    """bigint[]"""
    return _array(_BIGINT, [maybe_bigint(value) for value in values])


def byteas(values: Collection[bytes]) -> bytes:
    """bytea[]"""
    return _array(_BYTEA, values)


def read_bigint(result: PGresult, row: int, column: int) -> int:
    """A bigint that is not NULL."""
    return int.from_bytes(read_bytes(result, row, column), "big", signed=True)


def read_bytes(result: PGresult, row: int, column: int) -> bytes:
    """Anything that is not NULL."""
    value = result.get_value(row, column)
    assert value is not None, "declared NOT NULL"
    return value


def _array(element: int, values: Collection[bytes | None]) -> bytes:
    if not values:
        return _empty_array(0, 0, element)
    parts = [_array_head(1, 1, element, len(values), 1)]
    for value in values:
        parts += (_NULL,) if value is None else (_length(len(value)), value)
    return b"".join(parts)
