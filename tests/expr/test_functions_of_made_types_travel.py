"""A plan goes to replicas with its functions' signatures: each is found again by that alone."""

from collections.abc import Iterator
from itertools import chain

import pytest

from evertide.expr.codec import decode_relation, encode_relation
from evertide.expr.functions import made
from evertide.expr.functions.aggregate import packing
from evertide.expr.functions.cast import find_cast
from evertide.expr.functions.in_order import in_order, made_of, place_of, placed
from evertide.expr.functions.made_aggregate import made_aggregates, made_table_functions
from evertide.expr.functions.row import Accumulator, AggregateFunction
from evertide.expr.functions.rows import TABLE_FUNCTION_ROWS, table_function_by_signature
from evertide.expr.functions.table import AGGREGATE_FUNCTIONS, by_signature
from evertide.expr.functions.type_groups import EVERY_TYPE
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.sql_type import (
    DATE,
    INT4,
    NUMERIC,
    TEXT,
    Kind,
    SqlType,
    array_of,
    list_of,
    map_of,
)
from tests.sql.database import new_database

AGGREGATES = ("list_agg", "array_agg", "count", "min", "max")


def containers(held: SqlType) -> list[SqlType]:
    once = [list_of(held), map_of(held)]
    twice = [around(inner) for inner in once for around in (list_of, map_of)]
    if held.element is not None:
        return [*once, *twice]
    array = array_of(held)
    nested = [array_of(array), array_of(array_of(array))]
    return [*once, *twice, list_of(array), map_of(array), *nested]


def aggregates_of(held: SqlType) -> Iterator[AggregateFunction]:
    for name in AGGREGATES:
        yield from made_aggregates(name, (held,))
    yield from made_aggregates("map_agg", (TEXT, held))


@pytest.mark.parametrize("held", EVERY_TYPE, ids=str)
def test_every_function_of_what_holds_a_type(held: SqlType) -> None:
    for container in containers(held):
        assert made.type_of_text(str(container)) == container
        rows = made.rows_of(container).values() if made.is_made(container) else ()
        for function in chain.from_iterable(rows):
            assert by_signature(function.signature) is function
        for table_function in made_table_functions("unnest", (container,)):
            assert table_function_by_signature(table_function.signature) is table_function


@pytest.mark.parametrize("held", EVERY_TYPE, ids=str)
def test_every_aggregate_and_what_packs_its_arguments(held: SqlType) -> None:
    found = [row for sql_type in (held, *containers(held)) for row in aggregates_of(sql_type)]
    # Arrays are collected into arrays of a dimension more, other types by the table's own rows.
    has_arrays = any(Kind.ARRAY is t.kind for t in (held, *containers(held)))
    absent = set() if has_arrays else {"array_agg"}
    assert {row.name for row in found} == {*AGGREGATES, "map_agg"} - absent
    for aggregate in found:
        assert by_signature(aggregate.signature) is aggregate
        pack = packing(aggregate)
        if pack is not None:
            assert by_signature(pack.signature) is pack


def test_every_aggregate_of_the_table_and_what_packs_its_arguments() -> None:
    for aggregate in AGGREGATE_FUNCTIONS:
        pack = packing(aggregate)
        assert pack is None or by_signature(pack.signature) is pack
    for function in TABLE_FUNCTION_ROWS:
        assert table_function_by_signature(function.signature) is function


@pytest.mark.parametrize("held", EVERY_TYPE, ids=str)
def test_every_place_of_an_argument(held: SqlType) -> None:
    for sql_type in (held, *containers(held)):
        for function in (place_of(sql_type), placed(sql_type)):
            assert by_signature(function.signature) is function


def test_every_aggregate_that_is_asked_for_an_order() -> None:
    made_ones = [row for held in (INT4, array_of(TEXT)) for row in aggregates_of(held)]
    found = [row for row in (*AGGREGATE_FUNCTIONS, *made_ones) if row.finish_rows is not None]
    assert {row.accumulator for row in found} == {Accumulator.ROWS}
    for aggregate in found:
        pack = packing(aggregate)
        argument = aggregate.arguments[0] if pack is None else pack.result
        for distinct in (False, True):
            ordered = in_order(aggregate, argument, distinct=distinct)
            assert by_signature(ordered.signature) is ordered
            assert made_of(ordered) == (aggregate, distinct)


def test_every_step_of_every_cast() -> None:
    made_types = [held for sql_type in (INT4, TEXT, NUMERIC) for held in containers(sql_type)]
    types = [*EVERY_TYPE, *made_types]
    casts = [find_cast(source, target) for source in types for target in types]
    steps = [step.function for cast in casts if cast is not None for step in cast.steps]
    assert len(steps) > len(types)
    for function in steps:
        assert by_signature(function.signature) is function


@pytest.mark.parametrize("held", [INT4, DATE, list_of(INT4), map_of(TEXT), array_of(TEXT)], ids=str)
@pytest.mark.parametrize("aggregate", ["map_agg(k, v)", "list_agg(v)", "max(v)", "count(v)"])
def test_an_aggregate_in_a_plan(held: SqlType, aggregate: str) -> None:
    database = new_database()
    database.run(f"CREATE TABLE held (k text, v {held})")
    plan = database.plan(f"SELECT {aggregate} FROM held")
    assert isinstance(plan, SelectPlan)
    relation = optimize(plan.relation)
    assert decode_relation(encode_relation(relation), by_signature) == relation
