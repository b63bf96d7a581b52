"""Whether arrays and lists hold values: by looking up, where going through would take long."""

from collections.abc import Callable, Hashable
from typing import Final

from evertide.expr.functions.comparison import sort_key
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import SqlType

Elements = tuple[Datum, ...]
# Longer arrays are looked up in, not gone through.
_LONG: Final = 16


def same_element(element: SqlType) -> Callable[[Datum, Datum], bool]:
    """SQL's equality, with NULL equal to NULL."""
    key = sort_key(element)

    def same(a: Datum, b: Datum) -> bool:
        if a is None or b is None:
            return a is None and b is None
        return a == b if key is None else key(a) == key(b)

    return same


class Members:
    """Answers about elements of one type, quickly for a long array that is asked again and again.

    Each value has a stand-in that Python finds equal where SQL does.
    """

    def __init__(self, element: SqlType) -> None:
        self._key = sort_key(element)
        self._same = same_element(element)
        # The array last asked, itself kept so that no other has its identity, and its members.
        self._last: tuple[Elements, frozenset[Hashable]] = ((), frozenset())

    def holds(self, wanted: Datum, elements: Elements | None) -> bool | None:
        """`x = ANY (array)`: NULL where only a NULL stands between it and false."""
        if not elements or wanted is None:
            return False if elements == () else None
        if len(elements) > _LONG:
            return self._looked_up(elements, wanted)
        same = self._same
        if any(candidate is not None and same(wanted, candidate) for candidate in elements):
            return True
        return None if None in elements else False

    def _looked_up(self, elements: Elements, wanted: Datum) -> bool | None:
        last, members = self._last
        if last is not elements:
            members = frozenset(map(self._stand_in, elements))
            self._last = (elements, members)
        if self._stand_in(wanted) in members:
            return True
        return None if None in members else False

    def holds_all(self, outer: Elements, inner: Elements) -> bool:
        """`outer @> inner`: every element is there; a NULL never is."""
        if None in inner:
            return False
        return not set(map(self._stand_in, inner)) - set(map(self._stand_in, outer))

    def overlap(self, left: Elements, right: Elements) -> bool:
        """`left && right`: some element is in both; a NULL never is."""
        both = set(map(self._stand_in, left)) & set(map(self._stand_in, right))
        return bool(both - {None})

    def _stand_in(self, datum: Datum) -> Hashable:
        return datum if self._key is None or datum is None else self._key(datum)
