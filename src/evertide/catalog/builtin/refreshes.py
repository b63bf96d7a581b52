"""Rows about when materialized views are brought up to date."""

from collections.abc import Iterable

from evertide.catalog.builtin.relation import Viewpoint
from evertide.catalog.objects import ItemKind
from evertide.vocab.datum import Interval, Row

_MICROS_PER_MS = 1_000


def refresh_strategies(at: Viewpoint) -> Iterable[Row]:
    """One for each time that was asked for; a view that is kept up to date all the time has one."""
    for item in at.snapshot.items.values():
        if item.kind is not ItemKind.MATERIALIZED_VIEW:
            continue
        schedule = item.refresh
        if schedule is None:
            yield item.item_id, "on-commit", None, None, None
            continue
        for moment in schedule.at:
            yield item.item_id, "at", None, None, moment * _MICROS_PER_MS
        for every in schedule.every:
            interval = Interval(0, 0, every.interval_ms * _MICROS_PER_MS)
            yield item.item_id, "every", interval, every.aligned_to * _MICROS_PER_MS, None
