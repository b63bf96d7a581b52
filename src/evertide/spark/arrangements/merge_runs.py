"""Several sorted tables become one; identical entries are added up, and history is forgotten.

Everything here is done by columns, in numpy and Arrow, which let go of the interpreter while they
work: merges run beside ticks. It is proportional to the tables' sizes, except for adding up, which
looks only at keys that can have changed: those in several tables, and those whose times now meet.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evertide.expr.columnar.batch import all_differ, equal_rows, share_hash
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
    # Each table is sorted, which a stable sort makes use of.
    order = np.argsort(hashes, kind="stable")
    origins = np.arange(len(tables)).repeat([table.num_rows for table in tables])
    touched = _touched(hashes[order], origins[order], old_times[order])
    kept, new_diffs = _add_up(whole, order, times[order], diffs[order], np.flatnonzero(touched))
    places = order if kept is None else order[kept]
    columns = whole.select(whole.column_names[:-2]).take(pa.array(places))
    merged = columns.append_column(whole.schema.field("t"), pa.array(times[places]))
    return merged.append_column(whole.schema.field("d"), pa.array(new_diffs))


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
    whole: pa.Table, order: Ints, times: Ints, diffs: Ints, touched: Ints
) -> tuple[Ints | None, Ints]:
    """What is left, as places in the order, and its diffs; None: all of it.

    Of identical entries the first stays, with the sum of all. Most merges find none, which one
    sort of their hashes tells. As the order stays, nothing needs to be sorted by key again.
    """
    touched = touched[_suspects(whole, order[touched], times[touched], diffs[touched])]
    if not len(touched):
        return None, diffs
    codes = [times[touched], *_codes(whole, order, touched)]
    if all_differ(codes) and diffs[touched].all():
        return None, diffs
    starts, alike = equal_rows(codes)
    heads = touched[alike[starts]]
    sums = np.add.reduceat(diffs[touched[alike]], starts)
    left = np.ones(len(order), np.bool_)
    left[touched] = False
    left[heads] = sums != 0
    diffs = diffs.copy()
    diffs[heads] = sums
    kept = np.flatnonzero(left)
    return kept, diffs[kept]


def _suspects(whole: pa.Table, places: Ints, times: Ints, diffs: Ints) -> Ints:
    """Which of these entries may be identical to another, or are nothing.

    Going by their numbers alone: texts and decimals cost far more to compare, and where there are
    none but few rows with the same numbers, it need not be done for the others.
    """
    if not len(places):
        return places
    codes = [times, *(_ints(whole, name)[places] for name in _whole_numbers(whole))]
    return np.flatnonzero(share_hash(codes) | (diffs == 0))


def _whole_numbers(whole: pa.Table) -> list[str]:
    """The hash, and columns that can be compared as they lie there."""
    fields = [whole.schema.field(name) for name in whole.column_names[:-2]]
    return [f.name for f in fields if f.type == pa.int64() and not whole.column(f.name).null_count]


def _codes(whole: pa.Table, order: Ints, touched: Ints) -> list[Ints]:
    """Of the hash and the columns of these entries. Values in Arrow are picked only if that spares
    work; numbers, of which most columns are, lie there as they are needed."""
    names = whole.column_names[:-2]
    places = order[touched]
    if len(touched) < len(order) // 2:
        picked = whole.select(names).take(pa.array(places))
        return [code for name in names for code in arrow_codes(one_chunk(picked.column(name)))]
    chunks = [one_chunk(whole.column(name)) for name in names]
    return [code[places] for chunk in chunks for code in arrow_codes(chunk)]
