"""Goal: no datum changes on its way through Arrow, Parquet and inline batches.

Method: random columns of every type; equality by representation (0.0 is not -0.0, NaN is NaN).
"""

from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.persist.coding.encoding import (
    arrow_type,
    decode_column,
    encode_column,
    is_storable,
    spark_type_name,
    update_schema,
)
from evertide.persist.coding.inline import decode_inline, encode_inline
from evertide.persist.coding.numeric_column import decode_numerics
from evertide.persist.coding.parts import (
    checksum,
    columns_to_table,
    decode_part,
    encode_part,
    table_to_columns,
)
from evertide.persist.coding.row_reader import RowReader
from evertide.persist.coding.updates import to_columns
from evertide.persist.faults import Corrupt
from evertide.persist.state import BlobPart
from evertide.vocab.datum import Row, reduce_numeric
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import INT4, INTERVAL, NUMERIC, Kind, SqlType, array_of
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.persist.strategies import DATUMS, column

EVERY_TYPE = sorted(DATUMS, key=str)
DESC = relation_desc(*((f"col{i}", sql_type) for i, sql_type in enumerate(EVERY_TYPE)))
ROWS = st.tuples(*(DATUMS[sql_type] | st.none() for sql_type in EVERY_TYPE))


def updates_of(rows: list[Row]) -> list[Update]:
    ordinary = [Update(row, Timestamp(i % 3), (-1) ** i * (i + 1)) for i, row in enumerate(rows)]
    return [*ordinary, Update((), Timestamp(1), 2, '["22012","division by zero"]')]


@pytest.mark.parametrize("sql_type", EVERY_TYPE, ids=str)
def test_a_column_round_trips(sql_type: SqlType) -> None:
    @settings(max_examples=60, deadline=None)
    @given(column(sql_type))
    def check(datums: list) -> None:
        array = encode_column(sql_type, datums)
        assert array.type == arrow_type(sql_type)
        array.validate(full=True)
        assert repr(decode_column(sql_type, array)) == repr(datums)
        assert repr(decode_column(sql_type, array.slice(1))) == repr(datums[1:])
        twice = pa.chunked_array([array, array], type=array.type)
        assert repr(decode_column(sql_type, twice)) == repr(datums * 2)

    check()


@pytest.mark.parametrize("sql_type", EVERY_TYPE, ids=str)
def test_some_rows_are_what_all_of_them_are(sql_type: SqlType) -> None:
    @settings(max_examples=60, deadline=None)
    @given(column(sql_type) | st.lists(DATUMS[sql_type], max_size=8), st.randoms())
    def check(datums: list, rng: Random) -> None:
        for first in (0, 1):
            rest = datums[first:]
            column = encode_column(sql_type, datums).slice(first)
            reader = RowReader(pa.table({"a": column, "b": column}), (sql_type, sql_type))
            places = rng.sample(range(len(rest)), rng.randint(0, len(rest)))
            found = reader.rows(np.array(places, np.int64))
            assert repr(found) == repr([(rest[place],) * 2 for place in places])

    check()


def test_rows_without_columns_are_as_many_as_were_asked_for() -> None:
    assert RowReader(pa.table({}), ()).rows(np.array([0, 1])) == [(), ()]


SHORT = st.builds(
    lambda digits, exponent: reduce_numeric(Decimal(digits).scaleb(exponent)),
    st.integers(-(10**18) + 1, 10**18 - 1) | st.integers(-99, 99),
    st.integers(-30, 30),
)


