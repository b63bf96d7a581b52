"""The size table: which Spark a replica of each size is given.

A JSON object, a size's name to what it means:

    {"large": {"master": "spark://10.0.0.5:7077", "cores": 8, "memory_mb": 4096, "partitions": 4,
               "address": "10.0.0.4", "secret_file": "/etc/evertide/spark.secret"}}
"""

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final

import msgspec

LOOPBACK: Final = "127.0.0.1"
_MASTER: Final = re.compile(r"local(\[.+\])?|yarn|(spark|k8s)://\S+")


class Size(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Spark's master (None: processes on this host), and how much of it a replica takes.

    State and ticks are spread over `partitions` long-lived tasks, each with a core of its own
    beside `cores`. `address` is how a master's executors reach this host.
    """

    master: str | None = None
    cores: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 2
    memory_mb: Annotated[int, msgspec.Meta(ge=256)] = 512
    partitions: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    address: str = LOOPBACK
    # From so many records of its inputs on, a view's state is built by Spark SQL; None: the usual.
    hydrate_records: Annotated[int, msgspec.Meta(ge=1)] | None = None
    # Holds the secret of the cluster's own spark.authenticate; None: it has none.
    secret_file: str | None = None
    credits_per_hour: Decimal | None = None

    def __post_init__(self) -> None:
        if self.master is not None and not _MASTER.fullmatch(self.master):
            raise ValueError(f"not a Spark master: {self.master}")


class BadSizes(Exception):
    """The table cannot be read, or says what cannot be."""


def read_sizes(path: Path) -> dict[str, Size]:
    """The table in a file; raises BadSizes."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Size])
    except OSError as error:
        raise BadSizes(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise BadSizes(f"{path}: {error}") from error
