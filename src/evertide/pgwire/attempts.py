"""How often passwords may be tried.

Whoever fails for one user from one address is answered later and later there, up to one try per
second; how many connections are used for it makes no difference, for they wait in one line. The
right password ends the wait, and users of other names or at other addresses never wait.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

# Mistyped passwords cost nothing.
_FREE_FAILURES: Final = 3
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 1.0
# So long after the last failure it is forgotten.
_MEMORY_S: Final = 300.0
# Who would have to wait longer is not let in line: everyone in it keeps a socket.
LONGEST_WAIT_S: Final = 8.0
_MOST_KEYS: Final = 4_096


@dataclass(slots=True)
class _Line:
    """Those who try one user's password from one address."""

    failures: int = 0
    # When the next try is looked at.
    free_at: float = 0.0


class Attempts:
    """Counts failures; the caller brings the clock and does the waiting."""

    def __init__(self) -> None:
        self._lines: OrderedDict[tuple[str, str], _Line] = OrderedDict()

    def wait_s(self, address: str, user: str, now: float) -> float | None:
        """How long this try has to wait for its turn; None: there are too many before it."""
        line = self._lines.get((address, user))
        if line is None:
            return 0.0
        pause = _pause_s(line.failures)
        turn = max(now, line.free_at)
        if turn - now > LONGEST_WAIT_S:
            return None
        line.free_at = turn + pause
        return turn - now

    def failed(self, address: str, user: str, now: float) -> None:
        """It was the wrong password."""
        key = (address, user)
        line = self._lines.setdefault(key, _Line())
        if now - line.free_at > _MEMORY_S:
            line.failures = 0
        line.failures += 1
        line.free_at = max(line.free_at, now + _pause_s(line.failures))
        self._lines.move_to_end(key)
        if len(self._lines) > _MOST_KEYS:
            self._lines.popitem(last=False)

    def succeeded(self, address: str, user: str) -> None:
        """It was the right one."""
        self._lines.pop((address, user), None)


def _pause_s(failures: int) -> float:
    """What passes between two tries after so many failures.

    >>> [_pause_s(n) for n in (0, 3, 4, 5, 100)]
    [0.0, 0.0, 0.1, 0.2, 1.0]
    """
    beyond = failures - _FREE_FAILURES
    if beyond <= 0:
        return 0.0
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(beyond - 1, 10))
