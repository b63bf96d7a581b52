"""Every kind that has a name can be renamed, every kind that has an owner can change hands."""

import pytest

from evertide.catalog.checks import faults_of
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import AuditEvent, ObjectKey
from evertide.catalog.ops import ChangeOwnerOp, CreateRoleOp, CreateSecretOp, RenameObjectOp
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import ItemId, RoleId
from tests.catalog.samples import PUBLIC, after, populated

RENAMED: list[ObjectKey] = [
    ("database", "u1"),
    ("schema", "u1"),
    ("cluster", "u1"),
    ("cluster_item", "u1"),
    ("role", "u2"),
    ("secret", "u5"),
]
OWNED: list[ObjectKey] = [key for key in RENAMED if key[0] != "role"] + [("item", "u1")]


@pytest.fixture
def snapshot() -> Snapshot:
    secret = CreateSecretOp(schema_id=PUBLIC, name="key", owner=DEFAULT_ROLE_ID)
    return after(populated(), CreateRoleOp(name="ann"), secret)


def field(snapshot: Snapshot, key: ObjectKey, name: str) -> object:
    return getattr(snapshot.find(key), name)


@pytest.mark.parametrize("key", RENAMED)
def test_a_renamed_object_is_found_by_its_new_name_only(key: ObjectKey, snapshot: Snapshot) -> None:
    op = RenameObjectOp(target=key, new_name="other")
    renamed = after(snapshot, op)
    assert field(renamed, key, "name") == "other"
    assert faults_of(renamed) == []
    result = transact(snapshot, [op], now_ms=1, user="u")
    (event,) = [u.object for u in result.updates if isinstance(u.object, AuditEvent)]
    wanted = {"id": key[1], "old_name": field(snapshot, key, "name"), "new_name": "other"}
    if key[0] == "schema":
        wanted["database_name"] = "materialize"
    assert (event.event_type, event.details) == ("alter", wanted)


def test_old_names_are_free_again(snapshot: Snapshot) -> None:
    renamed = after(snapshot, RenameObjectOp(target=("role", "u2"), new_name="other"))
    assert renamed.role_named("ann") is None
    assert after(renamed, CreateRoleOp(name="ann")).role_named("ann") is not None


def test_definitions_that_name_the_object_are_rewritten(snapshot: Snapshot) -> None:
    texts = ((ItemId("u4"), 'CREATE MATERIALIZED VIEW "m" IN CLUSTER "other" AS SELECT 1'),)
    op = RenameObjectOp(target=("cluster", "u1"), new_name="other", items_sql=texts)
    assert after(snapshot, op).items[ItemId("u4")].create_sql == texts[0][1]


@pytest.mark.parametrize(
    ("key", "name", "message"),
    [
        (("role", "u2"), "materialize", "role 'materialize' already exists"),
        (("secret", "u5"), "t", "secret 't' already exists"),
        (("role", "u2"), "mz_ann", "unacceptable name 'mz_ann'"),
        (("role", "s1"), "x", "system role 'mz_system' cannot be modified"),
        (("schema", "s1"), "x", "system schema 'mz_catalog' cannot be modified"),
        (("role", "u9"), "x", "unknown role u9"),
        (("setting", "environment_id"), "x", "setting environment_id has no name of its own"),
    ],
)
def test_a_name_that_cannot_be_is_refused(
    key: ObjectKey, name: str, message: str, snapshot: Snapshot
) -> None:
    with pytest.raises(SqlError, match=message):
        after(snapshot, RenameObjectOp(target=key, new_name=name))


@pytest.mark.parametrize("key", OWNED)
def test_an_object_changes_hands(key: ObjectKey, snapshot: Snapshot) -> None:
    changed = after(snapshot, ChangeOwnerOp(target=key, new_owner=RoleId("u2")))
    assert field(changed, key, "owner") == "u2"
    assert faults_of(changed) == []


def test_nobody_cannot_own(snapshot: Snapshot) -> None:
    with pytest.raises(SqlError, match="unknown role 'u9'"):
        after(snapshot, ChangeOwnerOp(target=("item", "u1"), new_owner=RoleId("u9")))
    with pytest.raises(SqlError, match="role u2 has no owner"):
        after(snapshot, ChangeOwnerOp(target=("role", "u2"), new_owner=RoleId("u1")))
