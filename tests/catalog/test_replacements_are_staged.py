"""Goal: what is staged is an item of its own over its target's shard, and changes nothing else."""

import pytest

from evertide.catalog.builtin.registry import builtin_rows, find_builtin
from evertide.catalog.checks import faults_of
from evertide.catalog.objects import (
    Comment,
    MaterializedView,
    ObjectKind,
    Replacement,
    object_key,
)
from evertide.catalog.ops import (
    ChangeOwnerOp,
    CreateRoleOp,
    DropItemsOp,
    GrantRoleOp,
    SetCommentOp,
)
from evertide.catalog.privilege_ops import AlterRoleOp
from evertide.catalog.replacement_ops import GiveUpApplyOp, NoteHydratedOp, SetApplyWhenReadyOp
from evertide.catalog.replacements import may_apply_itself
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    FeatureNotSupported,
    ObjectNotInPrerequisiteState,
    SqlError,
    UndefinedTable,
    WrongObjectType,
)
from evertide.vocab.ids import ItemId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import INT8, TEXT
from tests.catalog.replacing import (
    OTHER,
    THREE_COLUMNS,
    apply,
    events,
    handed_over,
    stage,
    staged,
    tables_and_view,
)
from tests.catalog.samples import (
    TWO_COLUMNS,
    after,
    create_index,
    create_mv,
    create_view,
    item,
)


def rows(snapshot: Snapshot, name: str) -> list[Row]:
    schema = "mz_catalog" if name == "mz_materialized_views" else "mz_internal"
    builtin = find_builtin(schema, name)
    assert builtin is not None
    return list(builtin_rows(builtin, snapshot, database="materialize"))


def test_it_is_over_its_targets_shard_but_has_none() -> None:
    snapshot = staged()
    r, m, u = (item(snapshot, name) for name in "rmu")
    assert isinstance(r.definition, MaterializedView)
    assert isinstance(m.definition, MaterializedView)
    assert r.definition.shard_id == m.shard_id
    assert r.shard_id is None
    assert r.global_id not in (m.global_id, m.item_id)
    assert r.depends_on == (u.item_id, m.item_id)
    assert r.reads == (u.item_id,)
    assert snapshot.replacement_of(m.item_id) == r
    assert snapshot.replacement_of(u.item_id) is None
    assert snapshot.stored_inputs([r.item_id]) == [u]
    assert r in snapshot.items_in_cluster(OTHER)
    assert (r.outgoing, m.outgoing) == (None, None)
    assert faults_of(snapshot) == []


def test_the_target_stays_as_it_was() -> None:
    before = tables_and_view()
    assert item(staged(), "m") == item(before, "m")


@pytest.mark.parametrize(
    ("target", "reads", "fault", "message"),
    [
        ("t", "u", WrongObjectType, "cannot replace table t with materialized view x"),
        ("v", "u", WrongObjectType, "cannot replace view v with materialized view x"),
        ("r", "u", FeatureNotSupported, "cannot replace r because it is itself a replacement"),
        (
            "m",
            "u",
            ObjectNotInPrerequisiteState,
            "cannot replace m because it already has a replacement: r",
        ),
        ("n", "n", FeatureNotSupported, "replacement would cause n to depend on itself"),
        ("n", "o", FeatureNotSupported, "replacement would cause n to depend on itself"),
        (
            "n",
            "r",
            FeatureNotSupported,
            "replacement materialized view r cannot be depended upon",
        ),
    ],
)
def test_what_cannot_be_replaced_is_told(
    target: str, reads: str, fault: type[SqlError], message: str
) -> None:
    snapshot = staged()
    snapshot = after(snapshot, create_mv("n", item(snapshot, "t")))
    snapshot = after(snapshot, create_view("n_seen", item(snapshot, "n")))
    snapshot = after(snapshot, create_mv("o", item(snapshot, "n_seen")))
    with pytest.raises(fault) as caught:
        after(snapshot, stage("x", item(snapshot, target), item(snapshot, reads)))
    assert caught.value.message == message


def test_a_target_that_is_gone_is_told() -> None:
    snapshot = tables_and_view()
    m = item(snapshot, "m")
    gone = after(snapshot, DropItemsOp(tuple(item(snapshot, n).item_id for n in "wim")))
    with pytest.raises(UndefinedTable):
        after(gone, stage("r", m, item(gone, "u")))


