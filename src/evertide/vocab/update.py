"""Updates: what a collection is made of."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timestamp


class Update(NamedTuple):
    """A signed change in the multiplicity of one row at one timestamp.

    `error` is None for an ordinary row. Otherwise this is an error row: `row` is empty and `error`
    holds the encoded error (see errors.DataError) that a read of the collection reports while the
    row's multiplicity is not zero. Errors are data, so that they are retracted like data.
    """

    row: Row
    ts: Timestamp
    diff: int
    error: str | None = None


def consolidate(updates: Iterable[Update]) -> list[Update]:
    """Add up the diffs of equal (row, timestamp) and drop zeros; the order is by first sight.

    Rows are equal here when their datums are equal in Python *and* print alike: True and 1, 1.0
    and 1, 0.0 and -0.0 are told apart by their types' columns or kept apart by `row_identity`.
    """
    sums: dict[tuple[object, ...], int] = defaultdict(int)
    first: dict[tuple[object, ...], Update] = {}
    for update in updates:
        identity = (row_identity(update.row), update.ts, update.error)
        sums[identity] += update.diff
        first.setdefault(identity, update)
    return [first[identity]._replace(diff=diff) for identity, diff in sums.items() if diff]


def row_identity(row: Row) -> Row:
    """A hashable stand-in under which rows are equal only if they are the same representation.

    Python finds 0.0 == -0.0 and NaN != NaN; a collection must keep the first apart and cancel the
    second. Only floats need it, so rows without them are returned as they are.
    """
    if any(type(datum) is float for datum in row):
        return tuple(datum.hex() if type(datum) is float else datum for datum in row)
    return row
