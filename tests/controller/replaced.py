"""A database whose views are replaced: staged by a query, applied, handed over."""

from dataclasses import replace

from evertide.adapter.ddl.ops import ops_for
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import Item, Replacement
from evertide.catalog.ops import CreateItemOp, NewMaterializedView, Op
from evertide.catalog.replacement_ops import ApplyReplacementOp, FinishHandoverOp
from evertide.catalog.transact import transact
from evertide.sql.plan.plans import CreateMaterializedViewPlan
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database


def item(database: Database, name: str) -> Item:
    (found,) = [each for each in database.snapshot.items.values() if each.name == name]
    return found


def change(database: Database, *ops: Op) -> None:
    snapshot = database.snapshot
    updates = transact(snapshot, ops, now_ms=2_000, user="materialize").updates
    database.snapshot = snapshot.apply(updates, Timestamp(snapshot.upper + 1))


def stage(database: Database, name: str, target: str, query: str, cluster: str = "default") -> Item:
    """A replacement of this name that computes the query."""
    plan = database.plan(f"CREATE MATERIALIZED VIEW {name} IN CLUSTER {cluster} AS {query}")
    assert isinstance(plan, CreateMaterializedViewPlan)
    (op,) = ops_for(plan, DEFAULT_ROLE_ID, Timestamp(50), database.snapshot)
    assert isinstance(op, CreateItemOp)
    assert isinstance(op.definition, NewMaterializedView)
    staged = replace(op.definition, replacement=Replacement(target=item(database, target).item_id))
    change(database, replace(op, definition=staged))
    return item(database, name)


def apply(database: Database, target: str, name: str, *, forward_time: bool = False) -> None:
    staged = item(database, name)
    text = staged.create_sql.replace(f".{name} ", f".{target} ", 1)
    assert text != staged.create_sql
    op = ApplyReplacementOp(
        item_id=item(database, target).item_id,
        replacement_id=staged.item_id,
        create_sql=text,
        forward_time=forward_time,
    )
    change(database, op)


def finish(database: Database, target: str) -> None:
    view = item(database, target)
    change(database, FinishHandoverOp(item_id=view.item_id, global_id=view.global_id))


def two_clusters() -> Database:
    """Tables t, u and x; m reads t; n and the index m_a read m, all in the default cluster."""
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b int); CREATE TABLE u (a int, b int);"
        "CREATE TABLE x (a int, b int);"
        "CREATE CLUSTER other REPLICAS ();"
        "CREATE MATERIALIZED VIEW m AS SELECT a, b FROM t;"
        "CREATE VIEW v AS SELECT * FROM m;"
        "CREATE MATERIALIZED VIEW n AS SELECT * FROM v;"
        "CREATE INDEX m_a ON m (a)"
    )
    return database
