"""Multisets whose first and last are known at once."""

from bisect import bisect_left, insort
from typing import Generic, TypeAlias, TypeVar

# Bytes in SQL's order, then representation: total, and different for different values.
TotalKey: TypeAlias = tuple[bytes, tuple[int, ...]]
V = TypeVar("V")


class OrderedCounts(Generic[V]):
    """Values by key, with multiplicities.

    Only those with a positive one are in `order`; a negative one is remembered.
    """

    __slots__ = ("_counts", "order")

    def __init__(self) -> None:
        self.order: list[TotalKey] = []
        self._counts: dict[TotalKey, tuple[V, int]] = {}

    def load(self, items: list[tuple[TotalKey, V, int]]) -> None:
        """Many at once, into an empty one."""
        self._counts = {key: (value, count) for key, value, count in items if count}
        self.order = sorted(key for key, (_, count) in self._counts.items() if count > 0)

    def change(self, key: TotalKey, value: V, diff: int) -> None:
        """More or fewer of one value."""
        old = self._counts[key][1] if key in self._counts else 0
        new = old + diff
        if new:
            self._counts[key] = (value, new)
        else:
            self._counts.pop(key, None)
        if old <= 0 < new:
            insort(self.order, key)
        elif new <= 0 < old:
            del self.order[bisect_left(self.order, key)]

    def get(self, key: TotalKey) -> tuple[V, int]:
        """The value with this key, and how often it is there."""
        return self._counts[key]

    def first_like(self, key: TotalKey) -> TotalKey:
        """The first key that is equal in SQL to this one, which is in `order`."""
        return self.order[bisect_left(self.order, (key[0], ()))]

    def __len__(self) -> int:
        return len(self._counts)
