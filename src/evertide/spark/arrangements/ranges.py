"""What is too large for one run is several that follow each other by hash: a level.

Levels are merged range by range, so that the memory it takes does not grow with them.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from evertide.expr.columnar.column import Ints
from evertide.spark.arrangements.runs import Run


def levels_of(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Runs in the order they have, those together that follow each other by hash.

    That is so for pieces of one merge. Of others it may be so by chance, which does no harm.
    """
    levels: list[tuple[Run, ...]] = []
    for run in runs:
        if levels and levels[-1][-1].hashes[-1] <= run.hashes[0]:
            levels[-1] = (*levels[-1], run)
        else:
            levels.append((run,))
    return levels


def in_ranges(tables: Sequence[pa.Table], most_bytes: int) -> Iterator[list[pa.Table]]:
    """Sorted tables cut at the same hashes, range by range, so that each is at most so large.

    Entries of one hash cannot be told apart by it: if they alone are larger, they come table by
    table, one after the other.
    """
    tables = [table for table in tables if table.num_rows]
    if sum(table.nbytes for table in tables) <= most_bytes:
        if tables:
            yield tables
        return
    hashes = [_hashes(table) for table in tables]
    least, most = min(h[0] for h in hashes), max(h[-1] for h in hashes)
    if least == most:
        yield from ([table] for table in tables)
        return
    bound = _bound(hashes[int(np.argmax([table.nbytes for table in tables]))], least)
    places = [int(h.searchsorted(bound)) for h in hashes]
    before = [table.slice(0, at) for table, at in zip(tables, places, strict=True)]
    yield from in_ranges(before, most_bytes)
    after = [table.slice(at) for table, at in zip(tables, places, strict=True)]
    yield from in_ranges(after, most_bytes)


def _bound(largest: Ints, least: np.int64) -> np.int64:
    """Where to cut, so that something is left on either side, given that not all are `least`."""
    middle = largest[len(largest) // 2]
    return np.int64(least + 1) if middle == least else np.int64(middle)


def _hashes(table: pa.Table) -> Ints:
    hashes: Ints = table.column("h").to_numpy()
    return hashes
