"""Looking many hashes up in sorted arrays of them.

A binary search reads some twenty places far apart, each of which must be waited for. Hashes are
spread evenly, so their first bits tell nearly where each of them is: a directory of where those
begin leaves a handful of neighbours to look at, for all needles at once.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evertide.expr.columnar.column import Ints

# Beyond this many needles searching them in order is faster than sorting them costs.
_SORT_NEEDLES: Final = 256
# Fewer hashes than this are as quickly searched without a directory.
LEAST_LISTED: Final = 16_384
# For so few needles its calls cost more than it spares; of so many, neighbours are searched anyway.
_FEW_NEEDLES: Final = 12
_MANY_NEEDLES: Final = 4_096
# Keys that are there so often on average are better searched for than gone through.
_MOST_NEIGHBOURS: Final = 64
# Entries per bucket of a directory, on average: it takes up to a byte for each entry.
_BUCKET_ENTRIES: Final = 4
_HASH_BITS: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class Directory:
    """Sorted hashes by their first bits: `starts` is where each bucket begins, and where all end.

    A hash shifted by `shift` is the number of its bucket, from -`half` on.
    """

    starts: npt.NDArray[np.int32]
    shift: int
    half: int

    @classmethod
    def of(cls, hashes: Ints) -> "Directory | None":
        """None: there are too few to need one."""
        if len(hashes) < LEAST_LISTED:
            return None
        bits = (len(hashes) // _BUCKET_ENTRIES).bit_length() - 1
        shift, half = _HASH_BITS - bits, 1 << (bits - 1)
        least = np.arange(-half, half, dtype=np.int64) << shift
        starts = np.append(hashes.searchsorted(least), len(hashes))
        return cls(starts.astype(np.int32), shift, half)

    def find(self, hashes: Ints, needles: Ints) -> tuple[Ints, Ints] | None:
        """As `find` gives it; None if too many neighbours would have to be looked at."""
        buckets = (needles >> self.shift) + self.half
        begins = self.starts[buckets]
        sizes = self.starts[buckets + 1] - begins
        ends = sizes.cumsum()
        if ends[-1] > _MOST_NEIGHBOURS * len(needles):
            return None
        places = np.arange(ends[-1]) + (begins + sizes - ends).repeat(sizes)
        positions = np.arange(len(needles)).repeat(sizes)
        hits = np.flatnonzero(hashes[places] == needles[positions])
        return positions[hits], places[hits]


def is_ascending(hashes: Ints) -> bool:
    """Whether they are sorted. To see that takes a fraction of sorting them again."""
    return bool((hashes[1:] >= hashes[:-1]).all())


def is_each(places: Ints, count: int) -> bool:
    """Whether these are all places below `count` in their order: then nothing need be taken."""
    return len(places) == count and bool((places == np.arange(count)).all())


def in_search_order(needles: Ints) -> tuple[Ints, Ints | None]:
    """Needles as they are best looked for, and where each of them was; None: where it is."""
    if len(needles) <= _SORT_NEEDLES or is_ascending(needles):
        return needles, None
    order = np.argsort(needles)
    return needles[order], order


def find(hashes: Ints, needles: Ints, directory: Directory | None = None) -> tuple[Ints, Ints]:
    """Where the needles are: pairs (position among the needles, position among the hashes)."""
    if not len(hashes):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if directory is not None and _FEW_NEEDLES < len(needles) <= _MANY_NEEDLES:
        found = directory.find(hashes, needles)
        if found is not None:
            return found
    return _find_one(hashes, needles) if len(needles) == 1 else _find(hashes, needles)


def _find_one(hashes: Ints, needles: Ints) -> tuple[Ints, Ints]:
    """Of one needle, as in most ticks of one row, with a third of the calls."""
    start = int(hashes.searchsorted(needles[0]))
    if start == len(hashes) or hashes[start] != needles[0]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    end = start + 1
    if end < len(hashes) and hashes[end] == needles[0]:
        end = int(hashes.searchsorted(needles[0], "right"))
    return np.zeros(end - start, np.int64), np.arange(start, end)


def _find(hashes: Ints, needles: Ints) -> tuple[Ints, Ints]:
    starts = hashes.searchsorted(needles)
    hits = np.flatnonzero(hashes[np.minimum(starts, len(hashes) - 1)] == needles)
    if not len(hits):
        return hits, hits
    starts, found = starts[hits], needles[hits]
    # Mostly a hash is there once: the search for where it ends is spared.
    several = np.flatnonzero(hashes[np.minimum(starts + 1, len(hashes) - 1)] == found)
    several = several[starts[several] < len(hashes) - 1]
    if not len(several):
        return hits, starts
    counts = np.ones(len(hits), np.int64)
    counts[several] = hashes.searchsorted(found[several], "right") - starts[several]
    ends = counts.cumsum()
    places = np.arange(ends[-1]) + (starts - ends + counts).repeat(counts)
    return hits.repeat(counts), places
