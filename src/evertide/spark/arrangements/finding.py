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
    starts = starts[hits]
    counts = hashes.searchsorted(needles[hits], "right") - starts
    ends = counts.cumsum()
    places = np.arange(ends[-1]) + (starts - ends + counts).repeat(counts)
    return hits.repeat(counts), places


def stretch(places: Ints) -> slice | None:
    """Places that follow one another, as those of one key do: they need not be gathered."""
    first, last = int(places[0]), int(places[-1])
    if last - first + 1 != len(places) or (len(places) > 2 and (np.diff(places) != 1).any()):
        return None
    return slice(first, last + 1)
