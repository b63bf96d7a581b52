"""Sample datums of every type, chosen for their edges.

`vectors(types)` gives argument tuples: every value of every type is in one, pairs of special
values meet, and the number stays small.
"""

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal

from evertide.expr.text_input import parse_text
from evertide.vocab.datum import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    TS_INFINITY,
    TS_MINUS_INFINITY,
    Datum,
    Interval,
)
from evertide.vocab.sql_type import (
    DATE,
    INTERVAL,
    JSONB,
    TIMESTAMP,
    UUID,
    Kind,
    SqlType,
)


def _parsed(sql_type: SqlType, *texts: str) -> list[Datum]:
    return [parse_text(sql_type, text) for text in texts]


def _ranges(kind: Kind, *texts: str) -> list[Datum]:
    return _parsed(SqlType(kind), *texts, "empty", "(,)")


_TIMESTAMPS: list[Datum] = [
    TS_INFINITY,
    TS_MINUS_INFINITY,
    *_parsed(
        TIMESTAMP, "epoch", "2000-01-01 00:00:00", "2024-02-29 23:59:59.999999",
        "1969-12-31 23:59:59.5", "0001-01-01", "0044-03-15 12:30 BC", "4714-11-24 BC",
        "294247-01-10 04:00:54.775806", "1999-12-31 12:00:00.000001", "2023-03-26 02:30:00",
    ),
]  # fmt: skip

