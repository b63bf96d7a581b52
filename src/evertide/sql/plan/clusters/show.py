"""What SHOW CLUSTERS and SHOW CLUSTER PROFILES list."""

from collections.abc import Iterable
from typing import Final

from evertide.catalog.objects import ClusterReplica
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT

REPLICAS_DESC: Final = relation_desc(("id", TEXT), ("replicas", TEXT))
CLUSTER_PROFILES_COLUMNS: Final = (
    "cluster",
    "profile",
    "managed",
    "size",
    "replication_factor",
    "billed_as",
    "replicas",
    "expires_at",
    "comment",
)
CLUSTER_PROFILES_SQL: Final = """
    SELECT c.name AS cluster, p.name AS profile, p.managed, p.size, p.replication_factor,
        p.billed_as, t.replicas, p.expires_at, coalesce(noted.comment, '') AS comment
    FROM mz_catalog.mz_cluster_profiles p
    JOIN mz_catalog.mz_clusters c ON c.id = p.cluster_id
    JOIN profile_replicas t ON t.id = p.profile_id
    LEFT JOIN mz_internal.mz_comments AS noted ON noted.id = p.profile_id
        AND noted.object_type = 'cluster-profile' AND noted.object_sub_id IS NULL
"""


def replicas_of_clusters(snapshot: Snapshot) -> list[Row]:
    """Of every cluster its replicas as one text; NULL: it has none."""
    return [
        (cluster_id, _shown(snapshot.replicas_of(cluster_id))) for cluster_id in snapshot.clusters
    ]


def replicas_of_profiles(snapshot: Snapshot) -> list[Row]:
    """The same of every profile."""
    found: list[Row] = []
    for profile in snapshot.profiles.values():
        replicas = snapshot.replicas_of(profile.cluster_id)
        own = [one for one in replicas if one.profile_id == profile.profile_id]
        found.append((profile.profile_id, _shown(own)))
    return found


def _shown(replicas: Iterable[ClusterReplica]) -> str | None:
    texts = (r.name if r.size is None else f"{r.name} ({r.size})" for r in replicas)
    return ", ".join(texts) or None
