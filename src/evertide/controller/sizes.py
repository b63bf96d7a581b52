"""What each size of a replica means: the shipped table, what a file adds to it, and this host.

A size is a promise of cores and memory. Where this host has less than a size names, a replica gets
what there is, and whoever asks for the size is told so.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final

import msgspec

from evertide.vocab.errors import InvalidParameterValue, Notice

LOOPBACK: Final = "127.0.0.1"
# Below this a replica on this host would not even start: a driver, a JVM and a task.
LEAST_LOCAL_MB: Final = 1_024
_DEFAULT_LOCAL_MB: Final = 2_048
_DEFAULT_HEAP_MB: Final = 512
# A replica may be given so much of the host's memory at most: others live there too.
_SHARE_OF_HOST: Final = 0.75
# A name in a message is cut here: nobody reads more of it.
_SHOWN_CHARACTERS: Final = 64

_MASTER: Final = re.compile(r"local(\[.+\])?|yarn|(spark|k8s)://\S+")
_SCALED: Final = re.compile(
    r"scale=([1-9][0-9]{0,2}),workers=([1-9][0-9]{0,2})(?:,mem=([1-9][0-9]{0,4})GiB)?"
)
_STEPS: Final = (1, 2, 4, 8, 16, 32)


class Size(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Spark's master (None: processes on this host), and how much of it a replica takes.

    State and ticks are spread over `partitions` long-lived tasks, each with a slot of its own
    beside `cores`. `address` is how a master's executors reach this host.
    """

    master: str | None = None
    cores: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 2
    # On this host: of all processes of a replica together. Elsewhere: of the driver's JVM, and of
    # each executor. None: what is usual there.
    memory_mb: Annotated[int, msgspec.Meta(ge=256)] | None = None
    partitions: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    address: str = LOOPBACK
    # From so many records of its inputs on, a view's state is built by Spark SQL; None: the usual.
    hydrate_records: Annotated[int, msgspec.Meta(ge=1)] | None = None
    # Holds the secret of the cluster's own spark.authenticate; None: it has none.
    secret_file: str | None = None
    # Settings for Spark beside those that are made here.
    conf: dict[str, str] = {}
    credits_per_hour: Decimal | None = None

    def __post_init__(self) -> None:
        if self.master is not None and not _MASTER.fullmatch(self.master):
            raise ValueError(f"not a Spark master: {self.master}")
        if self.is_limited and self.memory_mb is not None and self.memory_mb < LEAST_LOCAL_MB:
            raise ValueError(f"a replica on this host needs a memory_mb of {LEAST_LOCAL_MB}")
        cost = self.credits_per_hour
        if cost is not None and (not cost.is_finite() or cost < 0):
            raise ValueError(f"not a number of credits_per_hour: {cost}")

    @property
    def is_limited(self) -> bool:
        """Whether its processes are all below the supervisor, which then holds them to it."""
        return self.master is None

    @property
    def total_mb(self) -> int:
        """What all processes of a replica on this host may take together."""
        return self.memory_mb or _DEFAULT_LOCAL_MB

    @property
    def heap_mb(self) -> int:
        """The share of the resident tasks' JVM, which only starts them: what Spark insists on."""
        if not self.is_limited:
            return self.memory_mb or _DEFAULT_HEAP_MB
        return _DEFAULT_HEAP_MB

    @property
    def bulk_heap_mb(self) -> int:
        """The share of the JVM for bulk work: a quarter, but not less than Spark insists on."""
        if not self.is_limited:
            return self.memory_mb or _DEFAULT_HEAP_MB
        return max(self.total_mb // 4, _DEFAULT_HEAP_MB)

    @property
    def fill_mb(self) -> int:
        """How large, decoded, the inputs of a view may be that is filled by ticks: they are in
        memory twice on their way, and once more as state."""
        return self.total_mb // 8

    @property
    def state_mb(self) -> int:
        """Of each resident task: how much state it keeps in memory before it writes runs."""
        return self.total_mb // 4 // self.partitions


def _shipped() -> Iterator[tuple[str, Size]]:
    """Plain numbers are cores; words double with each step."""
    for cores in (*_STEPS, 64):
        yield str(cores), _size(cores, memory_mb=2_048 * cores, credits_per_hour=Decimal(cores))
    words = ("3xsmall", "2xsmall", "xsmall", "small", "medium", "large", "xlarge", "2xlarge",
             "3xlarge")  # fmt: skip
    for step, word in enumerate(words):
        credits_per_hour = Decimal(2**step) / 4
        yield (
            word,
            _size(
                max(1, int(credits_per_hour)),
                memory_mb=1_024 * 2**step,
                credits_per_hour=credits_per_hour,
            ),
        )


def _size(cores: int, *, memory_mb: int, credits_per_hour: Decimal, partitions: int = 1) -> Size:
    return Size(
        cores=cores,
        memory_mb=memory_mb,
        partitions=partitions,
        credits_per_hour=credits_per_hour,
    )


def _scaled(name: str) -> Size | None:
    """`scale=P,workers=W[,mem=MGiB]`: P tasks that share the state, W cores for each of them."""
    found = _SCALED.fullmatch(name)
    if found is None:
        return None
    processes, workers = int(found[1]), int(found[2])
    memory_mb = 1_024 * int(found[3]) if found[3] else 2_048 * max(processes, workers)
    return _size(
        min(processes * workers, 4_096),
        memory_mb=memory_mb,
        credits_per_hour=Decimal(processes),
        partitions=min(processes, 64),
    )


@dataclass(frozen=True, slots=True)
class Host:
    """What there is to give."""

    cores: int
    memory_mb: int


SHIPPED: Final[Mapping[str, Size]] = dict(_shipped())


class SizeTable:
    """Sizes by name: those of the file first, then the shipped ones."""

    def __init__(self, added: Mapping[str, Size], host: Host) -> None:
        self._named: Mapping[str, Size] = {**SHIPPED, **added}
        self._host = host

    def find(self, name: str) -> Size | None:
        """What the size is given on this host; None: there is no such size."""
        named = self._named.get(name)
        if named is not None:
            return self._fitted(named)
        size = _scaled(name)
        if size is None:
            return None
        partitions = min(size.partitions, self._host.cores)
        return self._fitted(msgspec.structs.replace(size, partitions=partitions))

    def _fitted(self, size: Size) -> Size:
        """A size of processes on this host takes no more than the host has."""
        if not size.is_limited:
            return size
        most_mb = max(LEAST_LOCAL_MB, int(self._host.memory_mb * _SHARE_OF_HOST))
        return msgspec.structs.replace(
            size,
            cores=min(size.cores, self._host.cores),
            memory_mb=min(size.total_mb, most_mb),
        )

    def credits_per_hour(self, name: str) -> Decimal | None:
        """What an hour of a replica costs; None: nobody knows the size any more."""
        size = self.find(name)
        return None if size is None else size.credits_per_hour or Decimal(0)

    def partitions(self, name: str) -> int:
        """Over how many tasks a replica of this size spreads its state."""
        size = self.find(name)
        return 1 if size is None else size.partitions

    def listed(self) -> Iterator[tuple[str, Size]]:
        """Every size that has a name of its own, and the usual ones of those made by a rule."""
        scaled = (f"scale={p},workers={w}" for p in _STEPS for w in _STEPS)
        for name in (*self._named, *scaled):
            size = self.find(name)
            assert size is not None, "a listed size is one"
            yield name, size

    def check(self, name: str) -> Notice | None:
        """Raises InvalidParameterValue for what is no size; a notice says what the host lacks."""
        asked = self._named.get(name) or _scaled(name)
        if asked is None:
            raise InvalidParameterValue(
                f"unknown cluster replica size {shown(name)}",
                hint="Valid cluster replica sizes are: "
                + ", ".join([*self._named, "scale=P,workers=W"]),
            )
        if asked.is_limited and asked.cores > self._host.cores:
            return Notice(
                "NOTICE",
                "00000",
                f"cluster replica size {shown(name)} asks for {asked.cores} cores,"
                f" this host has {self._host.cores}",
                hint="Replicas of this size get all cores of the host.",
            )
        return None


def shown(name: str) -> str:
    """A name that a user wrote, on one line and of bounded length.

    >>> shown("small"), shown("a\\nb'c")
    ('small', '"a\\\\nb\\'c"')
    """
    cut = name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "…"
    plain = cut.isprintable() and not set(cut) & set("'\"\\ ")
    return cut if plain and cut else repr(cut)
