"""Goal: credits by cluster, profile and hour are what the audit log says, billed and not apart.

Method: replicas come, move and go through ops on a clock that is turned by hand; the events that
these ops write are added up a second time, replica by replica.
"""

from collections.abc import Sequence
from decimal import Decimal

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import UNBILLED, AuditEvent, ManagedCluster, UnmanagedCluster
from evertide.catalog.ops import (
    CreateClusterOp,
    CreateClusterProfileOp,
    CreateClusterReplicaOp,
    DropClusterOp,
    DropClusterProfileOp,
    MoveReplicaOp,
    NewReplica,
    Op,
    RecordReplicaRestartOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.controller.sizes import Host, SizeTable
from evertide.controller.usage import HOUR_MS, replica_history_rows, usage_rows
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import new_snapshot

CREDITS = SizeTable({}, Host(2, 8_192)).credits_per_hour
MINUTE_MS = 60_000
START_MS = 1_000_000 * HOUR_MS + 45 * MINUTE_MS


class Log:
    """A catalog, its audit events, and a clock."""

    def __init__(self) -> None:
        self.snapshot = new_snapshot()
        self.now_ms = START_MS
        self.events: list[AuditEvent] = []

    def do(self, *ops: Op, user: str | None = "materialize") -> None:
        updates = transact(self.snapshot, ops, now_ms=self.now_ms, user=user).updates
        self.events += [u.object for u in updates if isinstance(u.object, AuditEvent)]
        self.snapshot = self.snapshot.apply(updates, Timestamp(self.snapshot.upper + 1))

    def wait(self, minutes: int) -> None:
        self.now_ms += minutes * MINUTE_MS

    def rows(self) -> list[Row]:
        return usage_rows(self.events, CREDITS, self.now_ms)


def cluster(log: Log, name: str, size: str = "2", factor: int = 2) -> None:
    variant = ManagedCluster(size=size, replication_factor=factor)
    log.do(CreateClusterOp(name=name, owner=DEFAULT_ROLE_ID, variant=variant))


def cluster_id(snapshot: Snapshot, name: str) -> str:
    found = snapshot.cluster_named(name)
    assert found is not None
    return found.cluster_id


def total(rows: Sequence[Row], *, billed: bool) -> Decimal:
    credits = [row[6] for row in rows if row[3] is billed]
    return sum((c for c in credits if isinstance(c, Decimal)), Decimal(0))


def by_hand(events: Sequence[AuditEvent], now_ms: int) -> Decimal:
    """Each replica's life times what its size costs, from creates and drops alone."""
    created = {e.details["replica_id"]: e for e in events if _is(e, "create")}
    dropped = {e.details["replica_id"]: e.occurred_at_ms for e in events if _is(e, "drop")}
    spent = Decimal(0)
    for replica_id, event in created.items():
        size = event.details["logical_size"]
        rate = CREDITS(str(size))
        assert rate is not None
        until_ms = dropped.get(replica_id, now_ms)
        spent += rate * (until_ms - event.occurred_at_ms) / HOUR_MS
    return spent


def _is(event: AuditEvent, event_type: str) -> bool:
    return event.object_type == "cluster-replica" and event.event_type == event_type


def lent(log: Log) -> None:
    """A billed cluster of two replicas, and an unbilled profile beside it for a while."""
    cluster(log, "c")
    log.wait(10)
    found = log.snapshot.cluster_named("c")
    assert found is not None
    log.do(
        CreateClusterProfileOp(
            cluster_id=found.cluster_id,
            name="support",
            owner=DEFAULT_ROLE_ID,
            size="8",
            replication_factor=1,
            billed_as=UNBILLED,
        )
    )
    log.wait(30)
    (profile,) = log.snapshot.profiles.values()
    log.do(DropClusterProfileOp(profile.profile_id, cascade=True, reason="expired"), user=None)
    log.wait(65)


def test_hours_are_apart_and_so_are_bills() -> None:
    log = Log()
    lent(log)
    own, lent_by = cluster_id(log.snapshot, "c"), "u4"  # after three replicas
    hour_us = 1_000_000 * HOUR_MS * 1_000
    assert log.rows() == [
        (own, None, hour_us, True, None, Decimal("0.5"), Decimal(1)),
        (own, lent_by, hour_us, False, UNBILLED, Decimal("0.083333"), Decimal("0.666667")),
        (own, None, hour_us + HOUR_MS * 1_000, True, None, Decimal(2), Decimal(4)),
        (own, lent_by, hour_us + HOUR_MS * 1_000, False, UNBILLED, Decimal("0.416667"),
         Decimal("3.333333")),
        (own, None, hour_us + 2 * HOUR_MS * 1_000, True, None, Decimal(1), Decimal(2)),
    ]  # fmt: skip


def test_the_sum_is_that_of_all_replicas() -> None:
    log = Log()
    lent(log)
    cluster(log, "d", "3xsmall", 1)
    log.wait(17)
    (gone,) = [c for c in log.snapshot.clusters.values() if c.name == "c"]
    log.do(DropClusterOp(gone.cluster_id))
    log.wait(200)
    rows = log.rows()
    found = total(rows, billed=True) + total(rows, billed=False)
    assert abs(found - by_hand(log.events, log.now_ms)) < Decimal("0.0001")
    assert abs(total(rows, billed=False) - Decimal(4)) < Decimal("0.0001")


def test_a_replica_that_moves_changes_bills_at_that_moment() -> None:
    log = Log()
    log.do(CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=UnmanagedCluster()))
    (own,) = [c.cluster_id for c in log.snapshot.clusters.values() if c.name == "c"]
    log.do(
        CreateClusterProfileOp(cluster_id=own, name="p", owner=DEFAULT_ROLE_ID, billed_as=UNBILLED)
    )
    (profile,) = log.snapshot.profiles.values()
    new = NewReplica(name="r", size="4")
    log.do(
        CreateClusterReplicaOp(
            cluster_id=own, owner=DEFAULT_ROLE_ID, replica=new, profile_id=profile.profile_id
        )
    )
    (replica,) = [r for r in log.snapshot.replicas.values() if r.name == "r"]
    log.wait(15)
    log.do(MoveReplicaOp(replica_id=replica.replica_id, profile_id=None))
    log.wait(30)
    rows = log.rows()
    assert total(rows, billed=False) == Decimal(1)
    assert total(rows, billed=True) == Decimal(2)


