"""Which keys of an index are wanted: stretches of encoded keys; pure.

Keys are those of persist/coding/keys.py: bytes that compare as SQL compares, column after column.
So an equality, a leading part of a key, a range and a list of any of these are all the same: some
stretches in the order of the keys.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

# Beyond every key that begins with what this is put behind: a column's key begins with 01 or 02.
_BEYOND: Final = b"\x03"
_VALUE: Final = b"\x01"
_NULL: Final = b"\x02"


class Span(NamedTuple):
    """Keys from `lower` on that come before `upper`."""

    lower: bytes
    upper: bytes

    @property
    def is_point(self) -> bool:
        """Whether all its keys begin with the same whole columns."""
        return self.upper == self.lower + _BEYOND


class Lookup(msgspec.Struct, frozen=True):
    """What an index is asked for. The spans are in order and do not meet.

    `exact`: each of them is one whole key. With more than `most` entries it is not answered.
    """

    spans: tuple[Span, ...]
    exact: bool
    most: int | None = None

    def contains(self, key: bytes) -> bool:
        """Whether an encoded key is among those wanted."""
        place = bisect_right(self.spans, (key, _BEYOND + key)) - 1
        return place >= 0 and self.spans[place].lower <= key < self.spans[place].upper


NOTHING: Final[tuple[Span, ...]] = ()
NULLS: Final = Span(_NULL, _NULL + _BEYOND)
VALUES: Final = Span(_VALUE, _NULL)


def point(key: bytes) -> Span:
    """All keys that begin with this one."""
    return Span(key, key + _BEYOND)


def comparison_spans(operator: str, key: bytes) -> tuple[Span, ...] | None:
    """Keys of one column that are not NULL and compare so with this one; None: no such operator.

    >>> comparison_spans("<=", b"k")
    (Span(lower=b'\\x01', upper=b'k\\x03'),)
    """
    match operator:
        case "=":
            return (point(key),)
        case "<":
            return (Span(VALUES.lower, key),)
        case "<=":
            return (Span(VALUES.lower, key + _BEYOND),)
        case ">":
            return (Span(key + _BEYOND, VALUES.upper),)
        case ">=":
            return (Span(key, VALUES.upper),)
        case _:
            return None


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in any order as spans in order that do not meet."""
    merged: list[Span] = []
    for span in sorted(span for span in spans if span.lower < span.upper):
        if merged and span.lower <= merged[-1].upper:
            merged[-1] = Span(merged[-1].lower, max(merged[-1].upper, span.upper))
        else:
            merged.append(span)
    return tuple(merged)


def intersection(one: Sequence[Span], other: Sequence[Span]) -> tuple[Span, ...]:
    """What is in both; each is in order."""
    found: list[Span] = []
    i = j = 0
    while i < len(one) and j < len(other):
        both = Span(max(one[i].lower, other[j].lower), min(one[i].upper, other[j].upper))
        if both.lower < both.upper:
            found.append(both)
        if one[i].upper < other[j].upper:
            i += 1
        else:
            j += 1
    return tuple(found)
