"""ALTER ... RENAME TO of clusters, replicas and profiles."""

from evertide.catalog.objects import Cluster, ClusterItem, object_key
from evertide.catalog.ops import RenameObjectOp
from evertide.catalog.references import names_of
from evertide.sql.plan.clusters.plans import ChangePlan
from evertide.sql.plan.clusters.profile import named_profile, refuse_outsiders
from evertide.sql.plan.clusters.replica import own_replica
from evertide.sql.plan.clusters.texts import moved_texts
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.new_name import check_new_name
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.resolve import position_of, resolve_cluster
from evertide.sql.syntax.definition import ObjectKind, RenameStatement
from evertide.vocab.errors import DuplicateObject, Notice, UndefinedObject

RENAMED = (ObjectKind.CLUSTER, ObjectKind.CLUSTER_REPLICA, ObjectKind.CLUSTER_PROFILE)


def plan_rename_in_cluster(
    statement: RenameStatement, query: QueryContext
) -> ChangePlan | NoticePlan:
    """The object under its new name, and every definition that names it."""
    tag = f"ALTER {statement.kind}"
    try:
        found = _found(statement, query)
    except UndefinedObject as error:
        if not statement.if_exists:
            raise
        return NoticePlan(tag, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))
    check_new_name(statement.new_name, statement.at)
    snapshot = query.plan.snapshot
    for *scope, _ in names_of(found):
        holders = snapshot.named((*scope, statement.new_name))
        if any(key != object_key(found) for key in holders):
            raise DuplicateObject(
                f"uniqueness violation: {str(statement.kind).lower()} '{statement.new_name}'"
                " already exists",
                position=position_of(statement.at),
            )
    clusters = [found.cluster_id] if isinstance(found, Cluster) else []
    texts = tuple(t for one in clusters for t in moved_texts(one, statement.new_name, snapshot))
    op = RenameObjectOp(target=object_key(found), new_name=statement.new_name, items_sql=texts)
    return ChangePlan(tag=tag, ops=(op,))


def _found(statement: RenameStatement, query: QueryContext) -> Cluster | ClusterItem:
    snapshot, name = query.plan.snapshot, statement.name
    if statement.kind is ObjectKind.CLUSTER:
        return resolve_cluster(name.parts[0], snapshot, at=name.at)
    if statement.kind is ObjectKind.CLUSTER_PROFILE:
        refuse_outsiders(query, statement.at)
        return named_profile(name, snapshot)
    return own_replica(name, snapshot, "rename")
