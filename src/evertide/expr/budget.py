"""What one interpreted query may use.

A thread cannot be stopped from outside, so the interpreter asks on its way: a cancelled query ends
at the next question, and one that makes too many rows before the machine runs out of memory.
"""

import threading

from evertide.vocab.errors import ProgramLimitExceeded, QueryCanceled

# Rows of a handful of columns: about a gigabyte.
MAX_ROWS = 5_000_000


class Budget:
    """Counts the rows that joins make; one per query."""

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self._left = max_rows
        self._max_rows = max_rows
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """End the query at its next question; from any thread."""
        self._cancelled.set()

    def spend(self, rows: int) -> None:
        """Take note of rows that were made; raises where that is the end of it."""
        if self._cancelled.is_set():
            raise QueryCanceled("canceling statement due to user request")
        self._left -= rows
        if self._left < 0:
            raise ProgramLimitExceeded(
                f"the query makes more than {self._max_rows} intermediate rows",
                hint="Add conditions to its joins, or keep its result in a materialized view.",
            )
