"""Looking many hashes up in sorted arrays of them."""

from typing import Final

import numpy as np

from evertide.expr.columnar.column import Ints

# Beyond this many needles searching them in order is faster than sorting them costs.
_SORT_NEEDLES: Final = 256


def in_search_order(needles: Ints) -> tuple[Ints, Ints | None]:
    """Needles as they are best looked for, and where each of them was; None: where it is."""
    if len(needles) <= _SORT_NEEDLES:
        return needles, None
    order = np.argsort(needles)
    return needles[order], order


def find(hashes: Ints, needles: Ints) -> tuple[Ints, Ints]:
    """Where the needles are: pairs (position among the needles, position among the hashes)."""
    if not len(hashes):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return _find(hashes, needles)


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