def test_a_restart_is_no_new_stay() -> None:
    log = Log()
    cluster(log, "c", "1", 1)
    log.wait(30)
    (replica,) = [r for r in log.snapshot.replicas.values() if r.size == "1"]
    log.do(RecordReplicaRestartOp(replica_id=replica.replica_id, reason="exit code 1"), user=None)
    log.wait(30)
    assert total(log.rows(), billed=True) == Decimal(1)


def test_a_size_that_nobody_knows_any_more_costs_nobody_knows_what() -> None:
    log = Log()
    cluster(log, "c", "of old", 1)
    cluster(log, "d", "1", 1)
    log.wait(15)
    credits = {row[0]: row[6] for row in log.rows()}
    assert credits[cluster_id(log.snapshot, "c")] is None
    assert credits[cluster_id(log.snapshot, "d")] == Decimal("0.25")


def test_a_replicas_history_has_its_beginning_and_end() -> None:
    log = Log()
    cluster(log, "c", "2", 1)
    (own,) = [c.cluster_id for c in log.snapshot.clusters.values() if c.name == "c"]
    log.wait(10)
    log.do(DropClusterOp(own))
    (row,) = [r for r in replica_history_rows(log.events, CREDITS) if r[2] == own]
    created_us = START_MS * 1_000
    assert row[1:] == (
        "2", own, "c", "r1", created_us, created_us + 600_000_000, Decimal(2),
    )  # fmt: skip
