"""The numbers 1, 2, 3, …"""

from collections.abc import Iterator

from evertide.catalog.objects import CounterLoad
from evertide.vocab.datum import Row


def counter_changes(load: CounterLoad, tick: int) -> Iterator[tuple[Row, int]]:
    """What a tick brings, and the row that makes room for it."""
    yield (tick + 1,), 1
    most = load.max_cardinality
    if most is not None and tick >= most:
        yield (tick + 1 - most,), -1
