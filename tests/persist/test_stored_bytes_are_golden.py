"""Goal: bytes written by any earlier program still mean the same.

A failure here means that stored data would be misread. Do not change an expected value: add a new
version beside it, and read both.
"""

import math
from decimal import Decimal
from pathlib import Path

import pytest

from evertide.persist.coding.arrow_inline import decode_arrow, encode_arrow
from evertide.persist.coding.encoding import (
    arrow_type,
    decode_column,
    decode_numeric,
    encode_column,
    encode_key,
    encode_numeric,
    is_storable,
    type_name,
    type_named,
)
from evertide.persist.coding.inline import decode_inline, encode_inline
from evertide.persist.coding.parts import checksum, columns_to_table, decode_part, table_to_columns
from evertide.persist.coding.updates import to_columns
from evertide.persist.faults import Corrupt
from evertide.persist.handle import PersistClient
from evertide.persist.state import (
    Batch,
    BlobPart,
    Hold,
    InlinePart,
    Schema,
    ShardState,
    decode_state,
    encode_state,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import CompareAndSet
from evertide.persist.upkeep.merge import to_keys
from evertide.persist.upkeep.row_hash import row_hashes
from evertide.vocab.datum import (
    EMPTY_RANGE,
    TS_INFINITY,
    Datum,
    Interval,
    Row,
    reduce_numeric,
)
from evertide.vocab.ids import GlobalId, ShardId
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
    Kind,
    SqlType,
    array_of,
    list_of,
    map_of,
)
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.persist.strategies import BPCHAR, UINT8

