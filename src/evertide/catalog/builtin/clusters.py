"""mz_catalog and mz_internal: clusters, their replicas and profiles."""

from collections.abc import Iterable

from evertide.catalog.builtin.relation import Viewpoint
from evertide.catalog.builtin.rights import acl_texts
from evertide.catalog.objects import Introspection, ManagedCluster
from evertide.vocab.datum import Datum, Interval, Row


def clusters(at: Viewpoint) -> Iterable[Row]:
    for c in at.snapshot.clusters.values():
        named = (c.cluster_id, c.name, c.owner, acl_texts(c, at.snapshot))
        if isinstance(c.variant, ManagedCluster):
            shape = (True, c.variant.size, c.variant.replication_factor, True, None)
            yield *named, *shape, *_introspection(c.variant.introspection), c.is_virtual
        else:
            yield *named, False, None, None, None, None, None, None, c.is_virtual


def cluster_replicas(at: Viewpoint) -> Iterable[Row]:
    for r in at.snapshot.replicas.values():
        on_disk = None if r.size is None else True
        yield r.replica_id, r.name, r.cluster_id, r.size, None, r.owner, on_disk, r.profile_id


def cluster_profiles(at: Viewpoint) -> Iterable[Row]:
    for p in at.snapshot.profiles.values():
        shape = (p.managed, p.size, p.replication_factor, p.billed_as)
        ends = None if p.expires_at_ms is None else p.expires_at_ms * 1_000
        named = (p.cluster_id, p.profile_id, p.name)
        yield *named, *shape, *_introspection(p.introspection), p.owner, ends


def internal_replicas(at: Viewpoint) -> Iterable[Row]:
    return ((r.replica_id,) for r in at.snapshot.replicas.values() if r.internal)


def pending_replicas(at: Viewpoint) -> Iterable[Row]:
    return ((r.replica_id,) for r in at.snapshot.replicas.values() if r.pending)


def workload_classes(at: Viewpoint) -> Iterable[Row]:
    return ((c.cluster_id, c.workload_class) for c in at.snapshot.clusters.values())


def schedules(at: Viewpoint) -> Iterable[Row]:
    """All replicas are always there."""
    return ((c.cluster_id, "manual", None) for c in at.snapshot.clusters.values())


def reconfigurations(at: Viewpoint) -> Iterable[Row]:
    """Those under way: what each cluster is to become, and what happens if it takes too long."""
    for c in at.snapshot.clusters.values():
        pending = c.variant.pending if isinstance(c.variant, ManagedCluster) else None
        if pending is not None:
            target = (pending.target.size, pending.target.replication_factor)
            times = (pending.started_at_ms * 1_000, pending.deadline_ms * 1_000)
            yield c.cluster_id, "in-progress", *times, pending.on_timeout.value, *target


def _introspection(settings: Introspection) -> tuple[Datum, Datum]:
    """Its two columns: debugging, and the interval."""
    span = None if settings.interval_ms is None else _interval(settings.interval_ms)
    return settings.debugging, span


def _interval(milliseconds: int) -> Interval:
    return Interval(0, 0, milliseconds * 1_000)
