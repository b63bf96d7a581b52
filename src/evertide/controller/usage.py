"""What replicas cost, from the audit log: credits by cluster, profile and hour.

The log says when each replica came, changed hands and went. Time in which a replica was down counts
like any other: it was there to be had.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, TypeAlias

from evertide.catalog.objects import UNBILLED, AuditEvent
from evertide.vocab.datum import Datum, Row, reduce_numeric

HOUR_MS: Final = 3_600_000
# Credits and hours are told to a millionth.
_EXACT: Final = Decimal("0.000001")

Credits: TypeAlias = Callable[[str], Decimal | None]


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose bill a replica is on."""

    cluster_id: str
    profile_id: str | None
    billed_as: str | None


@dataclass(frozen=True, slots=True)
class Stay:
    """A time in which one replica was of one size and on one bill."""

    replica_id: str
    size: str
    payer: Payer
    from_ms: int
    until_ms: int | None  # None: it is still there


def stays(events: Iterable[AuditEvent]) -> Iterator[Stay]:
    """In the order in which they end; replicas of virtual clusters cost nothing and have none."""
    open_stays: dict[str, Stay] = {}
    for event in events:
        if event.object_type != "cluster-replica" or event.event_type == "restart":
            continue
        replica_id, size = event.details.get("replica_id"), event.details.get("logical_size")
        if not isinstance(replica_id, str):
            continue  # a new name changes nobody's bill
        if event.event_type == "drop":
            ended = open_stays.pop(replica_id, None)
        else:
            if not isinstance(size, str):
                continue
            ended = open_stays.get(replica_id)
            began = Stay(replica_id, size, _payer(event), event.occurred_at_ms, None)
            if ended is not None and (ended.size, ended.payer) == (size, began.payer):
                continue
            open_stays[replica_id] = began
        if ended is not None:
            yield replace(ended, until_ms=max(event.occurred_at_ms, ended.from_ms))
    yield from open_stays.values()


def _payer(event: AuditEvent) -> Payer:
    return Payer(
        _text(event, "cluster_id") or "", _text(event, "profile_id"), _text(event, "billed_as")
    )


def _text(event: AuditEvent, name: str) -> str | None:
    value = event.details.get(name)
    return value if isinstance(value, str) else None


def usage_rows(events: Iterable[AuditEvent], credits_per_hour: Credits, now_ms: int) -> list[Row]:
    """(cluster, profile, hour, billed, billed as, replica hours, credits), oldest first.

    Credits of a size that nobody knows any more are not known either.
    """
    replica_ms: dict[tuple[Payer, int, str], int] = {}
    for stay in stays(events):
        for hour_ms, spent_ms in _hours(stay, now_ms):
            key = (stay.payer, hour_ms, stay.size)
            replica_ms[key] = replica_ms.get(key, 0) + spent_ms
    totals: dict[tuple[Payer, int], tuple[int, Decimal | None]] = {}
    for (payer, hour_ms, size), spent_ms in replica_ms.items():
        rate = credits_per_hour(size)
        before_ms, before = totals.get((payer, hour_ms), (0, Decimal(0)))
        more = None if rate is None or before is None else before + rate * spent_ms
        totals[payer, hour_ms] = (before_ms + spent_ms, more)
    ordered = sorted(totals.items(), key=lambda each: _order(*each[0]))
    return [_row(payer, hour_ms, *total) for (payer, hour_ms), total in ordered]


def _order(payer: Payer, hour_ms: int) -> tuple[int, str, str, str]:
    return (hour_ms, payer.cluster_id, payer.profile_id or "", payer.billed_as or "")


def _row(payer: Payer, hour_ms: int, spent_ms: int, credit_ms: Decimal | None) -> Row:
    hours = _per_hour(Decimal(spent_ms))
    spent = None if credit_ms is None else _per_hour(credit_ms)
    billed = payer.billed_as != UNBILLED
    bill = (payer.cluster_id, payer.profile_id, hour_ms * 1_000, billed, payer.billed_as)
    return (*bill, hours, spent)


def _per_hour(milliseconds: Decimal) -> Decimal:
    return reduce_numeric((milliseconds / HOUR_MS).quantize(_EXACT))


def _hours(stay: Stay, now_ms: int) -> Iterator[tuple[int, int]]:
    """Each hour that the stay touches, and how much of it."""
    at_ms = stay.from_ms
    until_ms = max(now_ms, at_ms) if stay.until_ms is None else stay.until_ms
    while at_ms < until_ms:
        hour_ms = at_ms // HOUR_MS * HOUR_MS
        next_ms = min(hour_ms + HOUR_MS, until_ms)
        yield hour_ms, next_ms - at_ms
        at_ms = next_ms


def replica_history_rows(events: Iterable[AuditEvent], credits_per_hour: Credits) -> list[Row]:
    """(replica, size, cluster, cluster's name, name, created, dropped, credits per hour)."""
    found: dict[str, list[Datum]] = {}
    for event in events:
        details = event.details
        replica_id, size = details.get("replica_id"), details.get("logical_size")
        if event.object_type != "cluster-replica" or not isinstance(replica_id, str):
            continue
        at_us = event.occurred_at_ms * 1_000
        if event.event_type == "create" and isinstance(size, str):
            names = [_text(event, n) for n in ("cluster_id", "cluster_name", "replica_name")]
            rate = credits_per_hour(size)
            shown = None if rate is None else reduce_numeric(rate)
            found[replica_id] = [replica_id, size, *names, at_us, None, shown]
        elif replica_id in found and event.event_type == "drop":
            found[replica_id][6] = at_us
        elif replica_id in found and event.event_type == "alter":
            found[replica_id][4] = _text(event, "replica_name")
    return [tuple(row) for row in found.values()]
