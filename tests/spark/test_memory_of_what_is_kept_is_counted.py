"""Goal: what arrangements keep in memory is counted, or refused, however it got there."""

from evertide.spark.arrangements.layer import Layer
from evertide.spark.arrangements.recent import MOST_BYTES, Recent
from evertide.vocab.sql_type import INT8, TEXT, Kind, SqlType


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


def test_long_elements_of_lists_are_not_remembered() -> None:
    recent = Recent((INT8, SqlType(Kind.LIST, element=TEXT)))
    recent.remember([b"k"], {b"k": [((1, ("x" * (MOST_BYTES + 1),)), 1, 1)]})
    recent.remember([b"l"], {b"l": [((1, ("x", "y")), 1, 1)]})
    assert list(recent.found) == [b"l"]
