"""Uniqueness and references are checked where the transaction is decided, in the peer's words."""

import pytest

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import VirtualCluster
from evertide.catalog.ops import (
    CreateClusterOp,
    CreateDatabaseOp,
    CreateRoleOp,
    CreateSchemaOp,
    DropItemsOp,
    NewMaterializedView,
    NewTable,
    Op,
)
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import ClusterId, DatabaseId, ItemId, RoleId, SchemaId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import (
    after,
    create,
    create_table,
    create_view,
    item,
    new_snapshot,
    populated,
)

OWNER = DEFAULT_ROLE_ID
MATERIALIZE = DatabaseId("u1")


@pytest.mark.parametrize(
    ("op", "sqlstate", "message"),
    [
        (create_table("v"), "42P07", "catalog item 'v' already exists"),
        (
            CreateDatabaseOp(name="materialize", owner=OWNER),
            "42710",
            "database 'materialize' already exists",
        ),
        (
            CreateSchemaOp(database_id=MATERIALIZE, name="public", owner=OWNER),
            "42710",
            "schema 'public' already exists",
        ),
        (
            CreateSchemaOp(database_id=MATERIALIZE, name="mz_own", owner=OWNER),
            "42602",
            "unacceptable schema name 'mz_own'",
        ),
        (
            CreateSchemaOp(database_id=MATERIALIZE, name="information_schema", owner=OWNER),
            "42602",
            "unacceptable schema name 'information_schema'",
        ),
        (CreateRoleOp(name="materialize"), "42710", "role 'materialize' already exists"),
        (CreateRoleOp(name="pg_x"), "42602", 'role name "pg_x" is reserved'),
        (
            CreateClusterOp(name="default", owner=OWNER, variant=VirtualCluster()),
            "42710",
            "cluster 'default' already exists",
        ),
        (
            create("t", NewTable(), schema_id=SchemaId("u99")),
            "3F000",
            "unknown schema 'u99'",
        ),
        (
            create("t", NewTable(), schema_id=SchemaId("s1")),
            "42501",
            "system schema 'mz_catalog' cannot be modified",
        ),
        (
            create("n", NewMaterializedView(cluster_id=ClusterId("u9"), as_of=Timestamp(1))),
            "42704",
            "unknown cluster 'u9'",
        ),
        (CreateDatabaseOp(name="d", owner=RoleId("u9")), "42704", "unknown role 'u9'"),
        (DropItemsOp((ItemId("u99"),)), "42P01", "unknown catalog item 'u99'"),
    ],
)
def test_refusals_carry_the_peers_words(op: Op, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        after(populated(), op)
    assert (refused.value.code, refused.value.message) == (sqlstate, message)


def test_a_name_is_free_again_once_its_item_is_dropped() -> None:
    snapshot = after(new_snapshot(), create_table("t"))
    old = item(snapshot, "t")
    snapshot = after(snapshot, DropItemsOp((old.item_id,)), create_table("t"))
    assert item(snapshot, "t").item_id != old.item_id


def test_an_item_cannot_depend_on_what_another_transaction_dropped() -> None:
    snapshot = after(new_snapshot(), create_table("t"))
    view = create_view("v", item(snapshot, "t"))
    snapshot = after(snapshot, DropItemsOp((item(snapshot, "t").item_id,)))
    with pytest.raises(SqlError, match="unknown catalog item 'u1'"):
        after(snapshot, view)


def test_a_view_may_depend_on_a_system_relation() -> None:
    snapshot = new_snapshot()
    view = create("v", create_view("v").definition)
    on_builtin = type(view)(
        schema_id=view.schema_id,
        name="v",
        owner=OWNER,
        create_sql="",
        columns=view.columns,
        depends_on=(ItemId("s16706"),),
        definition=view.definition,
    )
    assert item(after(snapshot, on_builtin), "v").depends_on == ("s16706",)
