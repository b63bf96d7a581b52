"""Keeps Python's cycle collector away from arrangements.

It looks at every container there is, again and again, and an arrangement's layer is a million of
them without a single cycle: a tick of one millisecond was seen to wait eighty for it. So ticks run
without it, and what they leave behind is set aside, now and then, as not worth looking at.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# So many updates may have come before what they left behind is set aside.
_UPDATES: Final = 20_000


class Garbage:
    """Counts what has come since the collector was last told to leave everything alone."""

    def __init__(self) -> None:
        self._updates = 0

    @contextmanager
    def left_alone(self, updates: int = 0) -> Iterator[None]:
        """Something with this many updates, undisturbed; whatever the collector has to do comes
        after it, or after what it is part of, if that is to be left alone as well.
        """
        enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            self._updates += updates
            if enabled:
                self._set_aside()
                gc.enable()

    def _set_aside(self) -> None:
        if self._updates >= _UPDATES:
            self._updates = 0
            # Others' young garbage goes first: what is frozen is never looked at again.
            gc.collect(1)
            gc.freeze()
