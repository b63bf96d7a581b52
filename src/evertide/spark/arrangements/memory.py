"""How much state may lie in memory: a setting of the environment that replicas run in."""

import ctypes
import os
from typing import Final

import pyarrow as pa

# How many megabytes of all arrangements of one resident task may be in memory; more is written as
# runs, which are mapped.
MEMORY_VARIABLE: Final = "EVERTIDE_STATE_MEMORY_MB"
DEFAULT_MEMORY_MB: Final = 256
# Of glibc; other C libraries may have none.
_malloc_trim: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)


def memory_limit() -> int:
    """In bytes; what is not a number counts as not given."""
    given = os.environ.get(MEMORY_VARIABLE, "")
    return (int(given) if given.isdecimal() and int(given) else DEFAULT_MEMORY_MB) << 20


def give_back() -> None:
    """Return to the system what allocators keep for later; takes milliseconds."""
    pa.default_memory_pool().release_unused()
    if _malloc_trim is not None:
        _malloc_trim(0)