VALUES: dict[Kind, list[Datum]] = {
    Kind.BOOL: [True, False],
    Kind.INT2: [0, 1, -1, 7, -7, 32767, -32768],
    Kind.INT4: [0, 1, -1, 2, 3, -3, 100, 31, 2**31 - 1, -(2**31)],
    Kind.INT8: [0, 1, -1, 2, 10, -10, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 4611686018427387905],
    Kind.UINT2: [0, 1, 65535],
    Kind.UINT4: [0, 1, 2**32 - 1],
    Kind.UINT8: [0, 1, 2**63, 2**64 - 1],
    Kind.FLOAT4: [0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 3.4028234663852886e38, 1.401298464324817e-45,
                  0.10000000149011612, 16777216.0, math.inf, -math.inf, math.nan],
    Kind.FLOAT8: [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1e15, 1e-7, 123456.789, 1e308,
                  -1e308, 5e-324, 1e-200, 2147483647.5, 9.223372036854775e18, math.pi, math.inf,
                  -math.inf, math.nan],
    Kind.NUMERIC: [Decimal(text) for text in (
        "0", "1", "-1", "2", "0.5", "-0.5", "2.5", "1E+2", "0.1", "123.456", "-7.25", "1E-20",
        "99999999999999999999", "9.99E+37", "2147483647.5", "-9223372036854775808.4",
        "3.14159265358979323846", "NaN", "Infinity", "-Infinity")],
    Kind.TEXT: ["", "a", "abc", "ABC", " pad ", "a%b_c\\", "naïve Straße", "日本語", "1", "-2.5",
                "true", "hello world", "x'y\"z", "2024-02-29", "1 day", "{1,2}", "😀"],
    Kind.VARCHAR: ["", "abc ", "äé"],
    Kind.BPCHAR: ["", "abc", "abc  ", " x"],
    Kind.NAME: ["", "pg_class", "Quoted Name"],
    Kind.CHAR: ["a", "z"],
    Kind.BYTEA: [b"", b"\x00", b"abc", b"\xff\xfe\\", bytes(range(100))],
    Kind.DATE: [DATE_INFINITY, DATE_MINUS_INFINITY, *_parsed(
        DATE, "epoch", "2024-02-29", "1999-12-31", "0001-01-01", "0044-03-15 BC", "4714-11-24 BC",
        "5874897-12-31", "2020-12-28")],
    Kind.TIME: [0, 1, 3_723_400_000, 86_399_999_999, 86_400_000_000],
    Kind.TIMESTAMP: _TIMESTAMPS,
    Kind.TIMESTAMPTZ: _TIMESTAMPS,
    Kind.INTERVAL: [Interval(0, 0, 0), Interval(1, 0, 0), Interval(0, 30, 0), Interval(0, 1, 0),
                    Interval(0, 0, 86_400_000_000), Interval(-14, 3, -14_706_700_000),
                    Interval(14, -40, 1), Interval(2**31 - 1, 2**31 - 1, 2**63 - 1),
                    Interval(-(2**31), -(2**31), -(2**63) + 1), Interval(0, 0, 5_400_000_000),
                    *_parsed(INTERVAL, "1 year 2 mons 3 days 04:05:06.7")],
    Kind.UUID: _parsed(UUID, "00000000-0000-0000-0000-000000000000",
                       "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                       "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    Kind.JSONB: _parsed(
        JSONB, "null", "true", "false", "0", "1.50", "-3", '"a"', '"b\\"\\n"', '""', "[]", "{}",
        "[1, 2, null]", '[1, [2, "a"], {"k": 1}]', '{"a": 1, "b": [1, 2], "c": {"d": null}}',
        '{"b": 2}', '["a", "b"]', '"abc"', "[[1]]", "1e10"),
    Kind.OID: [0, 1, 16, 1700, 2**31, 2**32 - 1],
    Kind.REGCLASS: [0, 1259],
    Kind.REGPROC: [0, 1],
    Kind.REGTYPE: [16, 23, 1009],
    Kind.INT4RANGE: _ranges(Kind.INT4RANGE, "[1,5)", "[3,3]", "(,2]", "[4,)", "(-7,2147483647)"),
    Kind.INT8RANGE: _ranges(Kind.INT8RANGE, "[1,5)", "(,2]", "[-9223372036854775808,0)"),
    Kind.NUMRANGE: _ranges(Kind.NUMRANGE, "[1,5)", "(1,5]", "[2.5,2.5]", "(,0.1)", "(5,NaN]",
                           "[-Infinity,Infinity]"),
    Kind.DATERANGE: _ranges(Kind.DATERANGE, "[2024-02-29,2024-03-01]", "(,2024-02-29)",
                            "[2024-03-02,infinity)", "(-infinity,0044-03-15 BC]"),
    Kind.TSRANGE: _ranges(Kind.TSRANGE, "[2024-02-29 12:00,2024-03-01)", "(,2024-02-29 12:00]",
                          "[2024-02-29 12:00,infinity]"),
    Kind.TSTZRANGE: _ranges(Kind.TSTZRANGE, "[2024-02-29 12:00+00,2024-03-01 00:00+02)", "(,)"),
    Kind.MZ_TIMESTAMP: [0, 1, 1_700_000_000_000, 2**63 - 1],
}  # fmt: skip


def values_of(sql_type: SqlType) -> list[Datum]:
    """The sample datums of a type, without NULL."""
    if sql_type.element is None:
        return VALUES[sql_type.kind]
    elements = values_of(sql_type.element)
    return [(), tuple(elements[:1]), tuple(elements[1:4]), (None, *elements[:2]), tuple(elements)]


def vectors(
    types: Sequence[SqlType], *, limit: int = 60, nulls: bool = True
) -> Iterator[tuple[Datum, ...]]:
    """Argument tuples for a function of these types, the same every time."""
    columns = [values_of(sql_type) for sql_type in types]
    combinations = math.prod(map(len, columns))
    if combinations <= limit:
        yield from itertools.product(*columns)
    else:
        yield from _sampled(columns, limit)
    if nulls:
        for position in range(len(types)):
            row: list[Datum] = [column[0] for column in columns]
            row[position] = None
            yield tuple(row)


def _sampled(columns: Sequence[list[Datum]], limit: int) -> Iterator[tuple[Datum, ...]]:
    longest = max(map(len, columns))
    for index in range(longest):
        yield tuple(column[index % len(column)] for column in columns)
    chooser = random.Random(len(columns) * 1000 + longest)
    for _ in range(max(limit - longest, 0)):
        yield tuple(chooser.choice(column) for column in columns)
