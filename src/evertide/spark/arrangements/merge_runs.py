"""Several sorted tables become one; identical entries are added up, and history is forgotten.

Everything here is done by columns, in numpy and Arrow, which let go of the interpreter while they
work: merges run beside ticks. It is proportional to the tables' sizes, except for adding up, which
looks only at keys that can have changed: those in several tables, and those whose times now meet.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evertide.expr.columnar.codes import arrow_codes
from evertide.expr.columnar.column import Ints
from evertide.persist.coding.encoding import one_chunk


def merge_tables(tables: Sequence[pa.Table], since: int) -> pa.Table:
    """All entries, sorted by hash, with times before `since` advanced to it."""
    tables = [table for table in tables if table.num_rows]
    if not tables:
        return pa.table({})
    if len(tables) == 1 and (alone := _of_one_time(tables[0], since)) is not None:
        return alone
    whole = pa.concat_tables(tables).combine_chunks()
    hashes, old_times, diffs = (_ints(whole, name) for name in ("h", "t", "d"))
    times = np.maximum(old_times, since)
    order = np.argsort(hashes, kind="stable")
    origins = np.arange(len(tables)).repeat([table.num_rows for table in tables])
    touched = _touched(hashes[order], origins[order], old_times[order])
    kept, summed = _add_up(whole, hashes, times, diffs, order[touched])
    places = np.concatenate([order[~touched], kept])
    new_diffs = np.concatenate([diffs[order[~touched]], summed])
    sorted_places = np.argsort(hashes[places], kind="stable")
    places, new_diffs = places[sorted_places], new_diffs[sorted_places]
    merged = whole.take(pa.array(places))
    last = merged.num_columns - 1
    merged = merged.set_column(last - 1, merged.schema.field("t"), pa.array(times[places]))
    return merged.set_column(last, merged.schema.field("d"), pa.array(new_diffs))


def _of_one_time(table: pa.Table, since: int) -> pa.Table | None:
    """A table all of whose entries have one time stays as it is, as the first of a dataflow do."""
    times = _ints(table, "t")
    first = int(times[0])
    if not (times == first).all():
        return None
    if first >= since:
        return table
    advanced = pa.array(np.full(len(times), since, np.int64))
    return table.set_column(table.num_columns - 2, table.schema.field("t"), advanced)


def _ints(table: pa.Table, name: str) -> Ints:
    column: Ints = table.column(name).to_numpy()
    return column


def _touched(hashes: Ints, origins: Ints, times: Ints) -> npt.NDArray[np.bool_]:
    """Which of these entries, sorted by hash, may be equal to another one now."""
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    sizes = np.diff(np.append(starts, len(hashes)))
    several_tables = origins[starts] != origins[starts + sizes - 1]
    several_times = np.minimum.reduceat(times, starts) != np.maximum.reduceat(times, starts)
    groups: npt.NDArray[np.bool_] = (sizes > 1) & (several_tables | several_times)
    return groups.repeat(sizes)


def _add_up(
    whole: pa.Table, hashes: Ints, times: Ints, diffs: Ints, places: Ints
) -> tuple[Ints, Ints]:
    """Of these entries the first of each identical ones, with the sum of all; zeros are gone."""
    if not len(places):
        return places, diffs[:0]
    picked = whole.take(pa.array(places))
    columns = [one_chunk(picked.column(name)) for name in whole.column_names[1:-2]]
    codes = [code for column in columns for code in arrow_codes(column)]
    keys = [times[places], *codes, hashes[places]]
    order = np.lexsort(keys)
    new = np.zeros(len(places), dtype=np.bool_)
    new[0] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new)
    sums = np.add.reduceat(diffs[places][order], starts)
    left = sums != 0
    return places[order][starts][left], sums[left]
