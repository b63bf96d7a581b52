"""Access lists: what new objects start with, what grants make of them, and which roles stay."""

import msgspec
import pytest

from evertide.catalog.acl import Guarded, acting_roles, letters_on, system_letters
from evertide.catalog.checks import faults_of
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID, SUPPORT_ROLE_ID, SYSTEM_ROLE_ID
from evertide.catalog.durable.codec import decode_object
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.upgrade.steps import upgraded
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    AclItem,
    AuditEvent,
    CatalogUpdate,
    Database,
    DefaultPrivilege,
    Item,
    Role,
    SystemPrivilege,
    object_key,
)
from evertide.catalog.ops import (
    ChangeOwnerOp,
    CreateDatabaseOp,
    CreateRoleOp,
    CreateSchemaOp,
    DropItemsOp,
    DropRoleOp,
    GrantRoleOp,
    Op,
    SetDefaultPrivilegeOp,
    SetSystemPrivilegeOp,
)
from evertide.catalog.privilege_ops import (
    AlterRoleOp,
    GrantPrivilegesOp,
    RevokePrivilegesOp,
    SetRoleVariableOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.errors import DependentObjectsStillExist, InsufficientPrivilege
from evertide.vocab.ids import DatabaseId, RoleId, SchemaId
from tests.catalog.samples import after, create_table, create_view, item, new_snapshot, populated

ANN, BOB = RoleId("u2"), RoleId("u3")
Lists = list[tuple[str, str, str]]


@pytest.fixture
def snapshot() -> Snapshot:
    return after(populated(), CreateRoleOp(name="ann"), CreateRoleOp(name="bob"))


def acl(snapshot: Snapshot, name: str) -> Lists:
    return [(e.grantee, e.grantor, e.letters) for e in item(snapshot, name).privileges]


def grant(snapshot: Snapshot, name: str, grantee: RoleId, letters: str) -> GrantPrivilegesOp:
    key = object_key(item(snapshot, name))
    return GrantPrivilegesOp(target=key, grantee=grantee, letters=letters)


def revoke(snapshot: Snapshot, name: str, grantee: RoleId, letters: str) -> RevokePrivilegesOp:
    key = object_key(item(snapshot, name))
    return RevokePrivilegesOp(target=key, grantee=grantee, letters=letters)


@pytest.mark.parametrize(("name", "letters"), [("t", "arwd"), ("v", "r"), ("m", "r"), ("i", None)])
def test_owners_may_do_all_that_makes_sense(
    snapshot: Snapshot, name: str, letters: str | None
) -> None:
    owned = [] if letters is None else [(DEFAULT_ROLE_ID, DEFAULT_ROLE_ID, letters)]
    assert acl(snapshot, name) == owned


def test_a_new_environment_lets_everyone_look_around() -> None:
    snapshot = new_snapshot()
    shared: list[Guarded] = [
        *snapshot.databases.values(),
        *snapshot.schemas.values(),
        *snapshot.clusters.values(),
    ]
    assert len(shared) == 8
    for found in shared:
        assert letters_on(found, {PUBLIC_ROLE_ID}) == "U", found.name
        assert letters_on(found, {SUPPORT_ROLE_ID}) == "U", found.name


def test_a_new_database_is_its_owners_but_everyone_may_use_its_schema_public() -> None:
    snapshot = after(new_snapshot(), CreateDatabaseOp(name="d", owner=DEFAULT_ROLE_ID))
    database = snapshot.database_named("d")
    assert database is not None
    public = snapshot.schema_named(database.database_id, "public")
    assert public is not None
    assert letters_on(database, {PUBLIC_ROLE_ID}) == ""
    assert letters_on(public, {PUBLIC_ROLE_ID}) == "U"
    op = CreateSchemaOp(database_id=database.database_id, name="own", owner=DEFAULT_ROLE_ID)
    own = after(snapshot, op).schema_named(database.database_id, "own")
    assert own is not None
    assert letters_on(own, {PUBLIC_ROLE_ID}) == ""


def test_letters_add_up_and_go_one_by_one(snapshot: Snapshot) -> None:
    made = after(snapshot, grant(snapshot, "t", ANN, "rw"))
    made = after(made, grant(made, "t", ANN, "a"))
    assert (ANN, DEFAULT_ROLE_ID, "arw") in acl(made, "t")
    made = after(made, revoke(made, "t", ANN, "wd"))
    assert (ANN, DEFAULT_ROLE_ID, "ar") in acl(made, "t")
    assert acl(after(made, revoke(made, "t", ANN, "ar")), "t") == acl(snapshot, "t")


def test_the_order_of_grants_does_not_show(snapshot: Snapshot) -> None:
    ops: list[Op] = [
        grant(snapshot, "t", PUBLIC_ROLE_ID, "r"),
        grant(snapshot, "t", BOB, "r"),
        grant(snapshot, "t", ANN, "ar"),
    ]
    one, other = after(snapshot, *ops), after(snapshot, *reversed(ops))
    assert item(one, "t") == item(other, "t")
    assert [grantee for grantee, _, _ in acl(one, "t")] == ["u1", "u2", "u3", "p"]


def test_a_grant_is_audited_once_and_one_that_changes_nothing_never(snapshot: Snapshot) -> None:
    op = grant(snapshot, "t", ANN, "r")
    result = transact(snapshot, [op, op], now_ms=1, user="materialize")
    events = [u.object for u in result.updates if isinstance(u.object, AuditEvent)]
    assert [(e.event_type, e.object_type) for e in events] == [("grant", "table")]
    assert events[0].details["grantee_id"] == ANN


def test_the_new_owner_takes_the_place_of_the_old(snapshot: Snapshot) -> None:
    made = after(snapshot, grant(snapshot, "t", BOB, "r"))
    made = after(made, ChangeOwnerOp(target=object_key(item(made, "t")), new_owner=ANN))
    assert acl(made, "t") == [(ANN, ANN, "arwd"), (BOB, ANN, "r")]
    assert item(made, "i").owner == ANN
    assert faults_of(made) == []


def test_groups_and_everyone_lend_what_they_have(snapshot: Snapshot) -> None:
    made = after(
        snapshot,
        GrantRoleOp(role_id=BOB, member_id=ANN, grantor=SYSTEM_ROLE_ID),
        grant(snapshot, "t", BOB, "r"),
        grant(snapshot, "t", PUBLIC_ROLE_ID, "a"),
        SetSystemPrivilegeOp(SystemPrivilege(grantee=BOB, grantor=SYSTEM_ROLE_ID, privileges="B")),
    )
    assert letters_on(item(made, "t"), acting_roles(made, ANN)) == "ar"
    assert letters_on(item(made, "t"), acting_roles(made, BOB)) == "ar"
    assert system_letters(made, acting_roles(made, ANN)) == "B"
    assert system_letters(made, {ANN}) == ""


@pytest.mark.parametrize(
    ("creator", "database", "schema", "applies"),
    [
        (DEFAULT_ROLE_ID, None, None, True),
        (PUBLIC_ROLE_ID, None, None, True),
        (DEFAULT_ROLE_ID, "u1", None, True),
        (DEFAULT_ROLE_ID, "u1", "u1", True),
        (ANN, None, None, False),
        (DEFAULT_ROLE_ID, "u2", None, False),
        (DEFAULT_ROLE_ID, "u1", "u3", False),
    ],
)
def test_default_privileges_hold_for_objects_to_come_where_they_are_meant(
    snapshot: Snapshot, creator: RoleId, database: str | None, schema: str | None, applies: bool
) -> None:
    """Schema u2 is the other database's `public`, u3 another one beside the first."""
    made = after(snapshot, CreateDatabaseOp(name="d", owner=DEFAULT_ROLE_ID))
    database_id = DatabaseId("u1")
    made = after(made, CreateSchemaOp(database_id=database_id, name="s", owner=DEFAULT_ROLE_ID))
    wanted = DefaultPrivilege(
        role_id=creator,
        database_id=None if database is None else DatabaseId(database),
        schema_id=None if schema is None else SchemaId(schema),
        object_type="table",
        grantee=BOB,
        privileges="r",
    )
    made = after(made, SetDefaultPrivilegeOp(wanted), create_table("new"))
    made = after(made, create_view("seen", item(made, "new")))
    for name in ("new", "seen"):
        assert ((BOB, DEFAULT_ROLE_ID, "r") in acl(made, name)) is applies
    assert (BOB, DEFAULT_ROLE_ID, "r") not in acl(made, "t")


def drop_reasons(snapshot: Snapshot, role: RoleId) -> list[str]:
    with pytest.raises(DependentObjectsStillExist) as refused:
        transact(snapshot, [DropRoleOp(role)], now_ms=1, user=None)
    return (refused.value.detail or "").splitlines()


def test_a_role_that_something_names_says_what(snapshot: Snapshot) -> None:
    made = after(snapshot, grant(snapshot, "t", ANN, "r"))
    named = 'TABLE "materialize.public.t"'
    assert drop_reasons(made, ANN) == [f"ann: privileges on {named} granted by materialize"]
    made = after(made, ChangeOwnerOp(target=object_key(item(made, "v")), new_owner=BOB))
    seen = 'VIEW "materialize.public.v"'
    assert drop_reasons(made, BOB) == [
        f"bob: owner of {seen}",
        f"bob: privileges on {seen} granted by bob",
        f"bob: privileges granted on {seen} to bob",
    ]


def test_a_role_that_nothing_names_any_more_goes(snapshot: Snapshot) -> None:
    made = after(snapshot, grant(snapshot, "t", ANN, "r"))
    gone = after(made, revoke(made, "t", ANN, "r"), DropRoleOp(ANN))
    assert ANN not in gone.roles
    with_table = DropItemsOp((item(made, "i").item_id, item(made, "t").item_id))
    views = DropItemsOp((item(made, "m").item_id, item(made, "v").item_id))
    assert ANN not in after(made, views, with_table, DropRoleOp(ANN)).roles


def test_a_role_s_attributes_and_variables_change(snapshot: Snapshot) -> None:
    made = after(
        snapshot,
        AlterRoleOp(role_id=ANN, login=False),
        SetRoleVariableOp(role_id=ANN, name="search_path", value="b"),
        SetRoleVariableOp(role_id=ANN, name="cluster", value="c"),
        SetRoleVariableOp(role_id=ANN, name="search_path", value=None),
    )
    ann = made.roles[ANN]
    assert (ann.superuser, ann.login, ann.variables) == (False, False, (("cluster", "c"),))
    for op in (
        AlterRoleOp(role_id=SYSTEM_ROLE_ID, superuser=False),
        SetRoleVariableOp(role_id=SYSTEM_ROLE_ID, name="cluster", value="c"),
    ):
        with pytest.raises(InsufficientPrivilege, match="system role 'mz_system'"):
            transact(made, [op], now_ms=1, user=None)


def test_a_list_that_names_nobody_is_noticed(snapshot: Snapshot) -> None:
    table = item(snapshot, "t")
    stranger = (AclItem(RoleId("u77"), table.owner, "r"),)
    broken = msgspec.structs.replace(table, privileges=stranger)
    assert any("role u77" in fault for fault in faults_of(_with(snapshot, table, broken)))


def _with(snapshot: Snapshot, before: Item, changed: Item) -> Snapshot:
    updates = [CatalogUpdate(before, -1), CatalogUpdate(changed, 1)]
    return snapshot.apply(updates, snapshot.upper)


OLD_ROWS = [
    ("config", '{"name":"catalog_version"}', '{"value":2}'),
    ("role", '{"role_id":"s1"}', '{"name":"mz_system","oid":10,"superuser":true}'),
    ("role", '{"role_id":"u4"}', '{"name":"kim","oid":20000,"superuser":false}'),
    ("database", '{"database_id":"u7"}', '{"name":"d","oid":20001,"owner":"u4"}'),
    (
        "item",
        '{"item_id":"u5"}',
        '{"create_sql":"CREATE VIEW v AS SELECT 1","definition":{"is":"view"},"depends_on":[],'
        '"name":"v","oid":20003,"owner":"u4","schema_id":"u1","versions":[]}',
    ),
]


def test_items_of_older_catalogs_belong_to_their_owners() -> None:
    rows = upgraded([StoredRow(*row) for row in OLD_ROWS], stored=2, wanted=3)
    found = {type(one).__name__: one for one in map(decode_object, rows)}
    view, database, kim = found["Item"], found["Database"], found["Role"]
    assert isinstance(view, Item)
    assert view.privileges == (AclItem(RoleId("u4"), RoleId("u4"), "r"),)
    # Support's role does not exist there, and it is not the first database.
    assert isinstance(database, Database)
    assert database.privileges == (AclItem(RoleId("u4"), RoleId("u4"), "UC"),)
    assert isinstance(kim, Role)
    assert (kim.login, kim.variables) == (None, ())
