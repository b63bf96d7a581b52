"""Large groups, kept ready: so that a change of one row does not cost a look at all of them.

What is cached follows from the arrangement below it and may be forgotten at any time. A group is
changed in place while a tick is computed; if the tick is aborted, it is forgotten.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from evertide.expr.columnar.batch import Entry
from evertide.spark.arrangements.arrangement import Arrangement

# Smaller groups are read again each time.
LEAST_ROWS: Final = 64
# Rows of all groups that one node may keep ready.
MOST_ROWS: Final = 500_000


class Sized(Protocol):
    """A group that knows how many different rows it has."""

    @property
    def size(self) -> int: ...


G = TypeVar("G", bound=Sized)


class GroupCache(Generic[G]):
    """The groups used last, up to a number of rows."""

    def __init__(self) -> None:
        self._groups: OrderedDict[bytes, tuple[G, int]] = OrderedDict()
        self._rows = 0

    def __contains__(self, key: bytes) -> bool:
        return key in self._groups

    @property
    def keys(self) -> list[bytes]:
        """Of the groups that are kept."""
        return list(self._groups)

    def take(self, key: bytes) -> G | None:
        """The group, which is then the caller's: to be put back, or forgotten."""
        known = self._groups.pop(key, None)
        if known is None:
            return None
        self._rows -= known[1]
        return known[0]

    def take_or_make(
        self,
        keys: Sequence[bytes],
        kept: Arrangement,
        make: Callable[[Sequence[Entry]], G],
    ) -> dict[bytes, G]:
        """These groups, the caller's as with `take`; those not ready are made of their rows."""
        ready = {key: group for key in keys if (group := self.take(key)) is not None}
        missing = [key for key in keys if key not in ready]
        found = kept.probe(missing)
        return ready | {key: make(found.get(key, ())) for key in missing}

    def put(self, key: bytes, group: G) -> None:
        """Keep the group if it is large."""
        if not LEAST_ROWS <= group.size <= MOST_ROWS:
            return
        self._groups[key] = (group, group.size)
        self._rows += group.size
        while self._rows > MOST_ROWS:
            _, (_, size) = self._groups.popitem(last=False)
            self._rows -= size
