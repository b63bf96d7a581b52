"""When a materialized view is brought up to date that is not kept so all the time."""

from dataclasses import dataclass

from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp


@dataclass(frozen=True, slots=True)
class Every:
    """Refreshes at every distance of `interval_ms` from `aligned_to`, before it and after it."""

    interval_ms: int
    aligned_to: Timestamp


@dataclass(frozen=True, slots=True)
class RefreshSchedule:
    """The times of a view's refreshes: single ones, and those that come again and again.

    Between two of them the view holds what it held at the earlier one.
    """

    at: tuple[Timestamp, ...] = ()
    every: tuple[Every, ...] = ()

    def next_at(self, ts: Timestamp) -> Timestamp:
        """The first refresh at this time or later; the empty frontier if there is none.

        >>> schedule = RefreshSchedule(at=(Timestamp(7),), every=(Every(10, Timestamp(103)),))
        >>> schedule.next_at(Timestamp(4)), schedule.next_at(Timestamp(8))
        (7, 13)
        >>> RefreshSchedule(at=(Timestamp(7),)).next_at(Timestamp(8)) == EMPTY_FRONTIER
        True
        """
        found = [one for one in self.at if one >= ts]
        for one in self.every:
            steps = -((one.aligned_to - ts) // one.interval_ms)
            found.append(Timestamp(one.aligned_to + steps * one.interval_ms))
        return min(min(found, default=EMPTY_FRONTIER), EMPTY_FRONTIER)

    def last_before(self, ts: Timestamp) -> Timestamp | None:
        """The last refresh earlier than this; None if there is none.

        >>> RefreshSchedule(every=(Every(10, Timestamp(3)),)).last_before(Timestamp(13))
        3
        >>> RefreshSchedule(at=(Timestamp(7),)).last_before(Timestamp(7)) is None
        True
        """
        found = [one for one in self.at if one < ts]
        for one in self.every:
            steps = (ts - 1 - one.aligned_to) // one.interval_ms
            found.append(Timestamp(one.aligned_to + steps * one.interval_ms))
        latest = max(found, default=MIN_TS - 1)
        return None if latest < MIN_TS else Timestamp(latest)

    def known_below(self, upper: Timestamp) -> Timestamp:
        """How far the view is known once its inputs are known below `upper`: just beyond the last
        refresh that these allow, and if that was the last of all, for ever.

        >>> schedule = RefreshSchedule(at=(Timestamp(3), Timestamp(7)))
        >>> schedule.known_below(Timestamp(3)), schedule.known_below(Timestamp(6))
        (0, 4)
        """
        if upper == EMPTY_FRONTIER:
            return upper
        last = self.last_before(upper)
        return MIN_TS if last is None else Timestamp(last + 1)
