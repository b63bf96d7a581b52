"""When a generator's ticks are, and how far it may be known at a given time; pure.

Tick n is at as_of + (n - from_tick) * tick_ms. Ticks before from_tick belong to as_of itself.
"""

from dataclasses import dataclass
from typing import Final

from evertide.catalog.objects import Load
from evertide.vocab.timestamp import Timestamp

# So far ahead of the clock it may be known that nothing comes. Not further than since trails the
# upper at least: a since in the future would make readers wait for it.
LEAD_MS: Final = 1_000
# A promise that ends sooner is renewed, so that readers need not wait for it.
RENEW_MS: Final = 300
# After a long time of standing still, ticks are brought in portions.
MOST_TICKS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be appended: ticks first <= n < last, and the upper from then on."""

    first: int
    last: int
    upper: Timestamp
    # Whether there is more to be done at once.
    more: bool


class Schedule:
    """Of one source."""

    def __init__(self, load: Load, as_of: Timestamp) -> None:
        self._load = load
        self._as_of = as_of

    def at(self, tick: int) -> Timestamp:
        """When a tick is."""
        late = max(tick - self._load.from_tick, 0)
        return Timestamp(self._as_of + late * self._load.tick_ms)

    def next_tick(self, upper: Timestamp) -> int | None:
        """The first tick that is not below the upper; None: none comes any more.

        At as_of itself nothing is known yet, so that is where all of them begin.
        """
        load = self._load
        tick = 0
        if upper > self._as_of:
            tick = load.from_tick - (self._as_of - upper) // load.tick_ms
        if load.up_to_tick is not None and tick >= load.up_to_tick:
            return None
        return tick

    def due(self, upper: Timestamp, now: Timestamp) -> Due | None:
        """What to append if the shards are at `upper` and it is `now`; None: nothing yet."""
        first = self.next_tick(upper)
        if first is None or self.at(first) > now:
            return self._renewal(upper, now, first)
        last = self._last(upper, now, first)
        after = self._next(last)
        if after is not None and self.at(after) <= now:
            return Due(first, last, self.at(after), more=True)
        return Due(first, last, self._promise(now, after), more=False)

    def _last(self, upper: Timestamp, now: Timestamp, first: int) -> int:
        """One beyond the last tick that is brought with the first one.

        What is there from the beginning is one timestamp, and comes as a whole.
        """
        load = self._load
        passed = load.from_tick + (now - self._as_of) // load.tick_ms
        least = load.from_tick + 1 if upper <= self._as_of else first + 1
        last = max(min(passed + 1, first + MOST_TICKS), least)
        return last if load.up_to_tick is None else min(last, load.up_to_tick)

    def _next(self, tick: int) -> int | None:
        end = self._load.up_to_tick
        return None if end is not None and tick >= end else tick

    def _promise(self, now: Timestamp, following: int | None) -> Timestamp:
        far = Timestamp(now + LEAD_MS)
        return far if following is None else min(far, self.at(following))

    def _renewal(self, upper: Timestamp, now: Timestamp, following: int | None) -> Due | None:
        if now < upper - RENEW_MS:
            return None
        wanted = self._promise(now, following)
        nothing = 0 if following is None else following
        return Due(nothing, nothing, wanted, more=False) if wanted > upper else None

    def pause_ms(self, upper: Timestamp, now: Timestamp) -> int:
        """How long nothing is due, by the clock."""
        following = self.next_tick(upper)
        renewal = upper - RENEW_MS - now
        if following is None:
            return max(renewal, 0)
        tick = self.at(following) - now
        return max(tick if self.at(following) <= upper else min(tick, renewal), 0)
