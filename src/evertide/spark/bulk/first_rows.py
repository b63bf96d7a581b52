"""The first rows of an order where some rows were taken back, without adding all of them up.

A row that was taken back sorts where it was given, since the order is one of whole rows. So of the
first updates in that order all that belong together are there, but for rows that look like the last
of them, of which more may follow.
"""

from collections.abc import Sequence
from typing import Final

from evertide.expr.group_rows import Counted
from evertide.expr.interpret import in_finishing_order
from evertide.expr.relation import OrderKey, Types
from evertide.vocab.update import Update

# So many updates are looked at for each row that is wanted, and so many at least.
_FOR_EACH: Final = 4
_AT_LEAST: Final = 1_000
# Spark keeps them in one task's memory.
_MOST_BYTES: Final = 32 << 20
_MOST_CANDIDATES: Final = 50_000


def candidates(most: int | None, input_rows: int, input_bytes: int) -> int | None:
    """How many first updates to look at for so many rows; None: too many, or all are wanted."""
    if most is None:
        return None
    count = max(_FOR_EACH * most, _AT_LEAST)
    row_bytes = input_bytes // max(input_rows, 1) + 1
    return count if count <= _MOST_CANDIDATES and count * row_bytes <= _MOST_BYTES else None


def net_first(
    found: Sequence[Update],
    looked_at: int,
    most: int,
    order: tuple[OrderKey, ...],
    types: Types,
) -> list[Counted] | None:
    """The first `most` rows and perhaps more, of the first `looked_at` updates in order; None: they
    do not tell."""
    whole = len(found) < looked_at
    if not whole:
        last = repr(found[-1].row)
        found = [update for update in found if repr(update.row) != last]
    counted = in_finishing_order([(u.row, u.diff) for u in found], (), order, types)
    enough = sum(count for _, count in counted) >= most
    return counted if whole or enough else None
