"""Over how many tasks the replicas of a cluster spread their state."""

from evertide.adapter.environment import Environment
from evertide.adapter.session import Session
from evertide.catalog.objects import Item
from evertide.catalog.snapshot import Snapshot


def partitions_of(item: Item | None, session: Session, env: Environment, snapshot: Snapshot) -> int:
    """Those of the item's cluster, or of the active one; of different replicas the most."""
    cluster_id = None if item is None else item.cluster_id
    if cluster_id is None:
        active = snapshot.cluster_named(session.cluster)
        cluster_id = None if active is None else active.cluster_id
    sizes = [r.size for r in snapshot.replicas.values() if r.cluster_id == cluster_id]
    return max([env.sizes.partitions(size or "") for size in sizes], default=1)
