"""Which cluster a session begins with."""

from collections.abc import Mapping
from typing import Final

from evertide.catalog.durable.bootstrap import DEFAULT_CLUSTER
from evertide.catalog.snapshot import Snapshot

# What the peer calls the first cluster: clients made for it rely on its being chosen.
PEERS_FIRST: Final = "quickstart"


def with_cluster(defaults: Mapping[str, str], snapshot: Snapshot) -> dict[str, str]:
    """The defaults of a session, with the first cluster that it finds where nobody names one."""
    found = dict(defaults)
    if "cluster" in found or snapshot.cluster_named(DEFAULT_CLUSTER) is not None:
        return found
    if snapshot.cluster_named(PEERS_FIRST) is not None:
        found["cluster"] = PEERS_FIRST
    return found
