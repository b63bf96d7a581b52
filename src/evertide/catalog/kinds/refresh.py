"""The times at which a materialized view is refreshed, as they are stored."""

import msgspec

from evertide.vocab.refresh import Every, RefreshSchedule
from evertide.vocab.timestamp import Timestamp


class StoredEvery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Refreshes that come again and again."""

    interval_ms: int
    aligned_to: Timestamp


class StoredRefresh(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A RefreshSchedule, apart from vocab's, so that stored bytes do not move with it."""

    at: tuple[Timestamp, ...] = ()
    every: tuple[StoredEvery, ...] = ()

    @property
    def schedule(self) -> RefreshSchedule:
        every = tuple(Every(one.interval_ms, one.aligned_to) for one in self.every)
        return RefreshSchedule(self.at, every)


def stored_refresh(schedule: RefreshSchedule | None) -> StoredRefresh | None:
    """The stored form of a schedule.

    >>> schedule = RefreshSchedule(every=(Every(1_000, Timestamp(5)),))
    >>> stored_refresh(schedule).schedule == schedule
    True
    """
    if schedule is None:
        return None
    every = (
        StoredEvery(interval_ms=one.interval_ms, aligned_to=one.aligned_to)
        for one in schedule.every
    )
    return StoredRefresh(at=schedule.at, every=tuple(every))
