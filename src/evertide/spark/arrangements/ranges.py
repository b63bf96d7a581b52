"""What is too large for one run is several that follow each other by hash: a level.

Levels are merged range by range, so that the memory it takes does not grow with them.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from evertide.expr.columnar.column import Ints, from_arrow
from evertide.expr.columnar.hashes import hash_keys
from evertide.expr.relation import Types
from evertide.persist.coding.encoding import one_chunk
from evertide.spark.arrangements.runs import Run

# Rows that are hashed at once: what that takes must not grow with the table.
_HASHED_ROWS: Final = 100_000


def levels_of(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Runs in the order they have, those together that merging would not make less of.

    These are pieces of one merge, also where one hash goes on in the next piece. Of others it is
    so if they follow each other by hash, and only if they have none in common: without a key all
    have one hash, and are merged like any others.
    """
    levels: list[tuple[Run, ...]] = []
    for run in runs:
        if levels and _follows(levels[-1][-1], run):
            levels[-1] = (*levels[-1], run)
        else:
            levels.append((run,))
    return levels


def _follows(before: Run, run: Run) -> bool:
    return before.origin == run.origin or bool(before.hashes[-1] < run.hashes[0])


def in_ranges(
    types: Types, tables: Sequence[pa.Table], most_bytes: int
) -> Iterator[list[pa.Table]]:
    """Sorted tables cut at the same hashes, range by range, so that each is at most so large.

    Entries of one hash cannot be told apart by it: if they alone are larger, they are cut by what
    else is in them.
    """
    tables = [table for table in tables if table.num_rows]
    if sum(table.nbytes for table in tables) <= most_bytes:
        if tables:
            yield tables
        return
    hashes = [_hashes(table) for table in tables]
    least, most = min(h[0] for h in hashes), max(h[-1] for h in hashes)
    if least == most:
        yield from _of_one_hash(types, tables, most_bytes)
        return
    bound = _bound(hashes[int(np.argmax([table.nbytes for table in tables]))], least)
    places = [int(h.searchsorted(bound)) for h in hashes]
    before = [table.slice(0, at) for table, at in zip(tables, places, strict=True)]
    yield from in_ranges(types, before, most_bytes)
    after = [table.slice(at) for table, at in zip(tables, places, strict=True)]
    yield from in_ranges(types, after, most_bytes)


def _of_one_hash(
    types: Types, tables: Sequence[pa.Table], most_bytes: int
) -> Iterator[list[pa.Table]]:
    """Cut by a hash of whole rows: those that are identical come together all the same.

    If a single row has more entries than that, they come table by table, one after the other.
    """
    hashes = [_row_hashes(types, table) for table in tables]
    ordered = np.sort(np.concatenate(hashes))
    if ordered[0] == ordered[-1]:
        yield from ([table] for table in tables)
        return
    # A little smaller than they may be: one that is too large after all is cut again.
    pieces = sum(table.nbytes for table in tables) * 5 // (4 * most_bytes) + 1
    cuts = ordered[len(ordered) * np.arange(1, pieces) // pieces]
    bounds = np.unique(np.maximum(cuts, ordered[0] + 1))
    where = [bounds.searchsorted(each, "right") for each in hashes]
    for number in range(len(bounds) + 1):
        yield from in_ranges(
            types,
            [
                table.take(pa.array(np.flatnonzero(at == number)))
                for table, at in zip(tables, where, strict=True)
            ],
            most_bytes,
        )


def _row_hashes(types: Types, table: pa.Table) -> Ints:
    hashes: list[Ints] = []
    for start in range(0, table.num_rows, _HASHED_ROWS):
        piece = table.slice(start, _HASHED_ROWS)
        arrays = [one_chunk(column) for column in piece.columns[1:-2]]
        columns = [from_arrow(t, array) for t, array in zip(types, arrays, strict=True)]
        hashes.append(hash_keys(types, columns, piece.num_rows))
    return np.concatenate(hashes)


def _bound(largest: Ints, least: np.int64) -> np.int64:
    """Where to cut, so that something is left on either side, given that not all are `least`."""
    middle = largest[len(largest) // 2]
    return np.int64(least + 1) if middle == least else np.int64(middle)


def _hashes(table: pa.Table) -> Ints:
    hashes: Ints = table.column("h").to_numpy()
    return hashes
