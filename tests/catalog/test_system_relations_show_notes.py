"""Grants, comments, secrets, profiles and storage usage have real rows."""

from collections.abc import Iterable

import pytest

from evertide.catalog.builtin.notes import recent_storage_usage_rows, storage_usage_rows
from evertide.catalog.builtin.registry import builtin_rows, find_builtin
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID, SYSTEM_ROLE_ID
from evertide.catalog.objects import UNBILLED, ManagedCluster, StorageUsage, object_key
from evertide.catalog.ops import (
    CreateClusterOp,
    CreateClusterProfileOp,
    CreateRoleOp,
    CreateSecretOp,
    GrantRoleOp,
    SetCommentOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Interval, Row
from evertide.vocab.ids import ClusterId, ItemId, RoleId
from tests.catalog.samples import PUBLIC, after, item, new_snapshot, populated


def rows(snapshot: Snapshot, name: str) -> list[Row]:
    schema, relation = name.split(".")
    builtin = find_builtin(schema, relation)
    assert builtin is not None, name
    return list(builtin_rows(builtin, snapshot, database="materialize"))


@pytest.fixture
def snapshot() -> Snapshot:
    filled = populated()
    variant = ManagedCluster(size="1", replication_factor=1)
    return after(
        filled,
        CreateRoleOp(name="ann"),
        GrantRoleOp(role_id=DEFAULT_ROLE_ID, member_id=RoleId("u2"), grantor=SYSTEM_ROLE_ID),
        CreateSecretOp(schema_id=PUBLIC, name="key", owner=DEFAULT_ROLE_ID),
        SetCommentOp(target=object_key(item(filled, "m")), comment="sums"),
        SetCommentOp(target=object_key(item(filled, "t")), column=2, comment="in cents"),
        SetCommentOp(target=("cluster_item", "u1"), comment="the pool"),
        CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=variant),
        CreateClusterProfileOp(
            cluster_id=ClusterId("u2"),
            name="support",
            owner=DEFAULT_ROLE_ID,
            size="4",
            replication_factor=1,
            billed_as=UNBILLED,
        ),
    )


def test_role_members(snapshot: Snapshot) -> None:
    assert rows(snapshot, "mz_catalog.mz_role_members") == [("u1", "u2", "s1")]


def test_comments_say_what_they_are_about(snapshot: Snapshot) -> None:
    assert rows(snapshot, "mz_internal.mz_comments") == [
        ("u4", "materialized-view", None, "sums"),
        ("u1", "table", 2, "in cents"),
        ("u1", "cluster-replica", None, "the pool"),
    ]


def test_a_secret_is_an_object_without_a_value(snapshot: Snapshot) -> None:
    (secret,) = rows(snapshot, "mz_catalog.mz_secrets")
    assert secret[0] == "u5"
    assert secret[2:] == ("u1", "key", "u1", ("materialize=U/materialize",))
    kinds = {row[3]: row[4] for row in rows(snapshot, "mz_catalog.mz_objects")}
    assert kinds["key"] == "secret"
    assert "key" not in {row[3] for row in rows(snapshot, "mz_catalog.mz_relations")}


def test_a_profile_and_its_replica_find_each_other(snapshot: Snapshot) -> None:
    (profile,) = rows(snapshot, "mz_catalog.mz_cluster_profiles")
    assert profile[:7] == ("u2", "u3", "support", True, "4", 1, UNBILLED)
    assert profile[7:] == (False, Interval(0, 0, 1_000_000), "u1", None)
    replicas = {row[1]: row[7] for row in rows(snapshot, "mz_catalog.mz_cluster_replicas")}
    assert replicas == {"r1": None, "support_r1": "u3"}


def test_a_new_environment_grants_what_support_and_its_first_user_need() -> None:
    found = new_snapshot()
    assert set(rows(found, "mz_catalog.mz_default_privileges")) == {
        ("p", None, None, "cluster", "s2", "U"),
        ("p", None, None, "database", "s2", "U"),
        ("p", None, None, "schema", "s2", "U"),
        ("p", None, None, "type", "p", "U"),
    }
    assert rows(found, "mz_catalog.mz_system_privileges") == [
        ("mz_system=RBNP/mz_system",),
        ("materialize=RBNP/mz_system",),
    ]


def test_every_cluster_has_an_index_on_every_report(snapshot: Snapshot) -> None:
    objects = {row[0]: row for row in rows(snapshot, "mz_catalog.mz_objects")}
    found = [r for r in rows(snapshot, "mz_catalog.mz_indexes") if str(r[0]).startswith("si")]
    shown = {(objects[row[3]][3], row[4], row[5]) for row in found}
    assert shown == {
        (name, cluster_id, "s1")
        for name in ("mz_hydration_statuses", "mz_tick_records")
        for cluster_id in ("u1", "u2")
    }
    assert {objects[row[0]][4] for row in found} == {"index"}
    assert len({row[2] for row in found}) == len(found)


def usages(*sizes: tuple[int, str, int, int]) -> Iterable[StorageUsage]:
    for usage_id, object_id, size_bytes, at_ms in sizes:
        yield StorageUsage(
            usage_id=usage_id,
            object_id=ItemId(object_id),
            size_bytes=size_bytes,
            collected_at_ms=at_ms,
        )


def test_storage_usage_is_a_history_and_its_end() -> None:
    history = list(usages((1, "u1", 10, 5), (2, "u2", 7, 5), (4, "u1", 30, 9), (3, "u1", 20, 9)))
    assert list(storage_usage_rows(history)) == [
        ("u1", 10, 5_000),
        ("u2", 7, 5_000),
        ("u1", 30, 9_000),
        ("u1", 20, 9_000),
    ]
    assert sorted(recent_storage_usage_rows(history)) == [("u1", 30), ("u2", 7)]
