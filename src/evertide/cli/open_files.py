"""How many files and sockets this process may have open."""

import resource
from typing import Final

# All clients' sockets, those of operators, and what the stores and the hub take.
WANTED: Final = 4_096


def allow_open_files(wanted: int = WANTED) -> None:
    """Raise this process's own limit as far as it may: where it is too low, clients that only
    connect would use up what operators need to do something about them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
