"""Sizes that a statement asks for, checked by whoever starts replicas before anything is stored."""

from collections.abc import Iterator, Sequence

from evertide.catalog.objects import ClusterVariant, ManagedCluster
from evertide.catalog.ops import (
    AlterClusterOp,
    AlterClusterProfileOp,
    CreateClusterOp,
    CreateClusterProfileOp,
    CreateClusterReplicaOp,
    NewReplica,
    Op,
    StartReconfigurationOp,
)
from evertide.controller.sizes import SizeTable
from evertide.vocab.errors import Notice


def check_sizes(ops: Sequence[Op], sizes: SizeTable) -> list[Notice]:
    """Raises InvalidParameterValue for what is no size; notices say what this host lacks."""
    asked = dict.fromkeys(size for op in ops for size in _sizes(op))
    return [notice for notice in map(sizes.check, asked) if notice is not None]


def _sizes(op: Op) -> Iterator[str]:
    match op:
        case CreateClusterOp(variant=variant, replicas=replicas):
            yield from _of_variant(variant)
            yield from _of_replicas(replicas)
        case AlterClusterOp(variant=variant):
            yield from _of_variant(variant)
        case StartReconfigurationOp(pending=pending):
            yield pending.target.size
        case CreateClusterReplicaOp(replica=replica):
            yield from _of_replicas([replica])
        case CreateClusterProfileOp(size=size, replicas=replicas):
            yield from [] if size is None else [size]
            yield from _of_replicas(replicas)
        case AlterClusterProfileOp(size=size) if size is not None:
            yield size
        case _:
            return


def _of_variant(variant: ClusterVariant) -> Iterator[str]:
    if isinstance(variant, ManagedCluster):
        yield variant.size


def _of_replicas(replicas: Sequence[NewReplica]) -> Iterator[str]:
    return (replica.size for replica in replicas if replica.size is not None)
