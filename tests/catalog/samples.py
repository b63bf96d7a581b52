"""A new environment as a snapshot, and short forms of the ops that tests ask for."""

from collections.abc import Sequence

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID, bootstrap_updates
from evertide.catalog.objects import Index, IndexKey, Item, View, stored_columns
from evertide.catalog.ops import CreateItemOp, NewDefinition, NewMaterializedView, NewTable, Op
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.ids import ClusterId, EnvironmentId, ItemId, SchemaId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc, relation_desc
from evertide.vocab.sql_type import INT4, NUMERIC, TEXT
from evertide.vocab.timestamp import Timestamp

ENVIRONMENT = EnvironmentId("test-environment")
PUBLIC = SchemaId("u1")
DEFAULT = ClusterId("u1")
TWO_COLUMNS = RelationDesc((ColumnDesc("id", INT4, nullable=False), ColumnDesc("name", TEXT)))


def new_snapshot() -> Snapshot:
    """What a new environment holds."""
    return Snapshot().apply(bootstrap_updates(ENVIRONMENT, 1_000), Timestamp(2))


def after(snapshot: Snapshot, *ops: Op) -> Snapshot:
    """The snapshot after these ops have committed."""
    result = transact(snapshot, ops, now_ms=2_000, user="materialize")
    return snapshot.apply(result.updates, Timestamp(snapshot.upper + 1))


def create(
    name: str,
    definition: NewDefinition,
    *depends_on: Item,
    desc: RelationDesc = TWO_COLUMNS,
    sql: str | None = None,
    defaults: Sequence[str | None] | None = None,
    schema_id: SchemaId = PUBLIC,
) -> CreateItemOp:
    return CreateItemOp(
        schema_id=schema_id,
        name=name,
        owner=DEFAULT_ROLE_ID,
        create_sql=sql or f'CREATE TABLE "materialize"."public"."{name}" ("id" int4)',
        columns=stored_columns(desc, defaults),
        depends_on=tuple(item.item_id for item in depends_on),
        definition=definition,
    )


def create_table(name: str) -> CreateItemOp:
    return create(name, NewTable())


def create_view(name: str, *depends_on: Item) -> CreateItemOp:
    sql = f'CREATE VIEW "materialize"."public"."{name}" AS SELECT 1, \'secret\''
    return create(name, View(), *depends_on, sql=sql)


def create_mv(name: str, *depends_on: Item) -> CreateItemOp:
    sql = f'CREATE MATERIALIZED VIEW "{name}" IN CLUSTER "default" AS SELECT * FROM "t"'
    definition = NewMaterializedView(cluster_id=DEFAULT, as_of=Timestamp(5))
    return create(name, definition, *depends_on, sql=sql)


def create_index(name: str, on: Item) -> CreateItemOp:
    keys = (IndexKey(position=0), IndexKey(expression="upper(name)"))
    definition = Index(on_id=on.item_id, cluster_id=DEFAULT, keys=keys)
    sql = f'CREATE INDEX "{name}" IN CLUSTER "default" ON "{on.name}" ("id", upper("name"))'
    return create(name, definition, on, sql=sql)


def item(snapshot: Snapshot, name: str) -> Item:
    found = snapshot.item_named(PUBLIC, name)
    assert found is not None, f"no item named {name}"
    return found


def populated() -> Snapshot:
    """One item of each kind: table t, view v and index i on it, materialized view m on v."""
    snapshot = after(
        new_snapshot(),
        create(
            "t",
            NewTable(),
            desc=relation_desc(ColumnDesc("id", INT4, nullable=False), ("price", NUMERIC)),
            defaults=[None, "1.50"],
        ),
    )
    snapshot = after(snapshot, create_view("v", item(snapshot, "t")))
    snapshot = after(snapshot, create_index("i", item(snapshot, "t")))
    return after(snapshot, create_mv("m", item(snapshot, "v")))


def ids(*items: Item) -> tuple[ItemId, ...]:
    return tuple(found.item_id for found in items)
