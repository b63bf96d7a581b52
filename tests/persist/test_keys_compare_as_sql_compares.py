"""Goal: bytes of keys are equal exactly where SQL finds equal, and ordered as SQL orders.

Method: random pairs of every type against comparisons written out here a second time.
"""

import json
import math
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.persist.coding.encoding import (
    decode_numeric,
    encode_key,
    encode_numeric,
    encode_row_key,
)
from evertide.vocab.datum import EMPTY_RANGE, Datum, Interval, Row
from evertide.vocab.sql_type import (
    BYTEA,
    FLOAT4,
    FLOAT8,
    INT8,
    INTERVAL,
    JSONB,
    NUMERIC,
    RANGE_BASES,
    TEXT,
    Kind,
    SqlType,
    array_of,
)
from tests.persist.strategies import BPCHAR, DATUMS, numerics

Pairs = tuple[tuple[str, Datum], ...]
EVERY_TYPE = sorted(DATUMS, key=str)


def compare_plain(left: object, right: object) -> int:
    return (left > right) - (left < right)  # type: ignore[operator]


def compare_with_nan(left: float | Decimal, right: float | Decimal) -> int:
    if left != left or right != right:
        return (left != left) - (right != right)
    return compare_plain(left, right)


def json_rank(value: object) -> int:
    return [type(None), str, int, bool, list, dict].index(type(value))


def compare_json(left: object, right: object, *, top: bool = True) -> int:
    if top and (left == [] or right == []) and type(left) is not type(right):
        return -1 if left == [] else 1
    if json_rank(left) != json_rank(right):
        return compare_plain(json_rank(left), json_rank(right))
    if isinstance(left, list) and isinstance(right, list):
        pairs = [compare_plain(len(left), len(right))]
        pairs += [compare_json(a, b, top=False) for a, b in zip(left, right, strict=False)]
    elif isinstance(left, dict) and isinstance(right, dict):
        pairs = [compare_plain(len(left), len(right))]
        stored = [
            sorted(d.items(), key=lambda pair: (len(pair[0]), pair[0])) for d in (left, right)
        ]
        for (a_name, a_held), (b_name, b_held) in zip(*stored, strict=False):
            pairs += [compare_plain(a_name, b_name), compare_json(a_held, b_held, top=False)]
    else:
        pairs = [0 if left is None else compare_plain(left, right)]
    return next((found for found in pairs if found), 0)


def compare_maps(sql_type: SqlType, left: Pairs, right: Pairs) -> int:
    """Pair by pair; one that has more is greater."""
    assert sql_type.element is not None
    for (a_key, a_value), (b_key, b_value) in zip(left, right, strict=False):
        found = compare_plain(a_key, b_key) or compare(sql_type.element, a_value, b_value)
        if found:
            return found
    return compare_plain(len(left), len(right))


def compare_ranges(base: SqlType, left: Row, right: Row) -> int:
    """Empty first; then by the lower bounds, then by the upper ones."""
    if EMPTY_RANGE in (left, right):
        return (right == EMPTY_RANGE) - (left == EMPTY_RANGE)
    if None in (left[0], right[0]):
        low = (right[0] is None) - (left[0] is None)
    else:
        low = compare(base, left[0], right[0]) or bool(right[2]) - bool(left[2])
    both = None not in (left[1], right[1])
    return low or compare(base, left[1], right[1]) or (both and bool(left[3]) - bool(right[3]))


def compare_dimensions(element: SqlType, left: tuple[Row, ...], right: tuple[Row, ...]) -> int:
    """All elements in turn; then how many there are; then how many arrays they are in."""
    flat = [tuple(datum for part in whole for datum in part) for whole in (left, right)]
    return compare(array_of(element), *flat) or compare_plain(len(left), len(right))


