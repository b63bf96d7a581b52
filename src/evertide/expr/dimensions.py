"""Arrays of several dimensions: arrays of arrays that are all of one length.

How many dimensions an array has is part of its type, and an empty one has none of its own: all
arrays without elements of one type are the same value.
"""

from collections.abc import Iterator
from typing import Final

from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import Kind, SqlType, array_of

Elements = tuple[Datum, ...]
MOST_DIMENSIONS: Final = 6


def is_nested(sql_type: SqlType) -> bool:
    """Whether it is the type of arrays of several dimensions."""
    return sql_type.kind is Kind.ARRAY and dimension_count(sql_type) > 1


def dimension_count(sql_type: SqlType) -> int:
    """How many dimensions the type's arrays have; 0: it is no array.

    >>> dimension_count(array_of(array_of(SqlType(Kind.INT4))))
    2
    """
    count = 0
    while sql_type.kind is Kind.ARRAY and sql_type.element is not None:
        count, sql_type = count + 1, sql_type.element
    return count


def base_of(sql_type: SqlType) -> SqlType:
    """What the elements are in the innermost dimension."""
    while sql_type.kind is Kind.ARRAY and sql_type.element is not None:
        sql_type = sql_type.element
    return sql_type


def with_dimensions(sql_type: SqlType, count: int) -> SqlType:
    """The type of arrays of so many dimensions, of the same elements."""
    found = base_of(sql_type)
    for _ in range(count):
        found = array_of(found)
    return found


def lengths_of(array: Elements, dimensions: int) -> tuple[int, ...]:
    """How long the array is in each dimension; an empty array has none."""
    lengths: list[int] = []
    part: Datum = array
    for _ in range(dimensions):
        if not isinstance(part, tuple) or not part:
            return ()
        lengths.append(len(part))
        part = part[0]
    return tuple(lengths)


def flat(array: Elements, dimensions: int) -> Iterator[Datum]:
    """The innermost elements in their order."""
    if dimensions == 1:
        yield from array
        return
    for part in array:
        assert isinstance(part, tuple), "arrays of several dimensions hold arrays"
        yield from flat(part, dimensions - 1)


def regular(array: Elements, dimensions: int) -> Elements | None:
    """The array, if all within it that are in one dimension are of one length; else None."""
    if dimensions == 1 or not array:
        return array
    first = array[0]
    if not isinstance(first, tuple):
        return None
    wanted = lengths_of(first, dimensions - 1)
    for part in array:
        if not isinstance(part, tuple) or lengths_of(part, dimensions - 1) != wanted:
            return None
    return array if wanted else ()


def nested(elements: list[Datum], lengths: tuple[int, ...]) -> Elements:
    """The array of these lengths with these innermost elements."""
    for length in reversed(lengths[1:]):
        elements = [
            tuple(elements[start : start + length]) for start in range(0, len(elements), length)
        ]
    return tuple(elements)
