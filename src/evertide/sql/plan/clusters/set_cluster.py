"""ALTER ... SET CLUSTER: what maintains an item from now on."""

from evertide.catalog.ops import SetClusterOp
from evertide.sql.plan.clusters.plans import ChangePlan
from evertide.sql.plan.clusters.texts import in_cluster
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import ITEM_KINDS, item_of_kind
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.resolve import resolve_cluster
from evertide.sql.syntax.definition import AlterSetClusterStatement
from evertide.vocab.errors import Notice, UndefinedTable


def plan_set_cluster(
    statement: AlterSetClusterStatement, query: QueryContext
) -> ChangePlan | NoticePlan:
    """Its contents stay; the other cluster takes over where they stand."""
    tag = f"ALTER {statement.kind}"
    try:
        item = item_of_kind(statement.name, ITEM_KINDS[statement.kind], query.plan.names)
    except UndefinedTable as error:
        if not statement.if_exists:
            raise
        return NoticePlan(tag, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))
    cluster = resolve_cluster(statement.cluster, query.plan.snapshot, at=statement.at)
    op = SetClusterOp(
        item_id=item.item_id,
        cluster_id=cluster.cluster_id,
        create_sql=in_cluster(item, cluster.name),
    )
    return ChangePlan(tag=tag, ops=(op,))
