"""Work in threads beside an event loop that must stay quick."""

import time
from typing import Final

_PAUSE_S: Final = 0.0003


def give_way() -> None:
    """Let the event loop have the interpreter; to be called between steps of a millisecond.

    A thread that computes keeps the interpreter for several milliseconds each time the loop lets go
    of it, and the loop lets go several times in every SQLite read.
    """
    time.sleep(_PAUSE_S)
