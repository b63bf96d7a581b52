"""A bounded memory of what was costly to make."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class SizedCache(Generic[K, V]):
    """Keeps the most recently used values whose sizes add up to the limit at most."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value, which counts as used now."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, size_bytes: int) -> None:
        """Keep it in the place of what was used longest ago; a value too large is not kept."""
        self.drop(key)
        if size_bytes > self._limit_bytes // 2:
            return
        self._entries[key] = (value, size_bytes)
        self._used_bytes += size_bytes
        while self._used_bytes > self._limit_bytes:
            _, (_, freed_bytes) = self._entries.popitem(last=False)
            self._used_bytes -= freed_bytes

    def drop(self, key: K) -> None:
        """Forget it."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._used_bytes -= entry[1]