@pytest.mark.parametrize(
    "desc",
    [
        RelationDesc(TWO_COLUMNS.columns[:1]),
        RelationDesc(TWO_COLUMNS.columns[::-1]),
        RelationDesc((TWO_COLUMNS.columns[0], ColumnDesc("name", INT8))),
        RelationDesc((TWO_COLUMNS.columns[0], ColumnDesc("other", TEXT))),
        RelationDesc((TWO_COLUMNS.columns[0], ColumnDesc("name", TEXT, nullable=False))),
        RelationDesc((*TWO_COLUMNS.columns, ColumnDesc("more", TEXT, nullable=False))),
    ],
)
def test_columns_may_only_be_added_at_the_end(desc: RelationDesc) -> None:
    snapshot = tables_and_view()
    m, u = item(snapshot, "m"), item(snapshot, "u")
    with pytest.raises(FeatureNotSupported, match="replacement schema differs"):
        after(snapshot, stage("r", m, u, desc=desc))
    assert item(after(snapshot, stage("r", m, u, desc=THREE_COLUMNS)), "r").desc == THREE_COLUMNS


@pytest.mark.parametrize("make", [create_view, create_mv, create_index])
def test_nothing_may_depend_on_it(make: object) -> None:
    snapshot = staged()
    assert callable(make)
    with pytest.raises(FeatureNotSupported, match="view r cannot be depended upon"):
        after(snapshot, make("x", item(snapshot, "r")))


def test_its_target_goes_only_with_it() -> None:
    snapshot = staged()
    r, m = item(snapshot, "r"), item(snapshot, "m")
    with pytest.raises(DependentObjectsStillExist, match=r'"m": still depended upon by .*"r"'):
        after(snapshot, DropItemsOp(tuple(item(snapshot, n).item_id for n in "wim")))
    gone = after(snapshot, DropItemsOp(tuple(item(snapshot, n).item_id for n in "wimr")))
    assert not {r.item_id, m.item_id} & set(gone.items)


def test_discarding_it_frees_the_place() -> None:
    snapshot = staged()
    r, m = item(snapshot, "r"), item(snapshot, "m")
    discarded = after(snapshot, DropItemsOp((r.item_id,)))
    assert item(discarded, "m") == m
    assert discarded.replacement_of(m.item_id) is None
    again = after(discarded, stage("r", m, item(discarded, "t")))
    assert again.replacement_of(m.item_id) == item(again, "r")
    ((event, kind, details),) = events(snapshot, DropItemsOp((r.item_id,)))
    assert (event, kind, details["id"]) == ("drop", "materialized-view", r.item_id)
    assert (details["reason"], details["target_id"]) == ("discarded", m.item_id)


def test_staging_is_audited_with_the_target() -> None:
    snapshot = tables_and_view()
    m = item(snapshot, "m")
    ((event, kind, details),) = events(snapshot, stage("r", m, item(snapshot, "u")))
    assert (event, kind, details["target_id"]) == ("create", "materialized-view", m.item_id)
    ((_, _, plain),) = events(snapshot, create_mv("x", item(snapshot, "u")))
    assert "target_id" not in plain


def test_that_it_shall_be_applied_is_noted_and_audited_once() -> None:
    snapshot = staged()
    r, m = item(snapshot, "r"), item(snapshot, "m")
    op = SetApplyWhenReadyOp(replacement_id=r.item_id, forward_time=True)
    ((event, _, details),) = events(snapshot, op)
    assert (event, details["apply_when_ready"], details["forward_time"]) == ("alter", True, True)
    wanted = after(snapshot, op)
    assert item(wanted, "r").replacement == Replacement(
        target=m.item_id, apply_when_ready=True, forward_time=True
    )
    assert events(wanted, op) == []
    given_up = GiveUpApplyOp(replacement_id=r.item_id, reason="no replicas")
    ((event, _, details),) = events(wanted, given_up)
    assert (event, details["reason"]) == ("failed", "no replicas")
    assert after(wanted, given_up).items == snapshot.items
    assert events(snapshot, given_up) == []
    with pytest.raises(WrongObjectType, match='"m" is no replacement'):
        after(snapshot, SetApplyWhenReadyOp(replacement_id=m.item_id))
    with pytest.raises(UndefinedTable):
        after(snapshot, SetApplyWhenReadyOp(replacement_id=ItemId("u999")))


