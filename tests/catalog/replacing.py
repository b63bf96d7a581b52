"""A view with a replacement, and short forms of the ops that tests of them ask for."""

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import AuditEvent, Item, Replacement, UnmanagedCluster
from evertide.catalog.ops import CreateClusterOp, CreateItemOp, NewMaterializedView, Op
from evertide.catalog.replacement_ops import ApplyReplacementOp, FinishHandoverOp
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.ids import ClusterId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import (
    DEFAULT,
    TWO_COLUMNS,
    after,
    create,
    create_index,
    create_mv,
    create_table,
    create_view,
    item,
    new_snapshot,
)

THREE_COLUMNS = RelationDesc((*TWO_COLUMNS.columns, ColumnDesc("more", TEXT)))
OTHER = ClusterId("u2")


def stage(
    name: str,
    target: Item,
    *reads: Item,
    desc: RelationDesc = TWO_COLUMNS,
    cluster_id: ClusterId = DEFAULT,
) -> CreateItemOp:
    names = ", ".join(f'"materialize"."public"."{read.name}"' for read in reads)
    sql = f'CREATE MATERIALIZED VIEW "materialize"."public"."{name}" AS SELECT * FROM {names}'
    definition = NewMaterializedView(
        cluster_id=cluster_id,
        as_of=Timestamp(9),
        replacement=Replacement(target=target.item_id),
    )
    return create(name, definition, *reads, desc=desc, sql=sql)


def apply(snapshot: Snapshot, target: str, name: str) -> ApplyReplacementOp:
    """What was staged under `name` becomes the definition of `target`."""
    staged = item(snapshot, name)
    return ApplyReplacementOp(
        item_id=item(snapshot, target).item_id,
        replacement_id=staged.item_id,
        create_sql=staged.create_sql.replace(f'"{name}"', f'"{target}"', 1),
    )


def finish(snapshot: Snapshot, target: str) -> FinishHandoverOp:
    view = item(snapshot, target)
    return FinishHandoverOp(item_id=view.item_id, global_id=view.global_id)


def tables_and_view() -> Snapshot:
    """Tables t, u; view v and materialized view m on t; index i and view w on m; two clusters."""
    snapshot = after(new_snapshot(), create_table("t"), create_table("u"))
    cluster = CreateClusterOp(name="other", owner=DEFAULT_ROLE_ID, variant=UnmanagedCluster())
    snapshot = after(snapshot, cluster, create_view("v", item(snapshot, "t")))
    snapshot = after(snapshot, create_mv("m", item(snapshot, "t")))
    m = item(snapshot, "m")
    return after(snapshot, create_index("i", m), create_view("w", m))


def staged() -> Snapshot:
    """Those, and r, which is to replace m and reads u in the other cluster."""
    snapshot = tables_and_view()
    return after(snapshot, stage("r", item(snapshot, "m"), item(snapshot, "u"), cluster_id=OTHER))


def handing_over() -> Snapshot:
    """After r has been applied: m is handing over."""
    snapshot = staged()
    return after(snapshot, apply(snapshot, "m", "r"))


def handed_over() -> Snapshot:
    snapshot = handing_over()
    return after(snapshot, finish(snapshot, "m"))


def events(snapshot: Snapshot, *ops: Op) -> list[tuple[str, str, dict[str, object]]]:
    """What the audit log tells of these ops: type, kind of object, details."""
    updates = transact(snapshot, ops, now_ms=2_000, user="materialize").updates
    found = (update.object for update in updates if update.diff > 0)
    return [
        (each.event_type, each.object_type, dict(each.details))
        for each in found
        if isinstance(each, AuditEvent)
    ]
