"""Relations as bytes: what is read is what was written, representation and sharing included."""

from decimal import Decimal
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertide.expr.codec import decode_relation, decode_scalar, encode_relation, encode_scalar
from evertide.expr.functions.rows import find_table_functions
from evertide.expr.functions.table import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS, by_signature
from evertide.expr.relation import (
    AggregateCall,
    ArgumentOrder,
    FlatMap,
    Join,
    Reduce,
    Relation,
)
from evertide.expr.relation_walk import in_order_of_use
from evertide.expr.scalar import Call, Literal, Parameter, SessionCall
from evertide.expr.scalar_codec import UnreadablePlan, scalar_key
from evertide.vocab.datum import Datum, Interval
from evertide.vocab.errors import UndefinedFunction
from evertide.vocab.sql_type import (
    BYTEA,
    FLOAT8,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    Kind,
    SqlType,
    array_of,
)
from tests.expr import sample
from tests.expr.sample import call, col, lit, table
from tests.expr.trees import Trees

ARRAY = array_of(INT8)


@pytest.mark.parametrize("seed", range(100))
def test_a_relation_survives(seed: int) -> None:
    relation = Trees(Random(seed), correlated=True).relation(3)
    encoded = encode_relation(relation)
    decoded = decode_relation(encoded, sample.by_signature)
    assert encode_relation(decoded) == encoded
    assert decoded.types == relation.types


@pytest.mark.parametrize(
    ("sql_type", "value"),
    [
        (FLOAT8, -0.0),
        (FLOAT8, float("inf")),
        (NUMERIC, Decimal("1E+30")),
        (NUMERIC, Decimal("NaN")),
        (INTERVAL, Interval(1, -2, 3)),
        (BYTEA, b"\x00\xff"),
        (array_of(INTERVAL), (Interval(0, 1, 0), None)),
        (array_of(NUMERIC), ()),
        (SqlType(Kind.NUMERIC, precision=10, scale=2), Decimal("1.5")),
        (TEXT, None),
        (INT8, -(2**63)),
        (SqlType(Kind.UINT8), 2**64 - 1),
    ],
)
def test_a_literal_keeps_its_representation(sql_type: SqlType, value: Datum) -> None:
    literal = Literal(value, sql_type)
    decoded = decode_scalar(encode_scalar(literal), by_signature)
    assert repr(decoded) == repr(literal)


def test_keys_tell_apart_what_python_does_not() -> None:
    assert scalar_key(lit(0.0, FLOAT8)) != scalar_key(lit(-0.0, FLOAT8))
    assert scalar_key(lit(float("nan"), FLOAT8)) == scalar_key(lit(float("nan"), FLOAT8))


def test_every_row_of_the_function_table_is_found_again() -> None:
    for function in SCALAR_FUNCTIONS:
        columns = tuple(col(i, sql_type) for i, sql_type in enumerate(function.arguments))
        scalar = Call(function, columns, function.result)
        decoded = decode_scalar(encode_scalar(scalar), by_signature)
        assert isinstance(decoded, Call)
        assert decoded.function is function
    for aggregate in AGGREGATE_FUNCTIONS:
        assert by_signature(aggregate.signature) is aggregate


def test_what_is_bound_later_travels_too() -> None:
    for scalar in (Parameter(1, INT8), SessionCall("now", TEXT)):
        assert decode_scalar(encode_scalar(scalar), by_signature) == scalar


def test_a_table_function_and_an_ordered_aggregate_travel_too() -> None:
    (unnest,) = [row for row in find_table_functions("unnest") if row.arguments == (ARRAY,)]
    flat = FlatMap(table("t", ARRAY), unnest, (col(0, ARRAY),), ordinality=True)
    order = (ArgumentOrder(col(1), descending=True, nulls_first=True), ArgumentOrder(col(2)))
    call_ = AggregateCall(sample.STRING_AGG, col(0, TEXT), order=order)
    for relation in (flat, Reduce(flat, (), (call_,))):
        encoded = encode_relation(relation)
        decoded = decode_relation(encoded, sample.by_signature)
        assert decoded == relation


def test_shared_subtrees_stay_shared() -> None:
    """Were they written out, this tree would be a million nodes."""
    relation: Relation = table("t", INT8)
    for _ in range(20):
        relation = Join((relation, relation), ())
    encoded = encode_relation(relation)
    assert len(encoded) < 1_000
    assert len(in_order_of_use(decode_relation(encoded, by_signature))) == 21


@given(st.binary(max_size=40))
def test_garbage_is_refused(encoded: bytes) -> None:
    with pytest.raises((UnreadablePlan, IndexError, ValueError)):
        decode_relation(encoded, by_signature)


@pytest.mark.parametrize(
    "plain",
    [["no such"], ["call", 1, [], "int8"], ["literal", [1], "int8"], ["column", "x", "int8"], 3],
)
def test_a_damaged_scalar_is_refused(plain: object) -> None:
    with pytest.raises(UnreadablePlan):
        decode_scalar(msgspec.msgpack.encode(plain), by_signature)


def test_an_unknown_function_is_refused() -> None:
    encoded = encode_scalar(call(sample.MODULO, lit(1), lit(2)))
    with pytest.raises(UndefinedFunction):
        decode_scalar(encoded.replace(b"%", b"?"), by_signature)
