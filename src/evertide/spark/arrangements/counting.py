"""How many rows there are of some keys: what aggregates over DISTINCT values ask for most."""

from collections.abc import Sequence

from evertide.expr.columnar.hashes import hash_bytes
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.vocab.datum import Row


def count_rows(arrangement: Arrangement, keys: Sequence[bytes], rows: Sequence[Row]) -> list[int]:
    """The diffs of all entries of each of these different rows, of which the keys are the encoding:
    the arrangement goes by all of its columns.
    """
    levels = arrangement.levels
    counts = [0] * len(keys)
    for layer in levels.keyed:
        at_once = layer.groups.get
        for position, group in enumerate(map(at_once, keys)):
            if group is None:
                continue
            # Mostly it has one entry.
            one = len(group) == 1
            counts[position] += group[0][2] if one else sum([diff for _, _, diff in group])
    hashed = levels.hashed
    if not hashed or not keys:
        return counts
    needles = hash_bytes(keys)
    pick, encode = arrangement.parts.pick, arrangement.parts.encode
    for source in hashed:
        found, places = source.find(needles)
        if not len(places):
            continue
        positions = found.tolist()
        there, _, diffs = zip(*source.entries(places), strict=True)
        if list(there) == [rows[position] for position in positions]:
            for position, diff in zip(positions, diffs, strict=True):
                counts[position] += diff
            continue
        # Different keys may have one hash, and what Python finds different may have one key.
        for position, row, diff in zip(positions, there, diffs, strict=True):
            if rows[position] == row or encode(pick(row)) == keys[position]:
                counts[position] += diff
    return counts
