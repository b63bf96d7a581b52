"""Goal: bytes written by any earlier program still mean the same.

A failure here means that stored data would be misread. Do not change an expected value: add a new
version beside it, and read both.
"""

import math
from decimal import Decimal
from pathlib import Path

import pytest

from evertide.persist.encoding import (
    decode_numeric,
    encode_column,
    encode_key,
    encode_numeric,
)
from evertide.persist.faults import Corrupt
from evertide.persist.inline import decode_inline, encode_inline
from evertide.persist.parts import checksum, decode_part, table_to_columns
from evertide.persist.state import (
    Batch,
    BlobPart,
    Hold,
    InlinePart,
    ShardState,
    decode_state,
    encode_state,
)
from evertide.vocab.datum import TS_INFINITY, Datum, Interval, reduce_numeric
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    UUID,
    SqlType,
    array_of,
)
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.persist.strategies import BPCHAR, UINT8

GOLDEN_PART = Path(__file__).parent / "golden" / "part-v1.parquet"

NUMERICS = {
    "-Infinity": "0000",
    "-1E+38": "3fdaeeff",
    "-123.45": "3ffeeccaaeff",
    "-100": "3ffeeeff",
    "-0.001": "4003eeff",
    "0": "8000",
    "1E-39": "bfd91100",
    "0.001": "bffd1100",
    "1": "c0001100",
    "1.5": "c0001600",
    "9.9": "c0009a00",
    "10": "c0011100",
    "99": "c0019a00",
    "100": "c0021100",
    "123.45": "c00213355100",
    "123456789012345678901234567890123456789": "c026133557799113355779911335577991133557799100",
    "Infinity": "fffe",
    "NaN": "ffff",
}
KEYS: list[tuple[SqlType, Datum, str]] = [
    (BOOL, True, "0101"),
    (INT2, -2, "017ffffffffffffffe"),
    (INT8, 1, "018000000000000001"),
    (INT8, None, "02"),
    (UINT8, 2**64 - 1, "01ffffffffffffffff"),
    (FLOAT8, -0.0, "018000000000000000"),
    (FLOAT8, -1.5, "014007ffffffffffff"),
    (FLOAT8, math.nan, "01fff8000000000000"),
    (NUMERIC, Decimal("123.45"), "01c00213355100"),
    (TEXT, "a\u00e9", "0161c3a900"),
    (TEXT, "", "0100"),
    (BPCHAR, "a  ", "016100"),
    (BYTEA, b"\x00\x01", "0100ff0100"),
    (DATE, -1, "017fffffffffffffff"),
    (INTERVAL, Interval(1, -2, 3), "018000000000000233438e8003"),
    (UUID, bytes(range(16)), "01000102030405060708090a0b0c0d0e0f"),
    (array_of(INT4), (1, None), "010180000000000000010200"),
    (JSONB, '{"a":[1,null],"b":true}', "010700000002016100060000000204c000110002016200050101"),
    (JSONB, "[]", "0101"),
]

DESC = relation_desc(
    ("a", INT4), ("b", NUMERIC), ("c", TEXT), ("d", INTERVAL), ("e", array_of(NUMERIC)),
    ("f", FLOAT8), ("g", UINT8), ("h", JSONB), ("i", UUID), ("j", BOOL), ("k", TIMESTAMP),
    ("l", BYTEA),
)  # fmt: skip
UPDATES = [
    Update(
        (1, Decimal("1E+2"), "x", Interval(1, 2, 3), (Decimal("1.5"), None), -0.0, 2**64 - 1,
         '{"a":1}', bytes(range(16)), True, TS_INFINITY, b"\x00"),
        Timestamp(7), 1,
    ),
    Update((None,) * 12, Timestamp(7), -2),
    Update((), Timestamp(8), 1, '["22012","division by zero"]'),
]  # fmt: skip
INLINE = (
    "0192929307fe919cc0c0c0c0c0c0c0c0c0c0c0c0930701919c01a431452b32a1789301020392a3312e35c0cb80"
    "00000000000000cfffffffffffffffffa77b2261223a317dc410000102030405060708090a0b0c0d0e0fc3cf7f"
    "ffffffffffffffc401009193bc5b223232303132222c226469766973696f6e206279207a65726f225d0801"
)
STATE_BYTES = (
    "01980509cdea60a27537c092940005049195a162af73312f352d61622e7061727175657403cd0384cfffffffff"
    "ffffffff940509009193a169c4020192029293a2753905c093a56c6561736506cd03e8c2"
)
STATE = ShardState(
    since=Timestamp(5),
    upper=Timestamp(9),
    since_lag=60_000,
    writer=GlobalId("u7"),
    batches=(
        Batch(MIN_TS, Timestamp(5), Timestamp(4),
              (BlobPart("s1/5-ab.parquet", 3, 900, 2**64 - 1),)),
        Batch(Timestamp(5), Timestamp(9), MIN_TS, (InlinePart(b"\x01\x92", 2),)),
    ),
    holds=(Hold("u9", Timestamp(5), None), Hold("lease", Timestamp(6), 1000)),
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), NUMERICS.items())
def test_numeric(text: str, expected: str) -> None:
    assert encode_numeric(Decimal(text)).hex() == expected
    assert str(decode_numeric(bytes.fromhex(expected))) == str(reduce_numeric(Decimal(text)))


@pytest.mark.parametrize(("sql_type", "datum", "expected"), KEYS)
def test_key(sql_type: SqlType, datum: Datum, expected: str) -> None:
    assert encode_key(sql_type, datum).hex() == expected


def test_column() -> None:
    assert encode_column(UINT8, [0, 2**64 - 1]).to_pylist() == [-(2**63), 2**63 - 1]
    assert encode_column(NUMERIC, [Decimal(1), None]).to_pylist() == [b"\xc0\x00\x11\x00", None]
    months = encode_column(INTERVAL, [Interval(1, 2, 3)]).to_pylist()
    assert months == [{"months": 1, "days": 2, "micros": 3}]


def test_inline_batch() -> None:
    assert encode_inline(UPDATES).hex() == INLINE
    back = decode_inline(DESC, bytes.fromhex(INLINE)).updates()
    assert sorted(map(repr, back)) == sorted(map(repr, UPDATES))


def test_state() -> None:
    assert encode_state(STATE).hex() == STATE_BYTES
    assert decode_state(bytes.fromhex(STATE_BYTES)) == STATE


def test_part() -> None:
    """Parquet writers may lay bytes out differently; what the first one wrote must still read."""
    value = GOLDEN_PART.read_bytes()
    part = BlobPart("golden", 3, len(value), 5492761654111092268)
    assert checksum(value) == part.checksum
    assert repr(table_to_columns(DESC, decode_part(DESC, part, value)).updates()) == repr(UPDATES)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(Corrupt):
        decode_state(b"\x02" + bytes.fromhex(STATE_BYTES)[1:])
    with pytest.raises(Corrupt):
        decode_state(bytes.fromhex(STATE_BYTES)[:-3])
