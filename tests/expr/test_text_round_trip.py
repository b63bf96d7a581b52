"""What is written is read back as the same datum, for every type."""

from decimal import Decimal
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.expr.civil import civil_from_days, days_from_civil
from evertide.expr.datetime_text import MAX_DATE_DAYS, MAX_TIMESTAMP, MIN_DAYS, MIN_TIMESTAMP
from evertide.expr.float_text import to_float4
from evertide.expr.json_value import Json, dump_json, load_json
from evertide.expr.range_text import make_range
from evertide.expr.text_input import parse_text
from evertide.expr.text_output import format_text
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
from evertide.vocab.errors import NumericOutOfRange, SqlError
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
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
    array_of,
    list_of,
    map_of,
)

Typed: TypeAlias = "st.SearchStrategy[tuple[SqlType, Datum]]"

characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
texts = st.text(characters, max_size=20)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


def _fits_float4(value: float) -> bool:
    try:
        to_float4(value)
    except NumericOutOfRange:
        return False
    return True


numbers = st.decimals(-(10**38), 10**38, allow_nan=False, places=1).map(reduce_numeric)
numerics = st.one_of(
    numbers,
    st.decimals(-1, 1, allow_nan=False, places=39).map(reduce_numeric),
    st.sampled_from([Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")]),
)
timestamps = st.one_of(
    st.integers(MIN_TIMESTAMP, MAX_TIMESTAMP), st.sampled_from([TS_INFINITY, TS_MINUS_INFINITY])
)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.one_of(st.none(), st.booleans(), texts, numbers),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=10,
)

DATUMS: dict[SqlType, st.SearchStrategy[Datum]] = {
    BOOL: st.booleans(),
    INT2: st.integers(-(2**15), 2**15 - 1),
    INT4: int32,
    INT8: int64,
    OID: st.integers(0, 2**32 - 1),
    SqlType(Kind.UINT8): st.integers(0, 2**64 - 1),
    FLOAT8: st.floats(),
    FLOAT4: st.floats(width=32).filter(_fits_float4),
    NUMERIC: numerics,
    TEXT: texts,
    BYTEA: st.binary(max_size=20),
    DATE: st.one_of(
        st.integers(MIN_DAYS, MAX_DATE_DAYS), st.sampled_from([DATE_INFINITY, DATE_MINUS_INFINITY])
    ),
    TIME: st.integers(0, 86_400_000_000),
    TIMESTAMP: timestamps,
    TIMESTAMPTZ: timestamps,
    INTERVAL: st.builds(Interval, int32, int32, int64),
    UUID: st.binary(min_size=16, max_size=16),
    JSONB: json_values.map(dump_json),
}
TYPED = st.sampled_from(list(DATUMS)).flatmap(
    lambda sql_type: st.tuples(st.just(sql_type), DATUMS[sql_type])
)
TYPED_ARRAYS = st.sampled_from(list(DATUMS)).flatmap(
    lambda element: st.tuples(
        st.sampled_from([array_of(element), SqlType(Kind.LIST, element=element)]),
        st.lists(st.one_of(st.none(), DATUMS[element]), max_size=4).map(tuple),
    )
)


@settings(max_examples=1500, deadline=None)
@given(TYPED)
def test_a_datum_survives_its_text(typed: tuple[SqlType, Datum]) -> None:
    sql_type, datum = typed
    text = format_text(sql_type, datum)
    assert repr(parse_text(sql_type, text)) == repr(datum)
    assert format_text(sql_type, parse_text(sql_type, text)) == text


# What means something to those who read lists, maps and ranges; others mean nothing to them.
marks = st.lists(
    st.one_of(
        st.sampled_from(
            ['"', "\\", "{", "}", ",", "=", "=>", ">", " ", "\t", "\xa0", "[", "(", "a"]
        ),
        st.sampled_from(["NULL", "null", "empty", "é", "\x1c", "\u2028"]),
    ),
    max_size=4,
).map("".join)
spans = st.tuples(
    st.one_of(st.none(), st.integers(-(2**31), 0)), st.one_of(st.none(), st.integers(1, 2**31 - 1))
).map(lambda ends: (*ends, ends[0] is not None, False))
number_spans = st.tuples(numbers, numbers, st.booleans(), st.booleans()).map(
    lambda parts: make_range(
        NUMERIC, min(parts[:2]), max(parts[:2]), "(["[parts[2]] + ")]"[parts[3]]
    )
)
HELD: dict[SqlType, st.SearchStrategy[Datum]] = {
    **DATUMS,
    TEXT: st.one_of(marks, texts),
    SqlType(Kind.INT4RANGE): st.one_of(st.just(EMPTY_RANGE), spans),
    SqlType(Kind.NUMRANGE): st.one_of(st.just(EMPTY_RANGE), number_spans),
}


def _held(sql_type: SqlType, strategy: st.SearchStrategy[Datum], depth: int) -> Typed:
    """Values of this type, or lists and maps of them, and of these again."""
    optional = st.one_of(st.none(), strategy)
    lists = st.lists(optional, max_size=3).map(tuple)
    maps = st.dictionaries(HELD[TEXT], optional, max_size=3).map(lambda m: tuple(sorted(m.items())))
    kinds: list[tuple[SqlType, st.SearchStrategy[Datum]]] = [
        (list_of(sql_type), lists), (map_of(sql_type), maps),
    ]  # fmt: skip
    pairs = [st.tuples(st.just(held), found) for held, found in kinds]
    deeper = [] if not depth else [_held(held, found, depth - 1) for held, found in kinds]
    return st.one_of(st.tuples(st.just(sql_type), strategy), *pairs, *deeper)


TYPED_HELD = st.sampled_from(list(HELD)).flatmap(lambda one: _held(one, HELD[one], 1))


@settings(max_examples=1500, deadline=None)
@given(TYPED_HELD)
def test_lists_maps_and_ranges_survive_their_text(typed: tuple[SqlType, Datum]) -> None:
    sql_type, datum = typed
    assert repr(parse_text(sql_type, format_text(sql_type, datum))) == repr(datum)


@settings(max_examples=500, deadline=None)
@given(TYPED_ARRAYS)
def test_an_array_survives_its_text(typed: tuple[SqlType, tuple[Datum, ...]]) -> None:
    sql_type, datums = typed
    assert repr(parse_text(sql_type, format_text(sql_type, datums))) == repr(datums)


SHARDS = [
    "1", "9" * 5000, "-", "+", ".", ":", " ", "e", "E400", "0x", "_", "P", "T", "Y", "day", "mon",
    "hours", "ago", "BC", "infinity", "2024-02-29", "10:11:12", "Z", "UTC", "America/", "{", "}",
    "[", "]", '"', ",", "\\", "\\x", "null", "true", "=>", "٣", "²", "\u2028", "😀", "ß", "nan",
]  # fmt: skip
EVERY_TYPE = [*DATUMS, array_of(INT4), array_of(TEXT), SqlType(Kind.LIST, element=DATE)]
EVERY_TYPE += [SqlType(Kind.MAP, element=INT4), SqlType(Kind.MZ_TIMESTAMP)]


@settings(max_examples=3000, deadline=None)
@given(st.sampled_from(EVERY_TYPE), st.lists(st.sampled_from(SHARDS), max_size=8).map("".join))
def test_every_text_is_a_value_or_an_sql_error(sql_type: SqlType, text: str) -> None:
    try:
        datum = parse_text(sql_type, text)
    except SqlError:
        return
    format_text(sql_type, datum)


@given(json_values)
def test_json_has_one_text(value: Json) -> None:
    text = dump_json(value)
    assert dump_json(load_json(text)) == text


@given(st.integers(MIN_DAYS, MAX_DATE_DAYS))
def test_days_and_dates_are_one_to_one(days: int) -> None:
    assert days_from_civil(*civil_from_days(days)) == days
