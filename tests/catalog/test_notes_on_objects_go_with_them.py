"""Comments, memberships and default privileges live as long as what they are about."""

import pytest

from evertide.catalog.checks import faults_of
from evertide.catalog.drop import with_dependants
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID, SYSTEM_ROLE_ID
from evertide.catalog.objects import (
    Comment,
    DefaultPrivilege,
    ObjectKind,
    Role,
    RoleMembership,
    StorageUsage,
    SystemPrivilege,
    object_key,
)
from evertide.catalog.ops import (
    CreateRoleOp,
    CreateSchemaOp,
    CreateSecretOp,
    DropItemsOp,
    DropRoleOp,
    DropSchemaOp,
    DropSecretOp,
    GrantRoleOp,
    RecordStorageUsageOp,
    RevokeRoleOp,
    SetCommentOp,
    SetConfigOp,
    SetDefaultPrivilegeOp,
    SetSettingOp,
    SetSystemPrivilegeOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import DatabaseId, ItemId, RoleId, SchemaId
from tests.catalog.samples import PUBLIC, after, create_table, ids, item, populated

OWNER = DEFAULT_ROLE_ID


def comments(snapshot: Snapshot) -> dict[tuple[str, int | None], str]:
    return {(c.object_id, c.sub_id): c.comment for c in snapshot.of_type(Comment)}


def role(snapshot: Snapshot, name: str) -> Role:
    found = snapshot.role_named(name)
    assert found is not None
    return found


def with_roles() -> Snapshot:
    return after(populated(), CreateRoleOp(name="staff"), CreateRoleOp(name="ann"))


def grant(snapshot: Snapshot, name: str, member: str, grantor: RoleId = OWNER) -> GrantRoleOp:
    return GrantRoleOp(
        role_id=role(snapshot, name).role_id,
        member_id=role(snapshot, member).role_id,
        grantor=grantor,
    )


def test_a_comment_is_set_changed_and_taken_away() -> None:
    snapshot = populated()
    table = object_key(item(snapshot, "t"))
    snapshot = after(snapshot, SetCommentOp(target=table, comment="one"))
    snapshot = after(snapshot, SetCommentOp(target=table, column=2, comment="price"))
    snapshot = after(snapshot, SetCommentOp(target=table, comment="two"))
    assert comments(snapshot) == {("u1", None): "two", ("u1", 2): "price"}
    snapshot = after(snapshot, SetCommentOp(target=table, comment=None))
    assert comments(snapshot) == {("u1", 2): "price"}


def test_comments_go_with_the_item() -> None:
    snapshot = populated()
    op = SetCommentOp(target=object_key(item(snapshot, "t")), column=1, comment="c")
    snapshot = after(snapshot, op)
    going = with_dependants(snapshot, ids(item(snapshot, "t")))
    snapshot = after(snapshot, DropItemsOp(going))
    assert comments(snapshot) == {}
    assert faults_of(snapshot) == []


def test_a_comment_on_nothing_is_refused() -> None:
    with pytest.raises(SqlError, match="unknown cluster u9"):
        after(populated(), SetCommentOp(target=("cluster", "u9"), comment="c"))
    missing = SetCommentOp(target=("item", "u1"), column=9, comment="c")
    with pytest.raises(SqlError, match="column 9 of item u1 does not exist"):
        after(populated(), missing)


def test_membership_is_granted_once_and_revoked() -> None:
    snapshot = with_roles()
    op = grant(snapshot, "staff", "ann")
    snapshot = after(after(snapshot, op), op)
    assert [m.member_id for m in snapshot.of_type(RoleMembership)] == [op.member_id]
    gone = RevokeRoleOp(role_id=op.role_id, member_id=op.member_id)
    snapshot = after(after(snapshot, gone), gone)
    assert not list(snapshot.of_type(RoleMembership))


def test_roles_cannot_be_members_of_each_other() -> None:
    snapshot = with_roles()
    snapshot = after(snapshot, grant(snapshot, "staff", "ann"))
    with pytest.raises(SqlError, match='role "ann" is a member of role "staff"'):
        after(snapshot, grant(snapshot, "ann", "staff"))
    with pytest.raises(SqlError, match='role "ann" is a member of role "ann"'):
        after(snapshot, grant(snapshot, "ann", "ann"))


@pytest.mark.parametrize("name", ["staff", "ann"])
def test_memberships_go_with_either_role(name: str) -> None:
    snapshot = with_roles()
    snapshot = after(snapshot, grant(snapshot, "staff", "ann"))
    snapshot = after(snapshot, DropRoleOp(role(snapshot, name).role_id))
    assert not list(snapshot.of_type(RoleMembership))
    assert faults_of(snapshot) == []


def test_a_role_that_owns_or_granted_something_stays() -> None:
    snapshot = with_roles()
    with pytest.raises(SqlError, match='role "materialize" cannot be dropped') as refused:
        after(snapshot, DropRoleOp(OWNER))
    assert refused.value.code == "2BP01"
    ann = role(snapshot, "ann").role_id
    snapshot = after(snapshot, grant(snapshot, "staff", "materialize", grantor=ann))
    with pytest.raises(SqlError, match='role "ann" cannot be dropped'):
        after(snapshot, DropRoleOp(ann))
    with pytest.raises(SqlError, match="system role 'mz_system' cannot be modified"):
        after(snapshot, DropRoleOp(SYSTEM_ROLE_ID))


def default_privilege(schema_id: SchemaId | None, privileges: str = "r") -> DefaultPrivilege:
    return DefaultPrivilege(
        role_id=OWNER,
        database_id=DatabaseId("u1"),
        schema_id=schema_id,
        object_type="table",
        grantee=RoleId("p"),
        privileges=privileges,
    )


def test_default_privileges_change_and_go_with_their_schema() -> None:
    schema = CreateSchemaOp(database_id=DatabaseId("u1"), name="s", owner=OWNER)
    snapshot = after(populated(), schema)
    found = snapshot.schema_named(DatabaseId("u1"), "s")
    assert found is not None
    before = set(snapshot.of_type(DefaultPrivilege))
    for privileges in ("r", "ra"):
        wanted = default_privilege(found.schema_id, privileges)
        snapshot = after(snapshot, SetDefaultPrivilegeOp(wanted))
        assert set(snapshot.of_type(DefaultPrivilege)) - before == {wanted}
    without = after(snapshot, SetDefaultPrivilegeOp(default_privilege(found.schema_id, "")))
    assert set(without.of_type(DefaultPrivilege)) == before
    dropped = after(snapshot, DropSchemaOp(found.schema_id))
    assert set(dropped.of_type(DefaultPrivilege)) == before


def test_system_privileges_are_set_and_taken_away() -> None:
    snapshot = with_roles()
    ann = role(snapshot, "ann").role_id
    before = set(snapshot.of_type(SystemPrivilege))
    wanted = SystemPrivilege(grantee=ann, grantor=OWNER, privileges="N")
    snapshot = after(snapshot, SetSystemPrivilegeOp(wanted))
    assert set(snapshot.of_type(SystemPrivilege)) - before == {wanted}
    nothing = SystemPrivilege(grantee=ann, grantor=OWNER, privileges="")
    assert set(after(snapshot, SetSystemPrivilegeOp(nothing)).of_type(SystemPrivilege)) == before


def test_a_secret_shares_the_namespace_of_items_and_keeps_its_schema() -> None:
    op = CreateSecretOp(schema_id=PUBLIC, name="key", owner=OWNER)
    snapshot = after(populated(), op)
    secret = snapshot.secret_named(PUBLIC, "key")
    assert secret is not None
    assert snapshot.item_named(PUBLIC, "key") is None
    for taken in (op, create_table("key")):
        with pytest.raises(SqlError, match="catalog item 'key' already exists"):
            after(snapshot, taken)
    assert not after(snapshot, DropSecretOp(secret.secret_id)).secrets


def test_storage_usage_is_written_and_not_kept() -> None:
    snapshot = populated()
    op = RecordStorageUsageOp(((ItemId("u1"), 10), (ItemId("u4"), 20)))
    result = transact(snapshot, [op], now_ms=77, user=None)
    usages = [u.object for u in result.updates if isinstance(u.object, StorageUsage)]
    assert [(u.usage_id, u.object_id, u.size_bytes, u.collected_at_ms) for u in usages] == [
        (1, "u1", 10, 77),
        (2, "u4", 20, 77),
    ]
    assert after(snapshot, op).next_numbers[ObjectKind.STORAGE_USAGE] == 3


def test_configs_and_settings_are_set_and_taken_away() -> None:
    snapshot = after(populated(), SetConfigOp("n", 3), SetSettingOp("s", "x"))
    assert (snapshot.configs["n"], snapshot.settings["s"]) == (3, "x")
    snapshot = after(snapshot, SetConfigOp("n", None), SetSettingOp("s", None))
    assert ("n" in snapshot.configs, "s" in snapshot.settings) == (False, False)