def test_that_it_is_hydrated_is_noted_and_audited_once() -> None:
    snapshot = staged()
    r, m = item(snapshot, "r"), item(snapshot, "m")
    op = NoteHydratedOp(replacement_id=r.item_id)
    ((event, kind, details),) = events(snapshot, op)
    assert (event, kind, details["target_id"]) == ("hydrated", "materialized-view", m.item_id)
    noted = after(snapshot, op)
    assert item(noted, "r").replacement == Replacement(target=m.item_id, hydrated=True)
    for late in (op, NoteHydratedOp(replacement_id=m.item_id)):
        assert events(noted, late) == []
    assert events(noted, NoteHydratedOp(replacement_id=ItemId("u999"))) == []


def test_system_relations_show_it() -> None:
    snapshot = staged()
    r, m = item(snapshot, "r"), item(snapshot, "m")
    assert rows(snapshot, "mz_replacements") == [(r.item_id, m.item_id)]
    shown = {row[3]: row[-1] for row in rows(snapshot, "mz_materialized_views")}
    assert shown == {"m": None, "r": m.item_id}
    versions = rows(snapshot, "mz_materialized_view_versions")
    assert versions == [
        (m.item_id, 1, m.global_id, m.create_sql, True),
        (r.item_id, 1, r.global_id, r.create_sql, True),
    ]
    shards = {row[0] for row in rows(snapshot, "mz_storage_shards")}
    assert m.item_id in shards
    assert r.item_id not in shards


def test_comments_on_it_vanish_when_it_is_applied_and_the_targets_stay() -> None:
    snapshot = staged()
    for name in "rm":
        target = (ObjectKind.ITEM.value, item(snapshot, name).item_id)
        snapshot = after(snapshot, SetCommentOp(target=target, comment=f"about {name}"))
    applied = after(snapshot, apply(snapshot, "m", "r"))
    assert [c.comment for c in applied.of_type(Comment)] == ["about m"]


def test_a_view_that_was_replaced_may_be_replaced_again() -> None:
    snapshot = handed_over()
    m = item(snapshot, "m")
    again = after(snapshot, stage("r2", m, item(snapshot, "t")))
    assert again.replacement_of(m.item_id) == item(again, "r2")
    assert faults_of(again) == []


def owned(*owners: str) -> Snapshot:
    """r is to apply itself; m and r, in this order, are owned by these."""
    snapshot = after(staged(), *(CreateRoleOp(name=name) for name in ("joe", "ann")))
    for name, owner in zip("mr", owners, strict=False):
        snapshot = give(snapshot, name, owner)
    r = item(snapshot, "r")
    return after(snapshot, SetApplyWhenReadyOp(replacement_id=r.item_id, forward_time=True))


def give(snapshot: Snapshot, name: str, owner: str) -> Snapshot:
    role = snapshot.role_named(owner)
    assert role is not None
    key = object_key(item(snapshot, name))
    return after(snapshot, ChangeOwnerOp(target=key, new_owner=role.role_id))


def test_it_goes_to_the_views_new_owner_who_has_not_asked_for_it() -> None:
    before = owned("joe")
    assert item(before, "r").owner == item(before, "m").owner
    now = give(before, "m", "ann")
    m, r = item(now, "m"), item(now, "r")
    ann = now.role_named("ann")
    assert ann is not None
    assert m.owner == r.owner == ann.role_id
    assert r.replacement == Replacement(target=m.item_id)
    told = events(before, ChangeOwnerOp(target=object_key(m), new_owner=ann.role_id))
    asked = [details for _, _, details in told if "apply_when_ready" in details]
    assert [(one["id"], one["apply_when_ready"]) for one in asked] == [(r.item_id, False)]


def test_who_is_given_a_replacement_has_not_asked_for_it() -> None:
    now = give(owned("joe"), "r", "ann")
    m, r = item(now, "m"), item(now, "r")
    assert r.owner != m.owner
    assert r.replacement == Replacement(target=m.item_id)


def test_only_who_could_apply_it_lets_it_apply_itself() -> None:
    assert may_apply_itself(item(owned("joe"), "r"), owned("joe"))
    foreign = owned("joe", "ann")
    joe, ann = (foreign.role_named(name) for name in ("joe", "ann"))
    assert joe is not None
    assert ann is not None
    assert not may_apply_itself(item(foreign, "r"), foreign)
    grant = GrantRoleOp(role_id=joe.role_id, member_id=ann.role_id, grantor=joe.role_id)
    member = after(foreign, grant)
    assert may_apply_itself(item(member, "r"), member)
    lent = after(foreign, AlterRoleOp(role_id=ann.role_id, superuser=True))
    assert may_apply_itself(item(lent, "r"), lent)