@pytest.mark.parametrize("others", [SHORT, st.none(), DATUMS[NUMERIC]], ids=["", "null", "any"])
def test_many_numerics_are_what_each_of_them_is(others: st.SearchStrategy[Decimal | None]) -> None:
    @settings(max_examples=60, deadline=None)
    @given(st.lists(SHORT | others, max_size=40), st.integers(0, 5), st.sampled_from([7, 500]))
    def check(few: list[Decimal | None], start: int, different: int) -> None:
        often = [Decimal(i % different - 3).scaleb(-2).normalize() for i in range(500)]
        datums = [*few, *often]
        array = encode_column(NUMERIC, datums)
        assert repr(decode_column(NUMERIC, array)) == repr(datums)
        assert repr(decode_column(NUMERIC, array.slice(start))) == repr(datums[start:])
        if all(d is None or (d.is_finite() and len(d.as_tuple().digits) <= 18) for d in few):
            assert repr(decode_numerics(array.slice(start))) == repr(datums[start:])

    check()
    nothing = pa.nulls(200, pa.binary())
    assert decode_column(NUMERIC, nothing) == [None] * 200


def test_bytes_that_are_no_numeric_are_not_taken_for_one() -> None:
    for odd in (b"", b"\xc0", b"\xff\xff", b"\xff\xfe", b"\x00\x00", b"\xc0\x00"):
        assert decode_numerics(pa.array([b"\x80\x00", odd], pa.binary())) is None


@settings(max_examples=25, deadline=None)
@given(st.lists(ROWS, max_size=5))
def test_parts_round_trip(rows: list[Row]) -> None:
    updates = updates_of(rows)
    table = columns_to_table(DESC, to_columns(updates))
    value = encode_part(table)
    part = BlobPart("k", len(updates), len(value), checksum(value))
    back = table_to_columns(DESC, decode_part(DESC, part, value)).updates()
    assert repr(back) == repr(updates)


@settings(max_examples=50, deadline=None)
@given(st.lists(ROWS, max_size=5))
def test_inline_batches_round_trip(rows: list[Row]) -> None:
    updates = updates_of(rows)
    back = decode_inline(DESC, encode_inline(updates)).updates()
    assert sorted(map(repr, back)) == sorted(map(repr, updates))


@pytest.mark.parametrize("desc", [RelationDesc(()), DESC])
def test_relations_without_columns_or_rows(desc: RelationDesc) -> None:
    updates = [] if desc.arity else [Update((), Timestamp(3), 2)]
    columns = to_columns(updates)
    assert table_to_columns(desc, columns_to_table(desc, columns)).updates() == updates
    assert decode_inline(desc, encode_inline(updates)).updates() == updates


def test_damaged_bytes_are_noticed() -> None:
    value = encode_part(columns_to_table(DESC, to_columns(updates_of([]))))
    part = BlobPart("k", 1, len(value), checksum(value))
    damaged = bytes([value[0] ^ 1]) + value[1:]
    with pytest.raises(Corrupt):
        decode_part(DESC, part, damaged)
    payload = encode_inline([Update((1,), Timestamp(1), 1)])
    with pytest.raises(Corrupt):
        decode_inline(relation_desc(("a", array_of(INT4))), payload)
    with pytest.raises(Corrupt):
        decode_inline(relation_desc(("a", INT4)), b"\x7f" + payload[1:])


def test_types_as_arrow_and_spark_spell_them() -> None:
    assert spark_type_name(INTERVAL) == "struct<months:int,days:int,micros:bigint>"
    assert spark_type_name(array_of(NUMERIC)) == "array<binary>"
    schema = update_schema(relation_desc(("x", INT4), ("x", NUMERIC)))
    assert [(field.name, str(field.type)) for field in schema] == [
        ("c0", "int32"), ("c1", "binary"), ("e", "string"), ("t", "int64"), ("d", "int64"),
    ]  # fmt: skip


def test_what_cannot_be_stored_says_so() -> None:
    assert all(is_storable(sql_type) for sql_type in EVERY_TYPE)
    assert not is_storable(SqlType(Kind.MAP, element=SqlType(Kind.RECORD)))
    assert not is_storable(array_of(SqlType(Kind.RECORD)))
    assert not is_storable(SqlType(Kind.UNKNOWN))
