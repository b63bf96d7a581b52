"""Rows of a collection that a condition names, from an image and from what came after it; pure."""

from collections.abc import Hashable, Sequence
from typing import Final

from evertide.adapter.reading.leaves import ShardLeaf
from evertide.adapter.reading.pinned import Pinned, pin
from evertide.adapter.reading.selection import search, to_rows
from evertide.expr.compile import compile_predicates
from evertide.expr.row_key import PLAIN_KINDS, identity_function
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import is_fallible
from evertide.persist.image import TableImage
from evertide.vocab.datum import Row

# The rows of an image that has no more are looked at one by one: columns take longer to ask.
_FEW_ROWS: Final = 64


def pinned_for_rows(predicates: Sequence[Scalar]) -> Pinned | None:
    """A condition by whose values changed rows may be picked; None: all must be looked at.

    Where a predicate can fail, a row that this one rules out may still be an error.
    """
    if any(map(is_fallible, predicates)):
        return None
    found = (pinned for pinned in map(pin, predicates) if pinned is not None)
    return min(
        (pinned for pinned in found if pinned.type.kind in PLAIN_KINDS),
        key=lambda pinned: len(pinned.values),
        default=None,
    )


def rows_found(
    image: TableImage, leaf: ShardLeaf, later: Sequence[tuple[Row, int]], most: int
) -> list[tuple[Row, int]] | None:
    """Rows that may match the leaf's conditions, and how often each is there.

    `later` is what came and went after the image, among it all that matches. None if columns cannot
    tell, or more rows than `most` match.
    """
    before = rows_before(image, leaf, most)
    return None if before is None else rows_after(before, leaf, later)


def rows_before(image: TableImage, leaf: ShardLeaf, most: int) -> list[tuple[Row, int]] | None:
    """Those of the image alone."""
    types = leaf.collection.desc.types
    if sum(map(len, image.runs)) <= _FEW_ROWS:
        few = _picked(image, leaf)
        if few is not None:
            return few
    found = search(image, leaf.predicates, types)
    if found is None or sum(map(len, found.places)) > most:
        return None
    table, counts = found.table()
    return list(zip(to_rows(table, types), counts.tolist(), strict=True))


def _picked(image: TableImage, leaf: ShardLeaf) -> list[tuple[Row, int]] | None:
    """The same row by row; None where values may be equal that Python finds different."""
    pinned = [pin(predicate) for predicate in leaf.predicates]
    if any(one is None or one.type.kind not in PLAIN_KINDS for one in pinned):
        return None
    wanted = [(one.column, one.values) for one in pinned if one is not None]
    table, counts = image.take(image.all_places())
    rows = zip(to_rows(table, leaf.collection.desc.types), counts.tolist(), strict=True)
    return [
        (row, count)
        for row, count in rows
        if all(row[column] in values for column, values in wanted)
    ]


def rows_after(
    rows: list[tuple[Row, int]], leaf: ShardLeaf, later: Sequence[tuple[Row, int]]
) -> list[tuple[Row, int]] | None:
    """The same after what came and went; None as above."""
    if not later:
        return rows
    identity = identity_function(leaf.collection.desc.types)
    sums: dict[Hashable, tuple[Row, int]] = {}
    for row, count in (*rows, *later):
        name = row if identity is None else identity(row)
        known = sums.get(name)
        sums[name] = (row, count if known is None else known[1] + count)
    gone = [row for row, count in sums.values() if count < 0]
    if gone and any(map(compile_predicates(leaf.predicates), gone)):
        return None  # it was not there before: that is for others to tell
    # Others went that the image has and the conditions leave out.
    return [(row, count) for row, count in sums.values() if count > 0]
