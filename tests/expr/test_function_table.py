"""What the table promises of every row, whatever the row is."""

import math
import re
from decimal import Decimal

import pytest

from evertide.expr.functions.aggregate import packing, shows_order
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import (
    AGGREGATE_FUNCTIONS,
    SCALAR_FUNCTIONS,
    by_signature,
    find_aggregate,
    find_scalar,
)
from evertide.vocab.datum import Datum, Interval, reduce_numeric
from evertide.vocab.errors import SqlError, UndefinedFunction
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType
from tests.expr.special_arguments import arguments_for

_INTS = (
    Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.UINT8, Kind.OID, Kind.REGCLASS,
    Kind.REGPROC, Kind.REGTYPE, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ,
    Kind.MZ_TIMESTAMP,
)  # fmt: skip
PYTHON_TYPES: dict[Kind, type] = {
    Kind.BOOL: bool,
    **dict.fromkeys(_INTS, int),
    **dict.fromkeys((Kind.FLOAT4, Kind.FLOAT8), float),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.CHAR, Kind.JSONB), str),
    **dict.fromkeys((Kind.BYTEA, Kind.UUID), bytes),
    Kind.NUMERIC: Decimal,
    Kind.INTERVAL: Interval,
    Kind.ARRAY: tuple,
    Kind.LIST: tuple,
    **dict.fromkeys(RANGE_BASES, tuple),
}


def is_datum_of(sql_type: SqlType, datum: Datum) -> bool:
    """Whether the value is what datum.py says a value of the type is."""
    if datum is None:
        return True
    if type(datum) is not PYTHON_TYPES[sql_type.kind]:
        return False
    if isinstance(datum, Decimal):
        reduced = reduce_numeric(datum)
        return datum.is_nan() or datum.as_tuple() == reduced.as_tuple()
    if isinstance(datum, tuple) and sql_type.element is not None:
        element = sql_type.element
        return all(is_datum_of(element, part) for part in datum)
    return True


FAMILIES = sorted({row.name for row in SCALAR_FUNCTIONS})


@pytest.mark.parametrize("name", FAMILIES)
def test_a_body_gives_a_datum_of_its_type_or_an_error_it_may_raise(name: str) -> None:
    for row in find_scalar(name):
        for arguments in arguments_for(row):
            if row.strict and None in arguments:
                continue
            try:
                result = row.body(*arguments)
            except SqlError:
                if not row.fallible:
                    raise
            else:
                assert is_datum_of(row.result, result), f"{row}{arguments!r} = {result!r}"


def test_the_same_arguments_give_the_same_result() -> None:
    for row in SCALAR_FUNCTIONS[::17]:
        for arguments in arguments_for(row):
            assert _outcome(row, arguments) == _outcome(row, arguments)


def _outcome(row: ScalarFunction, arguments: tuple[Datum, ...]) -> str:
    if row.strict and None in arguments:
        return "NULL"
    try:
        return repr(row.body(*arguments))
    except SqlError as error:
        return error.code


def test_a_row_is_found_again_by_its_signature() -> None:
    for row in SCALAR_FUNCTIONS:
        assert by_signature(row.signature) is row
    for aggregate in AGGREGATE_FUNCTIONS:
        assert by_signature(aggregate.signature) is aggregate


def test_an_unknown_signature_is_an_error() -> None:
    with pytest.raises(UndefinedFunction, match=r"function nothing\(\) does not exist"):
        by_signature("nothing()")


def test_lowerings_name_only_arguments_that_there_are() -> None:
    for row in SCALAR_FUNCTIONS:
        for template in filter(None, (row.spark, row.spark_error)):
            places = {int(place) for place in re.findall(r"\{(\d+)\}", template)}
            assert places <= set(range(len(row.arguments))), row.signature
            assert row.strict is False or len(places) == len(row.arguments), row.signature


def test_a_lowering_of_a_fallible_function_says_where_and_how_it_fails() -> None:
    for row in SCALAR_FUNCTIONS:
        if row.spark is not None and row.fallible:
            assert row.spark_error is not None, row.signature
            assert row.error is not None, row.signature
        if not row.fallible:
            assert row.spark_error is None, row.signature
        assert (row.error is None) == (row.spark_error is None), row.signature


def test_aggregates_say_how_they_end() -> None:
    for row in AGGREGATE_FUNCTIONS:
        assert row.finish or row.finish_rows or row.name == "count", row.signature


def test_aggregates_of_several_arguments_are_packed_into_one() -> None:
    for row in AGGREGATE_FUNCTIONS:
        pack = packing(row)
        assert (pack is not None) or len(row.arguments) <= 1, row.signature
        if pack is not None:
            assert pack.arguments == row.arguments
            assert by_signature(pack.signature) is pack


def test_only_aggregates_that_collect_show_the_order_asked_for() -> None:
    collecting = {"array_agg", "list_agg", "string_agg", "jsonb_agg", "jsonb_object_agg"}
    assert {row.name for row in AGGREGATE_FUNCTIONS if shows_order(row)} == collecting


def test_names_are_found() -> None:
    assert {row.arguments[0].kind for row in find_scalar("abs")} >= {Kind.INT4, Kind.NUMERIC}
    assert find_scalar("no such function") == ()
    assert {row.result.kind for row in find_aggregate("sum")} >= {Kind.INT8, Kind.FLOAT8}
    assert math.pi == by_signature("pi()").body()  # type: ignore[union-attr]
