"""How long what was dropped can be brought back."""

import re
from typing import Final

from evertide.catalog.objects import DroppedItem
from evertide.catalog.snapshot import Snapshot

# The system variable; 0: what is dropped is gone at once.
GRACE_PERIOD: Final = "drop_grace_period"
DEFAULT_GRACE_MS: Final = 24 * 3_600_000
# Whoever drops more than this in a grace period gets back the newest of them only.
MOST_KEPT: Final = 10_000

_UNITS: Final = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1_000, "ms": 1}
_PERIOD: Final = re.compile(r"([0-9]{1,18}) *(d|h|min|s|ms)")


def period_text(period_ms: int) -> str:
    """A period as the catalog keeps it.

    >>> period_text(86_400_000), period_text(90_000), period_text(0)
    ('1 d', '90 s', '0 d')
    """
    unit = next(unit for unit, size in _UNITS.items() if period_ms % size == 0)
    return f"{period_ms // _UNITS[unit]} {unit}"


def grace_ms(snapshot: Snapshot) -> int:
    """The period that is in force; an unreadable one, which only an edit by hand can make, is taken
    for none having been set."""
    found = _PERIOD.fullmatch(snapshot.system_configurations.get(GRACE_PERIOD, ""))
    return DEFAULT_GRACE_MS if found is None else int(found[1]) * _UNITS[found[2]]


def expires_at_ms(dropped: DroppedItem, snapshot: Snapshot) -> int:
    """Until when it can be brought back, unless the period is changed."""
    return dropped.dropped_at_ms + grace_ms(snapshot)


def expired(snapshot: Snapshot, now_ms: int) -> list[DroppedItem]:
    """All that is not to be kept any longer."""
    everything = snapshot.dropped_items.values()
    before_ms = now_ms - grace_ms(snapshot)
    found = [one for one in everything if one.dropped_at_ms <= before_ms]
    left = len(snapshot.dropped_items) - len(found)
    if left > MOST_KEPT:
        young = sorted((one for one in everything if one.dropped_at_ms > before_ms), key=_age)
        found += young[: left - MOST_KEPT]
    return found


def _age(dropped: DroppedItem) -> int:
    return dropped.drop_id
