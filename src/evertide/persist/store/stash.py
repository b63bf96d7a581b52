"""What every store's stash has in common: names, limits, and what a page of rows is.

Merging keeps the tables from growing with every change ever made. It rides along in an append, so
its work is bounded: it looks at so many rows of a table at most (or at one append's, if that had
more), and goes on with the next append. Rows that no other row adds to are left where they are;
that they count as being at since is a matter of reading.
"""

import re
from collections.abc import Iterable
from typing import Final

from evertide.persist.faults import BelowSince
from evertide.persist.store.protocol import STASH_SHARD, StashAppend, StashPage, StashRow
from evertide.vocab.timestamp import MIN_TS, Timestamp

# Merge once since may move by so much.
MERGE_EVERY: Final = 256
# How many rows of one table a merge looks at.
MERGE_ROWS: Final = 4096
PREFIX: Final = "stash_"

# Short enough for every store's limit on names.
_KIND: Final = re.compile(r"[a-z_]{1,48}")


def table_of(kind: str) -> str:
    """The table that holds rows of this kind."""
    assert _KIND.fullmatch(kind), f"{kind!r} is not the name of a kind"
    return PREFIX + kind


def check_append(append: StashAppend) -> None:
    """What no store could make sense of is our own mistake."""
    assert append.write_ts >= append.expected_upper, "an append is at or beyond the upper"
    assert append.since <= append.write_ts, "what is not yet complete is not merged"
    for row in append.rows:
        table_of(row.kind)
        assert row.ts == append.write_ts, "every row is at the append's timestamp"
        assert row.diff, "a row that changes nothing is not appended"


def page_of(
    rows: Iterable[StashRow], lower: Timestamp, since: Timestamp, upper: Timestamp
) -> StashPage:
    """Rows read with ts >= lower, in order; raises BelowSince."""
    if MIN_TS < lower <= since:
        raise BelowSince(STASH_SHARD, lower, since)
    merged = (row if row.ts > since else row._replace(ts=since) for row in rows)
    return StashPage(sorted(merged, key=lambda row: row.ts), since, upper)


def merge_end(wanted: Timestamp, first: int | None, beyond: int | None) -> Timestamp:
    """How far a merge may go on behalf of one table.

    `first` is the table's first ts after since, `beyond` that of the first row that is too many.
    Rows of one append are merged together, however many they are.
    """
    if first is None or beyond is None:
        return wanted
    return Timestamp(min(wanted, max(first, beyond - 1)))
