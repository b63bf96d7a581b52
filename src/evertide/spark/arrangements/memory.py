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
_mallopt: Final = getattr(ctypes.CDLL(None), "mallopt", None)
# Of Linux.
_prctl: Final = getattr(ctypes.CDLL(None), "prctl", None)
_SET_THP_DISABLE: Final = 41
# Names of glibc's settings.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# So much free memory may stay with the process until `give_back`.
_KEPT_BYTES: Final = 256 << 20
# Of a list that is longer, about so many elements are looked at.
_SAMPLED_ELEMENTS: Final = 64
# Columns of large ticks are smaller than this.
_LARGE_BYTES: Final = 64 << 20


def memory_limit() -> int:
    """In bytes; what is not a number counts as not given."""
    given = os.environ.get(MEMORY_VARIABLE, "")
    return (int(given) if given.isdecimal() and int(given) else DEFAULT_MEMORY_MB) << 20


def reuse_memory() -> None:
    """Let what is freed be used again, until `give_back`, by all that compute here.

    A large tick makes many columns that live for a moment. Memory fresh from the system is first
    cleared, page by page, which takes longer than most of what is then done with it. Arrow has an
    allocator of its own, whose free memory nobody else could use.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    if _mallopt is not None:
        _mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
        _mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
    if _prctl is not None:
        # numpy asks for huge pages, which the system first has to make room for and then to clear.
        _prctl(_SET_THP_DISABLE, 1, 0, 0, 0)


def value_bytes(value: object, per_element: int) -> int:
    """Roughly what it takes beyond what any value does: texts their length, lists and the like so
    much for each of their elements, and what those take in turn, of which some are looked at.
    """
    match value:
        case str() | bytes():
            return len(value)
        case tuple() | list():
            some = value[:: len(value) // _SAMPLED_ELEMENTS + 1]
            inside = sum([value_bytes(element, per_element) for element in some])
            return len(value) * per_element + len(value) * inside // max(len(some), 1)
        case dict():
            return value_bytes((*value, *value.values()), per_element)
        case _:
            return 0


def give_back() -> None:
    """Return to the system what allocators keep for later; takes milliseconds."""
    pa.default_memory_pool().release_unused()
    if _malloc_trim is not None:
        _malloc_trim(0)