INT4RANGE = SqlType(Kind.INT4RANGE)
GOLDEN = Path(__file__).parent / "golden"
# By file: the checksum that states keep of it. The second has page checksums, and no dictionaries
# of floats.
PARTS = {"part-v1.parquet": 5492761654111092268, "part-v2.parquet": 11495800285335141478}

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
    (BYTEA, b"\x00\x01", "0100ff010000"),
    (DATE, -1, "017fffffffffffffff"),
    (INTERVAL, Interval(1, -2, 3), "018000000000000233438e8003"),
    (UUID, bytes(range(16)), "01000102030405060708090a0b0c0d0e0f"),
    (array_of(INT4), (1, None), "010180000000000000010200"),
    (array_of(array_of(INT4)), ((1, None),), "01018000000000000001020000000001"),
    (array_of(array_of(INT4)), (), "0100"),
    (array_of(array_of(array_of(BOOL))), (((True,), (None,)),), "01010102000000000100000002"),
    (JSONB, '{"a":[1,null],"b":true}', "010700000002016100060000000204c000110002016200050101"),
    (JSONB, "[]", "0101"),
    (map_of(INT4), (("a", 1), ("b", None)), "010161000180000000000000010162000200"),
    (INT4RANGE, (1, 5, True, False), "01010180000000000000010001800000000000000500"),
    (INT4RANGE, (None, None, False, False), "01010002"),
    (INT4RANGE, EMPTY_RANGE, "0100"),
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
MAPS_INLINE = "01929193070193929192a16192a3312e35c0940105c3c2929094c0c0c3c392c0c090"
KIND_NAMES = (
    "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar",
    "name", "char", "bytea", "date", "time", "timestamp", "timestamptz", "interval", "uuid",
    "jsonb", "oid", "regclass", "regproc", "regtype", "uint2", "uint4", "uint8", "mz_timestamp",
    "int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange",
)  # fmt: skip
# What a shard's schemas call the types of its columns.
TYPE_NAMES: list[tuple[SqlType, str]] = [
    *((SqlType(Kind(name)), name) for name in KIND_NAMES),
    (SqlType(Kind.NUMERIC, precision=10, scale=2), "numeric"),
    (SqlType(Kind.VARCHAR, length=5), "varchar"),
    (BPCHAR, "bpchar"),
    (array_of(NUMERIC), "numeric[]"),
    (array_of(SqlType(Kind.VARCHAR, length=5)), "varchar[]"),
    (SqlType(Kind.LIST, element=SqlType(Kind.LIST, element=INT8)), "int8 list list"),
    (SqlType(Kind.LIST, element=array_of(TEXT)), "text[] list"),
    (map_of(list_of(INT8)), "map[int8 list]"),
    (array_of(map_of(array_of(TEXT))), "map[text[]][]"),
]
ROW_HASHES = ["3b8d207fe305e592", "5d2285455d76f4b3", "c88311b5099e049f", "4e1de25c995300b5"]
STATE_1_BYTES = (
    "01980509cdea60a27537c092940005049195a162af73312f352d61622e7061727175657403cd0384cfffffffff"
    "ffffffff940509009193a169c4020192029293a2753905c093a56c6561736506cd03e8c2"
)
STATE_1 = ShardState(
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
STATE_2_BYTES = (
    "029a0509cdea60a275370992950005049198a162af73312f352d61622e7061727175657403cd0384cfffffffff"
    "ffffffff01030402950509009194a169c40201920201c09293a2753905c093a56c6561736506cd03e8c3929191"
    "a4696e74389192a4696e7438a96e756d657269635b5dcf0000018bcfe56800b1a778bf841c444c"
)
STATE_2 = ShardState(
    since=Timestamp(5),
    upper=Timestamp(9),
    since_lag=60_000,
    writer=GlobalId("u7"),
    pending=Timestamp(9),
    batches=(
        Batch(MIN_TS, Timestamp(5), Timestamp(4),
              (BlobPart("s1/5-ab.parquet", 3, 900, 2**64 - 1, 1, 3, 4),), 2),
        Batch(Timestamp(5), Timestamp(9), MIN_TS, (InlinePart(b"\x01\x92", 2, 1),)),
    ),
    holds=(Hold("u9", Timestamp(5), None), Hold("lease", Timestamp(6), 1000)),
    forgotten=True,
    schemas=(Schema(("int8",)), Schema(("int8", "numeric[]"))),
    forgotten_at_ms=1_700_000_000_000,
)  # fmt: skip

STATE_3_BYTES = (
    "029a0509cdea60c0c091950005049199a162af73312f352d61622e7061727175657403cd0384cfffffffffffff"
    "ffff010304ce000111700290c290c0e3961f2e938bebd3"
)
STATE_3 = ShardState(
    since=Timestamp(5),
    upper=Timestamp(9),
    since_lag=60_000,
    batches=(
        Batch(MIN_TS, Timestamp(5), Timestamp(4),
              (BlobPart("s1/5-ab.parquet", 3, 900, 2**64 - 1, 1, 3, 4, 70_000),), 2),
    ),
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


def test_columns_of_maps_and_ranges() -> None:
    maps: list[Datum] = [(("a", Decimal(1)), ("b", None)), (), None]
    pairs = [{"key": "a", "value": b"\xc0\x00\x11\x00"}, {"key": "b", "value": None}]
    stored = encode_column(map_of(NUMERIC), maps)
    assert stored.to_pylist() == [pairs, [], None]
    assert decode_column(map_of(NUMERIC), stored) == maps
    ranges: list[Datum] = [(1, None, True, False), (None, 2, False, False), EMPTY_RANGE, None]
    stored = encode_column(INT4RANGE, ranges)
    assert stored.to_pylist() == [
        {"lower": 1, "upper": None, "bounds": 1},
        {"lower": None, "upper": 2, "bounds": 0},
        {"lower": None, "upper": None, "bounds": 3},
        None,
    ]
    assert decode_column(INT4RANGE, stored) == ranges


def test_maps_and_ranges_inline() -> None:
    desc = relation_desc(("m", map_of(list_of(NUMERIC))), ("r", INT4RANGE))
    rows: list[Row] = [
        ((("a", (Decimal("1.5"), None)),), (1, 5, True, False)),
        ((), EMPTY_RANGE),
        (None, None),
    ]
    updates = [Update(row, Timestamp(7), 1) for row in rows]
    payload = encode_inline(updates)
    assert payload.hex() == MAPS_INLINE
    assert decode_inline(desc, payload).updates() == updates


def test_inline_batch() -> None:
    assert encode_inline(UPDATES).hex() == INLINE
    back = decode_inline(DESC, bytes.fromhex(INLINE)).updates()
    assert sorted(map(repr, back)) == sorted(map(repr, UPDATES))


def test_inline_batch_in_columns() -> None:
    """Compressors may give other bytes; what an earlier one gave must still read."""
    payload = (GOLDEN / "inline-v2.bin").read_bytes()
    assert payload[:8].hex() == "0200000000000000"
    assert encode_arrow(columns_to_table(DESC, to_columns(UPDATES)))[:8] == payload[:8]
    assert repr(decode_inline(DESC, payload).updates()) == repr(UPDATES)
    assert decode_arrow(DESC, payload).equals(columns_to_table(DESC, to_columns(UPDATES)))


@pytest.mark.parametrize("payload", ["msgpack", "arrow"])
async def test_a_shard_with_an_inline_batch_of_either_form(payload: str) -> None:
    golden = bytes.fromhex(INLINE)
    if payload == "arrow":
        golden = (GOLDEN / "inline-v2.bin").read_bytes()
    store, shard_id = MemoryStore(), ShardId("s1")
    batch = Batch(MIN_TS, Timestamp(9), MIN_TS, (InlinePart(golden, len(UPDATES)),))
    state = ShardState(since=MIN_TS, upper=Timestamp(9), since_lag=0, batches=(batch,))
    consensus = store.consensus(await store.raise_epoch())
    await consensus.compare_and_set_each([CompareAndSet(shard_id, None, encode_state(state))])
    async with PersistClient(consensus, MemoryBlob()) as client:
        found = await client.read_updates(shard_id, DESC, Timestamp(7), Timestamp(9))
        assert sorted(map(repr, found)) == sorted(map(repr, UPDATES))
        table = (await client.reader.update_columns(shard_id, DESC, MIN_TS, Timestamp(9))).table
        back = table_to_columns(DESC, table).updates()
        assert sorted(map(repr, back)) == sorted(map(repr, UPDATES))


def test_state() -> None:
    assert encode_state(STATE_3).hex() == STATE_3_BYTES
    assert decode_state(bytes.fromhex(STATE_3_BYTES)) == STATE_3


def test_state_from_before_decoded_sizes() -> None:
    assert decode_state(bytes.fromhex(STATE_2_BYTES)) == STATE_2
    assert decode_state(encode_state(STATE_2)) == STATE_2


def test_state_from_before_checksums_and_schemas() -> None:
    assert decode_state(bytes.fromhex(STATE_1_BYTES)) == STATE_1
    assert decode_state(encode_state(STATE_1)) == STATE_1


@pytest.mark.parametrize(("sql_type", "expected"), TYPE_NAMES, ids=str)
def test_type_name(sql_type: SqlType, expected: str) -> None:
    assert type_name(sql_type) == expected
    assert type_name(type_named(expected)) == expected
    assert arrow_type(type_named(expected)) == arrow_type(sql_type)


def test_every_kind_has_its_name() -> None:
    storable = [kind.value for kind in Kind if is_storable(SqlType(kind))]
    assert storable == list(KIND_NAMES)


@pytest.mark.parametrize(("name", "expected"), PARTS.items())
def test_part(name: str, expected: int) -> None:
    """Parquet writers may lay bytes out differently; what earlier ones wrote must still read."""
    value = (GOLDEN / name).read_bytes()
    part = BlobPart("golden", 3, len(value), expected)
    assert checksum(value) == expected
    assert repr(table_to_columns(DESC, decode_part(DESC, part, value)).updates()) == repr(UPDATES)


def test_row_hashes() -> None:
    """States say by them which rows a part holds, and merges look for rows only there."""
    long_text = UPDATES[0]._replace(row=(7, Decimal(1), "y" * 200, *UPDATES[0].row[3:]))
    table = columns_to_table(DESC, to_columns([*UPDATES, long_text]))
    rows = to_keys(table).drop_columns(["t", "d"])
    assert [f"{int(found):016x}" for found in row_hashes(rows)] == ROW_HASHES


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(Corrupt):
        decode_state(b"\x03" + bytes.fromhex(STATE_2_BYTES)[1:])
    with pytest.raises(Corrupt):
        decode_state(bytes.fromhex(STATE_1_BYTES)[:-3])
