"""Which layers and runs of an arrangement should be merged now.

A level is taken along if all newer ones together are at least half its size, so that sizes grow
geometrically and the number of levels stays logarithmic; so it is with layers in memory.
"""

from collections.abc import Sequence

from evertide.spark.arrangements.levels import (
    GROWTH,
    Frozen,
    Levels,
    MergePlan,
    large_bytes,
    memory_bytes,
)
from evertide.spark.arrangements.ranges import levels_of
from evertide.spark.arrangements.runs import Run


def small_merge(levels: Levels, since: int, *, spill: bool = False) -> MergePlan | None:
    """Small layers that become one in memory, or all of them with small runs into a run.

    `spill`: into a run, however little there is, because memory is short.
    """
    layers = tuple(layer for layer in levels.frozen if layer not in levels.taken.layers)
    records = sum(layer.records for layer in layers)
    if spill and not records:
        return None
    if records < levels.spill_records and not spill:
        few = _of_one_size(layers)
        return levels.plan(few, (), since, in_memory=True) if len(few) > 1 else None
    volume, most = memory_bytes(levels), large_bytes()
    taken: list[Run] = []
    for run in reversed(levels.runs):
        volume += run.file_bytes
        if run in levels.taken.runs or run.length > 2 * records or volume > most:
            break
        records += run.length
        taken.insert(0, run)
    return levels.plan(layers, tuple(taken), since)


def large_merge(levels: Levels, since: int) -> MergePlan | None:
    """Runs that are larger together than `small_merge` takes."""
    if levels.taken.runs or not levels.runs:
        return None
    *older, newest = levels_of(levels.runs)
    taken = list(newest)
    records = sum(run.length for run in newest)
    for level in reversed(older):
        length = sum(run.length for run in level)
        if length > 2 * records:
            break
        records += length
        taken = [*level, *taken]
    volume = sum(run.file_bytes for run in taken)
    if len(taken) == len(newest) or volume <= large_bytes():
        return None
    return levels.plan((), tuple(taken), since)


def _of_one_size(layers: Sequence[Frozen]) -> tuple[Frozen, ...]:
    """Layers of about one size; one that is small alone must not keep others from merging."""
    taken: list[Frozen] = []
    for layer in sorted(layers, key=lambda layer: layer.records):
        if taken and layer.records > GROWTH * sum(other.records for other in taken):
            if len(taken) > 1:
                break
            taken = []
        taken.append(layer)
    return tuple(taken)