def compare(sql_type: SqlType, left: Datum, right: Datum) -> int:
    """SQL's comparison, NULL last."""
    if left is None or right is None:
        return (left is None) - (right is None)
    match sql_type:
        case SqlType(kind=Kind.ARRAY, element=SqlType(kind=Kind.ARRAY, element=element)):
            assert element is not None
            return compare_dimensions(element, left, right)  # type: ignore[arg-type]
        case SqlType(kind=Kind.ARRAY | Kind.LIST):
            assert sql_type.element is not None
            assert isinstance(left, tuple)
            assert isinstance(right, tuple)
            pairs = (compare(sql_type.element, a, b) for a, b in zip(left, right, strict=False))
            return next((found for found in pairs if found), compare_plain(len(left), len(right)))
        case SqlType(kind=Kind.MAP):
            return compare_maps(sql_type, left, right)  # type: ignore[arg-type]
        case SqlType(kind=kind) if kind in RANGE_BASES:
            return compare_ranges(RANGE_BASES[kind], left, right)  # type: ignore[arg-type]
        case SqlType(kind=Kind.FLOAT4 | Kind.FLOAT8 | Kind.NUMERIC):
            return compare_with_nan(left, right)  # type: ignore[arg-type]
        case SqlType(kind=Kind.INTERVAL):
            assert isinstance(left, Interval)
            assert isinstance(right, Interval)
            return compare_plain(left.span_micros(), right.span_micros())
        case SqlType(kind=Kind.BPCHAR):
            return compare_plain(str(left).rstrip(" "), str(right).rstrip(" "))
        case SqlType(kind=Kind.JSONB):
            return compare_json(json.loads(str(left)), json.loads(str(right)))
        case _:
            return compare_plain(left, right)


@pytest.mark.parametrize("sql_type", EVERY_TYPE, ids=str)
def test_keys_order_and_equal_as_sql_does(sql_type: SqlType) -> None:
    datum = DATUMS[sql_type] | st.none()

    @settings(max_examples=100, deadline=None)
    @given(datum, datum)
    def check(left: Datum, right: Datum) -> None:
        keys = encode_key(sql_type, left), encode_key(sql_type, right)
        assert compare_plain(*keys) == compare(sql_type, left, right)

    check()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_row_keys_order_column_by_column(data: st.DataObject) -> None:
    """Goal: no column's bytes spill into the next one's order (hence the odd mix of types)."""
    any_types = st.lists(st.sampled_from(EVERY_TYPE), min_size=1, max_size=3)
    of_any_length = st.sampled_from([TEXT, BYTEA, NUMERIC, array_of(TEXT)])
    types = data.draw(any_types | st.tuples(of_any_length, st.sampled_from([INT8, BYTEA])))
    row = st.tuples(*(DATUMS[sql_type] | st.none() for sql_type in types))
    left, right = data.draw(row), data.draw(row)
    if data.draw(st.booleans()):
        right = (left[0], *right[1:])

    def compare_rows(left: Row, right: Row) -> int:
        pairs = (compare(t, a, b) for t, a, b in zip(types, left, right, strict=True))
        return next((found for found in pairs if found), 0)

    keys = encode_row_key(types, left), encode_row_key(types, right)
    assert compare_plain(*keys) == compare_rows(left, right)


def test_values_that_sql_finds_equal_have_one_key() -> None:
    for sql_type, left, right in (
        (NUMERIC, Decimal("1.0"), Decimal("1.00")),
        (NUMERIC, Decimal("-0"), Decimal(0)),
        (FLOAT8, -0.0, 0.0),
        (FLOAT4, math.nan, -math.nan),
        (INTERVAL, Interval(1, 0, 0), Interval(0, 30, 0)),
        (INTERVAL, Interval(0, 1, 0), Interval(0, 0, 86_400_000_000)),
        (BPCHAR, "a", "a  "),
    ):
        assert encode_key(sql_type, left) == encode_key(sql_type, right)
    assert encode_key(TEXT, "a") != encode_key(TEXT, "a  ")
    assert encode_key(TEXT, None) not in (encode_key(TEXT, ""), encode_key(INT8, 0))


def test_jsonb_in_the_order_postgresql_documents() -> None:
    ascending = [
        "[]", "null", '""', '"a"', "-1", "2", "10", "false", "true", "[null]", "[1]", "[2]",
        "[1,1]", "[1,[]]", "{}", '{"b":1}', '{"b":1,"d":1}', '{"aa":1,"c":1}',
    ]  # fmt: skip
    keys = [encode_key(JSONB, text) for text in ascending]
    assert all(left < right for left, right in pairwise(keys))


@settings(max_examples=150, deadline=None)
@given(st.lists(numerics, max_size=8))
def test_numerics_sort_and_come_back(values: list[Decimal]) -> None:
    by_bytes = sorted(map(encode_numeric, values))
    assert [str(decode_numeric(e)) for e in by_bytes] == [
        str(v) for v in sorted(values, key=cmp_to_key(compare_with_nan))
    ]


@pytest.mark.parametrize("text", ["1E+9000", "1E-9000"])
def test_a_numeric_out_of_all_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be stored"):
        encode_numeric(Decimal(text))
