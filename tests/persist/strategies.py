"""Hypothesis strategies for datums of every storable type."""

import json
import math
from decimal import Decimal

from hypothesis import strategies as st

from evertide.vocab.datum import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    EMPTY_RANGE,
    TS_INFINITY,
    TS_MINUS_INFINITY,
    Datum,
    Interval,
    reduce_numeric,
)
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
    map_of,
)

UINT2, UINT4, UINT8 = SqlType(Kind.UINT2), SqlType(Kind.UINT4), SqlType(Kind.UINT8)
BPCHAR = SqlType(Kind.BPCHAR, length=3)

# Bytes that also start or end a key's parts: where one column could spill into the next.
_awkward = "\x01\x02\x03a"
_text = st.text(_awkward, max_size=3) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8
)
_special_numerics = [Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal(0)]
numerics = st.one_of(
    st.sampled_from(_special_numerics),
    st.builds(
        lambda digits, exponent: reduce_numeric(Decimal(digits).scaleb(exponent)),
        st.integers(-(10**39) + 1, 10**39 - 1),
        st.integers(-39, 0),
    ),
    st.integers(-1_000, 1_000).map(lambda i: reduce_numeric(Decimal(i) / 10)),
)
intervals = st.builds(
    Interval,
    st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1),
    st.integers(-60, 60) | st.integers(-(2**31), 2**31 - 1),
    st.integers(-3, 3).map(lambda days: days * 86_400_000_000) | st.integers(-(2**63), 2**63 - 1),
)


def canonical_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner),
    max_leaves=6,
)

DATUMS: dict[SqlType, st.SearchStrategy[Datum]] = {
    BOOL: st.booleans(),
    INT2: st.integers(-(2**15), 2**15 - 1),
    INT4: st.integers(-(2**31), 2**31 - 1),
    INT8: st.integers(-(2**63), 2**63 - 1),
    UINT2: st.integers(0, 2**16 - 1),
    UINT4: st.integers(0, 2**32 - 1),
    UINT8: st.integers(0, 2**64 - 1),
    OID: st.integers(0, 2**32 - 1),
    MZ_TIMESTAMP: st.integers(0, 2**63 - 1),
    FLOAT4: st.floats(width=32),
    FLOAT8: st.floats() | st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan]),
    NUMERIC: numerics,
    TEXT: _text,
    NAME: _text,
    BPCHAR: st.text("a ", max_size=3),
    BYTEA: st.lists(st.sampled_from([0, 1, 2, 255]), max_size=3).map(bytes) | st.binary(max_size=8),
    DATE: st.integers(-(2**31), 2**31 - 1) | st.sampled_from([DATE_INFINITY, DATE_MINUS_INFINITY]),
    TIME: st.integers(0, 86_400_000_000),
    TIMESTAMP: st.integers(-(2**63), 2**63 - 1) | st.sampled_from([TS_INFINITY, TS_MINUS_INFINITY]),
    TIMESTAMPTZ: st.integers(-(2**63), 2**63 - 1),
    INTERVAL: intervals,
    UUID: st.binary(min_size=16, max_size=16),
    JSONB: json_values.map(canonical_json),
}
for _element in (INT4, NUMERIC, INTERVAL, TEXT, FLOAT8, UINT8):
    DATUMS[array_of(_element)] = st.lists(DATUMS[_element] | st.none(), max_size=3).map(tuple)
# All that an array of arrays holds are of one length; small numbers make many of them alike.
DATUMS[array_of(array_of(INT4))] = st.integers(1, 3).flatmap(
    lambda length: st.lists(st.tuples(*[st.none() | st.integers(0, 1)] * length), max_size=3).map(
        tuple
    )
)
DATUMS[SqlType(Kind.LIST, element=SqlType(Kind.LIST, element=INT8))] = st.lists(
    st.none() | st.lists(DATUMS[INT8] | st.none(), max_size=2).map(tuple), max_size=2
).map(tuple)
DATUMS[map_of(NUMERIC)] = st.dictionaries(_text, numerics | st.none(), max_size=3).map(
    lambda pairs: tuple(sorted(pairs.items()))
)


def _range(lower: Datum, upper: Datum, has_lower: bool, has_upper: bool) -> Datum:
    return lower, upper, has_lower and lower is not None, has_upper and upper is not None


for _kind, _base in RANGE_BASES.items():
    _bounds = DATUMS[_base] | st.none()
    _ranges = st.builds(_range, _bounds, _bounds, st.booleans(), st.booleans())
    DATUMS[SqlType(_kind)] = _ranges | st.just(EMPTY_RANGE)


def column(sql_type: SqlType) -> st.SearchStrategy[list[Datum]]:
    """A few datums of a type, NULLs among them."""
    return st.lists(DATUMS[sql_type] | st.none(), max_size=6)
