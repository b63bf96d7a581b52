"""A stash in the memory of one process."""

from collections import Counter
from collections.abc import Collection

from evertide.persist.faults import Corrupt
from evertide.persist.store.protocol import StashAppend, StashMismatch, StashPage, StashRow
from evertide.persist.store.stash import MERGE_EVERY, MERGE_ROWS, merge_end, page_of, table_of
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward


class MemoryStash:
    """Each call is one step of the event loop, so each is atomic."""

    def __init__(self, first: StashPage | None = None) -> None:
        first = first or StashPage([], MIN_TS, MIN_TS)
        self._tables: dict[str, list[StashRow]] = {}
        for row in first.rows:
            self._tables.setdefault(table_of(row.kind), []).append(row)
        self._since = first.since
        self._upper = first.upper

    async def ensure(self, kinds: Collection[str]) -> None:
        for kind in kinds:
            self._tables.setdefault(table_of(kind), [])

    async def upper(self) -> Timestamp:
        return self._upper

    async def read(
        self, lower: Timestamp = MIN_TS, kinds: Collection[str] | None = None
    ) -> StashPage:
        wanted = self._tables if kinds is None else [table_of(kind) for kind in kinds]
        rows = [row for table in wanted for row in self._tables.get(table, ()) if row.ts >= lower]
        return page_of(rows, lower, self._since, self._upper)

    def in_the_way(self, append: StashAppend) -> StashMismatch | None:
        """What an append would be refused by; raises Corrupt where a table is missing."""
        missing = {row.kind for row in append.rows if table_of(row.kind) not in self._tables}
        if missing:
            raise Corrupt(f"the stash has no table for {', '.join(sorted(missing))}")
        return None if self._upper == append.expected_upper else StashMismatch(self._upper)

    def append(self, append: StashAppend) -> None:
        """To be called only if nothing is in the way."""
        for row in append.rows:
            self._tables[table_of(row.kind)].append(row)
        self._upper = step_forward(append.write_ts)
        if append.since >= self._since + MERGE_EVERY:
            self._merge(append.since)

    def _merge(self, wanted: Timestamp) -> None:
        for rows in self._tables.values():
            times = sorted(row.ts for row in rows if self._since < row.ts <= wanted)
            wanted = merge_end(wanted, *_first_and_beyond(times))
        self._since = wanted
        for table, rows in self._tables.items():
            sums = Counter[StashRow]()
            for row in rows:
                sums[row._replace(ts=max(row.ts, wanted), diff=0)] += row.diff
            self._tables[table] = [row._replace(diff=n) for row, n in sums.items() if n]


def _first_and_beyond(times: list[Timestamp]) -> tuple[int | None, int | None]:
    return (times[0] if times else None, times[MERGE_ROWS] if len(times) > MERGE_ROWS else None)
