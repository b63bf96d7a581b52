"""SQL types as values, with the PostgreSQL OIDs that clients know them by."""

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """The name of a scalar type as PostgreSQL's pg_type spells it."""

    BOOL = "bool"
    INT2 = "int2"
    INT4 = "int4"
    INT8 = "int8"
    FLOAT4 = "float4"
    FLOAT8 = "float8"
    NUMERIC = "numeric"
    TEXT = "text"
    VARCHAR = "varchar"
    BPCHAR = "bpchar"
    NAME = "name"
    CHAR = "char"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    INTERVAL = "interval"
    UUID = "uuid"
    JSONB = "jsonb"
    OID = "oid"
    REGCLASS = "regclass"
    REGPROC = "regproc"
    REGTYPE = "regtype"
    UINT2 = "uint2"
    UINT4 = "uint4"
    UINT8 = "uint8"
    MZ_TIMESTAMP = "mz_timestamp"
    INT4RANGE = "int4range"
    INT8RANGE = "int8range"
    NUMRANGE = "numrange"
    DATERANGE = "daterange"
    TSRANGE = "tsrange"
    TSTZRANGE = "tstzrange"
    ARRAY = "array"
    LIST = "list"
    MAP = "map"
    RECORD = "record"
    # A string literal or parameter whose type is not settled yet; never stored.
    UNKNOWN = "unknown"


_OIDS: dict[Kind, tuple[int, int]] = {
    # kind: (oid, oid of the array of it)
    Kind.BOOL: (16, 1000),
    Kind.BYTEA: (17, 1001),
    Kind.CHAR: (18, 1002),
    Kind.NAME: (19, 1003),
    Kind.INT8: (20, 1016),
    Kind.INT2: (21, 1005),
    Kind.INT4: (23, 1007),
    Kind.REGPROC: (24, 1008),
    Kind.TEXT: (25, 1009),
    Kind.OID: (26, 1028),
    Kind.FLOAT4: (700, 1021),
    Kind.FLOAT8: (701, 1022),
    Kind.UNKNOWN: (705, 0),
    Kind.BPCHAR: (1042, 1014),
    Kind.VARCHAR: (1043, 1015),
    Kind.DATE: (1082, 1182),
    Kind.TIME: (1083, 1183),
    Kind.TIMESTAMP: (1114, 1115),
    Kind.TIMESTAMPTZ: (1184, 1185),
    Kind.INTERVAL: (1186, 1187),
    Kind.NUMERIC: (1700, 1231),
    Kind.REGCLASS: (2205, 2210),
    Kind.REGTYPE: (2206, 2211),
    Kind.RECORD: (2249, 2287),
    Kind.UUID: (2950, 2951),
    Kind.JSONB: (3802, 3807),
    Kind.INT4RANGE: (3904, 3905),
    Kind.NUMRANGE: (3906, 3907),
    Kind.TSRANGE: (3908, 3909),
    Kind.TSTZRANGE: (3910, 3911),
    Kind.DATERANGE: (3912, 3913),
    Kind.INT8RANGE: (3926, 3927),
    # The peer's own types keep the numbers its clients know.
    Kind.LIST: (16384, 0),
    Kind.MAP: (16385, 0),
    Kind.UINT2: (16460, 16461),
    Kind.UINT4: (16462, 16463),
    Kind.UINT8: (16464, 16465),
    Kind.MZ_TIMESTAMP: (16552, 16553),
}

# Kinds whose precision is a number of digits after the second.
TIMED = frozenset({Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL})

_LENGTHS: dict[Kind, int] = {
    Kind.BOOL: 1, Kind.CHAR: 1, Kind.NAME: 64, Kind.INT2: 2, Kind.INT4: 4, Kind.INT8: 8,
    Kind.FLOAT4: 4, Kind.FLOAT8: 8, Kind.DATE: 4, Kind.TIME: 8, Kind.TIMESTAMP: 8,
    Kind.TIMESTAMPTZ: 8, Kind.INTERVAL: 16, Kind.UUID: 16, Kind.OID: 4, Kind.REGCLASS: 4,
    Kind.REGPROC: 4, Kind.REGTYPE: 4, Kind.UINT2: 2, Kind.UINT4: 4, Kind.UINT8: 8,
    Kind.MZ_TIMESTAMP: 8,
}  # fmt: skip

