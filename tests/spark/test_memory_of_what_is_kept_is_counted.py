"""Goal: what arrangements keep in memory is counted, or refused, however it got there."""

import pytest

from evertide.spark.arrangements.layer import ENTRY_BYTES, Layer
from evertide.spark.arrangements.recent import MOST_BYTES, Recent
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import INT8, TEXT, Kind, SqlType, array_of


def test_rows_that_grow_in_place_are_counted() -> None:
    layer = Layer((TEXT,))
    for group in range(64):
        layer.insert({bytes([group]): [(("small",), 1, 1)]}, 0)
    before = layer.memory_bytes
    for group in range(64):
        (last,) = layer.groups[bytes([group])]
        layer.insert({bytes([group]): [(last[0], 1, -1), (("x" * 100_000,), 1, 1)]}, 0)
    assert layer.records == 64
    assert layer.memory_bytes >= before + 64 * 100_000 - 64 * len("small")


@pytest.mark.parametrize(
    ("sql_type", "datum", "least"),
    [
        (array_of(TEXT), ("x" * 50_000, None, "y" * 50_000), 100_000),
        (SqlType(Kind.LIST, element=array_of(TEXT)), (("x" * 100_000,),), 100_000),
        (SqlType(Kind.MAP, element=TEXT), (("key", "x" * 100_000),), 100_000),
        (array_of(TEXT), ("x" * 100,) * 10_000, 1_000_000),
        (array_of(INT8), tuple(range(10_000)), 10_000 * 32),
    ],
    ids=["array", "list of arrays", "map", "long array", "array of numbers"],
)
def test_what_arrays_and_the_like_hold_is_counted(
    sql_type: SqlType, datum: Datum, least: int
) -> None:
    layer = Layer((sql_type,))
    for group in range(64):
        layer.insert({bytes([group]): [((datum,), 1, 1)]}, 0)
    assert layer.memory_bytes >= 64 * (ENTRY_BYTES + least)


def test_long_elements_of_lists_are_not_remembered() -> None:
    recent = Recent((INT8, SqlType(Kind.LIST, element=TEXT)))
    recent.remember([b"k"], {b"k": [((1, ("x" * (MOST_BYTES + 1),)), 1, 1)]})
    recent.remember([b"l"], {b"l": [((1, ("x", "y")), 1, 1)]})
    assert list(recent.found) == [b"l"]
