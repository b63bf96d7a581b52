"""How long a part may wait for a state that refers to it.

A part is stored first and referred to afterwards. In between it looks like garbage, and the sweeper
must be able to tell the two apart. So whoever stored a part has MAX_AGE_MS to bring it into a
state: afterwards the change is refused before it is made. The sweeper only takes away what it has
seen unreferenced for longer than that.

A large merge stores parts for longer than that. Its parts share a name, and the time counts from
the last of them on, for the sweeper as for the writer, who therefore may not pause for longer
between two of them either: the sweeper would take the first for left behind.
"""

import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from evertide.persist.faults import StoreFailing
from evertide.persist.prepare import made_at_ms
from evertide.persist.state import BlobPart, Part

MAX_AGE_MS: Final = 480_000


class StaleParts(StoreFailing):
    """The parts of a change waited so long that they may be gone. Nothing was changed."""


def check_young(parts: Iterable[Part]) -> None:
    """Raises StaleParts. To be called for each try to refer to the parts, before it is made.

    By this process's clock, which also gave the parts their names; it must not be set back by
    minutes in between.
    """
    made_ms: defaultdict[str, list[int]] = defaultdict(list)
    for part in parts:
        if isinstance(part, BlobPart):
            made_ms[group_of(part.key)].append(made_at_ms(part.key))
    now_ms = time.time_ns() // 1_000_000
    for group in made_ms.values():
        for earlier_ms, later_ms in pairwise([*sorted(group), now_ms]):
            if later_ms - earlier_ms > MAX_AGE_MS:
                limit_s = MAX_AGE_MS // 1_000
                raise StaleParts(f"a change was not made within {limit_s} s of its data")


def group_of(key: str) -> str:
    """What the keys of parts that are referred to together have in common."""
    return key.rpartition("/")[2].partition("-")[2].partition("-")[0]
