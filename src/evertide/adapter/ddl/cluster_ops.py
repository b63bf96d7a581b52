"""Plans about clusters to catalog ops; spans become times here."""

from typing import assert_never

from evertide.catalog.objects import Reconfiguration
from evertide.catalog.ops import (
    AlterClusterProfileOp,
    CreateClusterOp,
    CreateClusterProfileOp,
    Op,
    StartReconfigurationOp,
)
from evertide.sql.plan.clusters.plans import (
    AlterClusterProfilePlan,
    ChangePlan,
    ClusterPlan,
    CreateClusterPlan,
    CreateClusterProfilePlan,
    ReconfigureClusterPlan,
)
from evertide.vocab.ids import RoleId


def cluster_ops(plan: ClusterPlan, owner: RoleId, now_ms: int) -> list[Op]:
    """What a plan asks of the catalog."""
    match plan:
        case CreateClusterPlan():
            return [
                CreateClusterOp(
                    name=plan.name,
                    owner=owner,
                    variant=plan.variant,
                    replicas=plan.replicas,
                    workload_class=plan.workload_class,
                )
            ]
        case CreateClusterProfilePlan():
            return [_create_profile(plan, owner, now_ms)]
        case AlterClusterProfilePlan():
            return [_alter_profile(plan, now_ms)]
        case ReconfigureClusterPlan():
            start = StartReconfigurationOp(
                cluster_id=plan.cluster_id, pending=reconfiguration(plan, now_ms)
            )
            return [plan.at_once, start]
        case ChangePlan(ops=ops):
            return list(ops)
        case _:
            assert_never(plan)


def reconfiguration(plan: ReconfigureClusterPlan, now_ms: int) -> Reconfiguration:
    """What is to happen, by when."""
    return Reconfiguration(
        target=plan.target,
        started_at_ms=now_ms,
        deadline_ms=now_ms + plan.wait_ms,
        on_timeout=plan.on_timeout,
        until_ready=plan.until_ready,
    )


def _create_profile(
    plan: CreateClusterProfilePlan, owner: RoleId, now_ms: int
) -> CreateClusterProfileOp:
    lasts = plan.expires_after_ms
    return CreateClusterProfileOp(
        cluster_id=plan.cluster_id,
        name=plan.name,
        owner=owner,
        size=plan.size,
        replication_factor=plan.replication_factor,
        billed_as=plan.billed_as,
        introspection=plan.introspection,
        expires_at_ms=None if lasts is None else now_ms + lasts,
        replicas=plan.replicas,
    )


def _alter_profile(plan: AlterClusterProfilePlan, now_ms: int) -> AlterClusterProfileOp:
    lasts = plan.expires_after_ms
    return AlterClusterProfileOp(
        profile_id=plan.profile_id,
        size=plan.size,
        replication_factor=plan.replication_factor,
        billed_as=plan.billed_as,
        introspection=plan.introspection,
        expires_at_ms=plan.expires_at_ms if lasts is None else now_ms + lasts,
    )
