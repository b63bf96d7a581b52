"""Goal: what an aggregate was given in an order asked for is taken back, whichever NaN it comes as.

Method: arguments packed with their place, which collections compare by their bytes.
"""

import struct
from typing import Final

import pytest

from evertide.expr.functions.in_order import placed
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import FLOAT4, FLOAT8, Kind, SqlType, array_of

# What processors make of 0/0, and what parsers make of the text.
ONE_NAN, OTHER_NAN = struct.unpack("<dd", struct.pack("<QQ", 0xFFF8 << 48, (0x7FF8 << 48) + 1))
FLOATS: Final = array_of(FLOAT8)
RECORD: Final = SqlType(Kind.RECORD, fields=(("x", FLOATS), ("y", FLOAT4)))


def pair(sql_type: SqlType, datum: Datum) -> Datum:
    body = placed(sql_type).body
    assert body is not None
    return body(datum, b"place")


@pytest.mark.parametrize(
    ("sql_type", "one", "other"),
    [
        (FLOAT8, ONE_NAN, OTHER_NAN),
        (FLOATS, (1.0, None, ONE_NAN), (1.0, None, OTHER_NAN)),
        (SqlType(Kind.MAP, element=FLOAT8), (("k", ONE_NAN),), (("k", OTHER_NAN),)),
        (RECORD, ((ONE_NAN,), ONE_NAN), ((OTHER_NAN,), OTHER_NAN)),
    ],
    ids=["float", "array", "map", "record"],
)
def test_all_nans_are_one(sql_type: SqlType, one: Datum, other: Datum) -> None:
    assert pair(sql_type, one) == pair(sql_type, other)


def test_what_looks_different_stays_different() -> None:
    assert pair(FLOAT8, 0.0) != pair(FLOAT8, -0.0)
    assert pair(FLOATS, (1.5, None)) != pair(FLOATS, (1.5,))
