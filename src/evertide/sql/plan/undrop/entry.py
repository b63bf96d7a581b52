"""UNDROP to a plan."""

from collections.abc import Sequence

from evertide.catalog.dropped_ops import Returning
from evertide.catalog.objects import DroppedItem
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.plan.roles.rights import Needs, Privilege
from evertide.sql.plan.undrop.find import find_dropped
from evertide.sql.plan.undrop.group import (
    Destination,
    destination,
    group,
    refuse_ownerless,
    staying,
)
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.sql.plan.undrop.texts import text_of_today
from evertide.sql.resolve import name_of
from evertide.sql.syntax.undrop import UndropStatement
from evertide.vocab.errors import Notice, SqlError, UndefinedTable
from evertide.vocab.ids import ItemId, RoleId


def plan_undrop(statement: UndropStatement, query: QueryContext) -> UndropPlan | NoticePlan:
    """The item, and all that was dropped along with it and can come back with it."""
    tag = "UNDROP" if statement.kind is None else f"UNDROP {statement.kind}"
    snapshot = query.plan.snapshot
    try:
        root = find_dropped(statement, query.plan.names)
    except UndefinedTable as error:
        if not statement.if_exists:
            raise
        return NoticePlan(tag, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))
    coming = {root.item_id: destination(root, snapshot, {}, statement.new_name)}
    notices: list[Notice] = []
    owner = query.plan.role_id
    items = [_returning(root, coming, snapshot, new_owner=owner)]
    for other in group(root, snapshot, restrict=statement.restrict):
        try:
            refuse_ownerless(other, owner, snapshot)
            place = {other.item_id: destination(other, snapshot, coming)}
            items.append(_returning(other, coming | place, snapshot, new_owner=owner))
            coming.update(place)
        except SqlError as reason:
            notices.append(Notice("NOTICE", "00000", staying(other, reason), hint=reason.hint))
    return UndropPlan(tag, tuple(items), _needs(root, items, snapshot), tuple(notices))


def _returning(
    dropped: DroppedItem,
    coming: dict[ItemId, Destination],
    snapshot: Snapshot,
    *,
    new_owner: RoleId | None,
) -> Returning:
    """What has no owner any more becomes the superuser's who brings it back."""
    to = coming[dropped.item_id]

    def today(item_id: ItemId) -> tuple[str, ...]:
        if item_id in coming:
            return coming[item_id].parts
        found = snapshot.items.get(item_id)
        assert found is not None, "what it reads is there, or comes with it"
        return name_of(found, snapshot).parts

    cluster = to.cluster
    owner = dropped.owner
    if owner not in snapshot.roles and new_owner is not None:
        owner = new_owner
    return Returning(
        item_id=dropped.item_id,
        schema_id=to.schema.schema_id,
        name=to.name,
        owner=owner,
        create_sql=text_of_today(
            dropped, to.parts, None if cluster is None else cluster.name, today
        ),
        cluster_id=None if cluster is None else cluster.cluster_id,
    )


def _needs(root: DroppedItem, items: Sequence[Returning], snapshot: Snapshot) -> Needs:
    """The dropped item must be one's own. Whoever gets an item must be allowed to create it where
    it comes back to: that may have been taken away since."""
    if root.owner not in snapshot.roles:
        return Needs(superuser="undrop what belonged to a role that is gone")
    privileges: dict[Privilege, None] = {}
    for one in items:
        whose = None if one.item_id == root.item_id else one.owner
        privileges[Privilege(("schema", one.schema_id), "C", whose)] = None
        if one.cluster_id is not None:
            privileges[Privilege(("cluster", one.cluster_id), "C", whose)] = None
    return Needs(owner_of=(("dropped_item", root.item_id),), privileges=tuple(privileges))
