"""Objects as messages about rights name them: what they are in capitals, and their full name."""

from typing import TypeAlias

from evertide.catalog.objects import (
    CatalogObject,
    Cluster,
    ClusterProfile,
    ClusterReplica,
    Database,
    DroppedItem,
    Item,
    Role,
    Schema,
    Secret,
    kind_name,
)
from evertide.catalog.snapshot import Snapshot

Named: TypeAlias = (
    Database
    | Schema
    | Role
    | Cluster
    | ClusterReplica
    | ClusterProfile
    | Item
    | DroppedItem
    | Secret
)


def kind_words(found: CatalogObject) -> str:
    """What the object is: TABLE, MATERIALIZED VIEW, CLUSTER REPLICA."""
    words = found.kind.sql_words if isinstance(found, Item | DroppedItem) else kind_name(found)
    return words.replace("_", " ").upper()


def full_name(found: Named, snapshot: Snapshot) -> str:
    """The object's name with all that qualifies it."""
    match found:
        case Item() | Secret():
            return snapshot.qualified_name(found)
        case DroppedItem(place=place, name=name):
            return ".".join((*place, name))
        case Schema(database_id=database_id, name=name) if database_id is not None:
            return f"{snapshot.databases[database_id].name}.{name}"
        case ClusterReplica() | ClusterProfile():
            return f"{snapshot.clusters[found.cluster_id].name}.{found.name}"
        case _:
            return found.name


def quoted(found: Named, snapshot: Snapshot) -> str:
    """The object with its name in quotes: TABLE "materialize.public.t"."""
    return f'{kind_words(found)} "{full_name(found, snapshot)}"'


def plain(found: Named, snapshot: Snapshot) -> str:
    """The object with its name as it is: TABLE materialize.public.t."""
    return f"{kind_words(found)} {full_name(found, snapshot)}"