_SQL_NAMES: dict[Kind, str] = {
    Kind.BOOL: "boolean", Kind.INT2: "smallint", Kind.INT4: "integer", Kind.INT8: "bigint",
    Kind.FLOAT4: "real", Kind.FLOAT8: "double precision", Kind.VARCHAR: "character varying",
    Kind.BPCHAR: "character", Kind.TIME: "time without time zone",
    Kind.TIMESTAMP: "timestamp without time zone",
    Kind.TIMESTAMPTZ: "timestamp with time zone", Kind.CHAR: '"char"',
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SqlType:
    """One type of a column or an expression.

    `precision` and `scale` are those of numeric(p, s), `precision` alone is that of times and
    intervals: digits after the second; `length` is that of varchar(n) and char(n).
    None means unconstrained. `element` is set for arrays, lists and maps only, `fields` (names and
    types) for records only. `name` is what a user calls the type: it is told, but makes no
    difference.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    element: "SqlType | None" = None
    fields: "tuple[tuple[str, SqlType], ...] | None" = None
    name: str | None = field(default=None, compare=False, repr=False)

    @property
    def oid(self) -> int:
        """The number clients know this type by."""
        if self.kind is Kind.ARRAY:
            assert self.element is not None, "an array has an element type"
            if self.element.kind is Kind.ARRAY:
                return self.element.oid  # clients do not tell arrays apart by their dimensions
            return _OIDS[self.element.kind][1]
        return _OIDS[self.kind][0]

    @property
    def is_braced(self) -> bool:
        """Whether values stand unquoted, in braces of their own, in lists and maps."""
        return self.kind in (Kind.LIST, Kind.MAP)

    @property
    def type_length(self) -> int:
        """pg_type.typlen: bytes of the binary format, or -1 where it varies."""
        return _LENGTHS.get(self.kind, -1)

    @property
    def type_modifier(self) -> int:
        """pg_attribute.atttypmod: precision and scale, or length, packed as PostgreSQL does."""
        if self.kind is Kind.NUMERIC and self.precision is not None:
            return ((self.precision << 16) | (self.scale or 0)) + 4
        if self.kind in TIMED and self.precision is not None:
            return self.precision
        return -1 if self.length is None else self.length + 4

    def __str__(self) -> str:
        """The type as SQL spells it, for errors and SHOW.

        >>> str(SqlType(Kind.NUMERIC, precision=10, scale=2)), str(SqlType(Kind.TIME, precision=3))
        ('numeric(10,2)', 'time(3) without time zone')
        """
        if self.name is not None:
            return self.name
        if self.kind is Kind.ARRAY:
            return f"{self.element}[]"
        if self.kind is Kind.LIST:
            return f"{self.element} list"
        if self.kind is Kind.MAP:
            return f"map[text=>{self.element}]"
        if self.fields is not None:
            return f"record({','.join(f'{name}: {type_}' for name, type_ in self.fields)})"
        name = _SQL_NAMES.get(self.kind, self.kind.value)
        if self.kind in TIMED and self.precision is not None:
            word, _, rest = name.partition(" ")
            return f"{word}({self.precision}) {rest}".rstrip()
        if self.precision is not None:
            return f"{name}({self.precision},{self.scale or 0})"
        return name if self.length is None else f"{name}({self.length})"


BOOL = SqlType(Kind.BOOL)
INT2 = SqlType(Kind.INT2)
INT4 = SqlType(Kind.INT4)
INT8 = SqlType(Kind.INT8)
FLOAT4 = SqlType(Kind.FLOAT4)
FLOAT8 = SqlType(Kind.FLOAT8)
NUMERIC = SqlType(Kind.NUMERIC)
TEXT = SqlType(Kind.TEXT)
BYTEA = SqlType(Kind.BYTEA)
DATE = SqlType(Kind.DATE)
TIME = SqlType(Kind.TIME)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
TIMESTAMPTZ = SqlType(Kind.TIMESTAMPTZ)
INTERVAL = SqlType(Kind.INTERVAL)
UUID = SqlType(Kind.UUID)
JSONB = SqlType(Kind.JSONB)
OID = SqlType(Kind.OID)
NAME = SqlType(Kind.NAME)
MZ_TIMESTAMP = SqlType(Kind.MZ_TIMESTAMP)
UNKNOWN = SqlType(Kind.UNKNOWN)

# The types of ranges, and what their bounds are.
RANGE_BASES: dict[Kind, SqlType] = {
    Kind.INT4RANGE: INT4,
    Kind.INT8RANGE: INT8,
    Kind.NUMRANGE: NUMERIC,
    Kind.DATERANGE: DATE,
    Kind.TSRANGE: TIMESTAMP,
    Kind.TSTZRANGE: TIMESTAMPTZ,
}


def array_of(element: SqlType) -> SqlType:
    """The array type with these elements."""
    return SqlType(Kind.ARRAY, element=element)


def list_of(element: SqlType) -> SqlType:
    """The list type with these elements, which may be lists."""
    return SqlType(Kind.LIST, element=element)


def map_of(value: SqlType) -> SqlType:
    """The type of maps from text to these values."""
    return SqlType(Kind.MAP, element=value)


def record_of(*fields: tuple[str, SqlType]) -> SqlType:
    """The type of a row with these fields.

    >>> str(record_of(("a", INT4), ("b", TEXT)))
    'record(a: integer,b: text)'
    """
    return SqlType(Kind.RECORD, fields=fields)


_BY_OID = {oid: SqlType(kind) for kind, (oid, _) in _OIDS.items()}
_BY_OID.update(
    {array_oid: array_of(SqlType(kind)) for kind, (_, array_oid) in _OIDS.items() if array_oid}
)


def type_of_oid(oid: int) -> SqlType | None:
    """The type that clients know by this number; None for one we do not have.

    >>> type_of_oid(23) == INT4, type_of_oid(1) is None
    (True, True)
    """
    return _BY_OID.get(oid)
