"""Short words for appends to a stash."""

from collections import Counter
from collections.abc import Sequence

from evertide.persist.store.protocol import StashAppend, StashPage, StashRow
from evertide.vocab.timestamp import MIN_TS, Timestamp

ITEM, ROLE = "item", "role_of_users"


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def row(at: int, key: str, value: str = "{}", diff: int = 1, kind: str = ITEM) -> StashRow:
    return StashRow(kind, key, value, ts(at), diff)


def append(
    upper: int, rows: Sequence[StashRow], *, at: int | None = None, since: int = 0
) -> StashAppend:
    """At the upper, unless a later timestamp is given."""
    return StashAppend(ts(upper), ts(upper if at is None else at), rows, ts(since))


def contents(page: StashPage) -> dict[tuple[str, str, str], int]:
    """What the rows of a whole page add up to."""
    sums = Counter[tuple[str, str, str]]()
    for found in page.rows:
        sums[found[:3]] += found.diff
    return {key: n for key, n in sums.items() if n}


NOTHING = StashPage([], MIN_TS, MIN_TS)
