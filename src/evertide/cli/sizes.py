"""The size table's file, and what this host has to give.

A JSON object, a size's name to what it means:

    {"large": {"master": "spark://10.0.0.5:7077", "cores": 8, "memory_mb": 4096, "partitions": 4,
               "address": "10.0.0.4", "secret_file": "/etc/evertide/spark.secret"}}
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from evertide.controller.sizes import Host, Size, SizeTable
from evertide.spark.conf import refused_conf

__all__ = ["BadSizes", "Size", "read_sizes", "size_table"]

_LONGEST_NAME: Final = 255


class BadSizes(Exception):
    """The table cannot be read, or says what cannot be."""


def read_sizes(path: Path) -> dict[str, Size]:
    """The table in a file; raises BadSizes."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, Size])
    except OSError as error:
        raise BadSizes(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise BadSizes(f"{path}: {error}") from error
    for name in found:
        if not name.isprintable() or not 1 <= len(name) <= _LONGEST_NAME:
            raise BadSizes(f"{path}: a size cannot be called {name[:_LONGEST_NAME]!r}")
        if refused := refused_conf(found[name].conf):
            listed = ", ".join(sorted(refused))
            raise BadSizes(f"{path}: the conf of size {name!r} cannot set {listed}")
    return found


def size_table(added: Mapping[str, Size]) -> SizeTable:
    """All sizes as this host can give them."""
    return SizeTable(added, this_host())


def this_host() -> Host:
    """The cores that this process may use, and the memory there is."""
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Host(len(os.sched_getaffinity(0)), pages * page_bytes >> 20)
