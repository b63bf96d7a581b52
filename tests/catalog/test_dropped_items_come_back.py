"""Goal: what is dropped is no item any more, but nothing of it is lost until its time is over."""

from dataclasses import replace

import msgspec
import pytest

from evertide.catalog import grace
from evertide.catalog.builtin.registry import builtin_rows, find_builtin
from evertide.catalog.checks import faults_of
from evertide.catalog.drop import with_dependants
from evertide.catalog.dropped_ops import PurgeDroppedOp, UndropItemsOp
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.grace import GRACE_PERIOD, expired, grace_ms
from evertide.catalog.load_tables import COUNTER
from evertide.catalog.new_external import NewSource
from evertide.catalog.objects import (
    AuditEvent,
    CounterLoad,
    MaterializedView,
    ObjectKind,
    View,
)
from evertide.catalog.ops import (
    CreateRoleOp,
    DropItemsOp,
    DropRoleOp,
    Op,
    SetCommentOp,
    SetSystemConfigurationOp,
)
from evertide.catalog.privilege_ops import GrantPrivilegesOp
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.errors import DuplicateTable, UndefinedTable
from evertide.vocab.ids import GlobalId, ItemId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.replacing import apply, finish, stage, tables_and_view
from tests.catalog.samples import (
    DEFAULT,
    after,
    create,
    create_index,
    create_table,
    create_view,
    ids,
    item,
    new_snapshot,
    populated,
)
from tests.catalog.undropping import drop, undrop


def dropped_populated() -> tuple[Snapshot, Snapshot]:
    """Before and after everything was dropped with table t."""
    before = populated()
    return before, after(before, drop(before, item(before, "t")))


def events(snapshot: Snapshot, *ops: Op) -> list[tuple[str, str, object]]:
    result = transact(snapshot, ops, now_ms=2_000, user=None)
    found = (update.object for update in result.updates)
    return [
        (e.event_type, e.object_type, e.details["item"]) for e in found if isinstance(e, AuditEvent)
    ]


def test_what_is_dropped_is_kept_as_one_drop() -> None:
    before, gone = dropped_populated()
    assert not gone.items
    assert faults_of(gone) == []
    assert {i: d.item for i, d in gone.dropped_items.items()} == dict(before.items)
    assert len({d.drop_id for d in gone.dropped_items.values()}) == 1
    t = item(before, "t").item_id
    assert {d.name: d.dropped_with for d in gone.dropped_items.values()} == {
        "t": None, "v": t, "i": t, "m": t,
    }  # fmt: skip
    assert {d.dropped_at_ms for d in gone.dropped_items.values()} == {2_000}


def test_it_comes_back_as_it_was_but_under_new_global_ids_where_it_is_computed() -> None:
    before, gone = dropped_populated()
    t, v, i, m = (item(before, name) for name in "tvim")
    back = after(gone, undrop(gone, *ids(t, v, i, m)))
    assert not back.dropped_items
    assert faults_of(back) == []
    assert (item(back, "t"), item(back, "v")) == (t, v)
    index, view = item(back, "i"), item(back, "m")
    assert len(index.versions) == 1
    assert index.global_id not in (i.global_id, view.global_id)
    assert index == msgspec.structs.replace(i, versions=index.versions)
    assert [one.columns for one in view.versions] == [m.columns] * 2
    assert view.versions[0] == m.versions[0]
    assert isinstance(view.definition, MaterializedView)
    assert isinstance(m.definition, MaterializedView)
    assert view.definition.shard_id == m.definition.shard_id
    assert [past.global_id for past in view.definition.past] == [m.global_id]
    assert back.item_of(m.global_id) == view == back.item_of(view.global_id)


def test_a_view_that_is_computed_anew_gets_another_shard() -> None:
    before, gone = dropped_populated()
    order = ids(*(item(before, name) for name in "tvim"))
    back = after(gone, undrop(gone, *order, anew={order[-1]: Timestamp(77)}))
    view = item(back, "m")
    assert isinstance(view.definition, MaterializedView)
    assert view.definition.as_of == Timestamp(77)
    assert view.shard_id == f"item-{view.global_id}" != item(before, "m").shard_id
    assert faults_of(back) == []


def test_it_can_be_dropped_and_brought_back_again_and_again() -> None:
    snapshot = populated()
    order = ids(*(item(snapshot, name) for name in "tvim"))
    first = item(snapshot, "m").global_id
    for _ in range(4):
        snapshot = after(snapshot, drop(snapshot, item(snapshot, "t")))
        assert set(snapshot.dropped_items) == set(order)
        snapshot = after(snapshot, undrop(snapshot, *order))
        # Versions that say the same again and again are not kept.
        assert [one.global_id for one in item(snapshot, "m").versions[:-1]] == [first]
        assert faults_of(snapshot) == []


def versions(snapshot: Snapshot) -> list[GlobalId]:
    return [version.global_id for version in item(snapshot, "m").versions]


def cycle(snapshot: Snapshot) -> Snapshot:
    """All is dropped with t, and comes back."""
    gone = after(snapshot, drop(snapshot, item(snapshot, "t")))
    # What others read came to be before them, so by their ids inputs come first.
    order = sorted(gone.dropped_items, key=lambda item_id: (len(item_id), item_id))
    back = after(gone, undrop(gone, *order))
    assert faults_of(back) == []
    return back


def test_a_version_that_a_text_means_is_kept() -> None:
    first = cycle(populated())
    second = after(first, create_view("late", item(first, "m")))
    meant = item(second, "late").planned_against
    assert meant == (item(first, "m").global_id,)
    back = cycle(cycle(second))
    assert versions(back)[:-1] == versions(first)
    assert item(back, "m").version_among(item(back, "late").planned_against).global_id == meant[0]
    # What is dropped may come back, too.
    gone = after(second, drop(second, item(second, "late")))
    assert versions(cycle(cycle(gone)))[:-1] == versions(first)
    purged = after(gone, PurgeDroppedOp((item(second, "late").item_id,)))
    assert versions(cycle(purged))[:-1] == versions(first)[:-1]


def test_a_version_that_differs_is_kept() -> None:
    first = cycle(populated())
    gone = after(first, drop(first, item(first, "m")))
    op = undrop(gone, item(first, "m").item_id)
    other = replace(op.items[0], create_sql=op.items[0].create_sql.replace("SELECT", "SELECT ALL"))
    second = after(gone, UndropItemsOp((other,)))
    assert versions(second)[:-1] == versions(first)[:-1]
    assert item(second, "m").create_sql != item(first, "m").create_sql
    third = cycle(second)
    assert versions(third)[:-1] == versions(second)
    assert versions(cycle(third))[:-1] == versions(second)


def test_its_name_is_free_at_once_and_must_be_free_when_it_comes_back() -> None:
    before, gone = dropped_populated()
    first = item(before, "t").item_id
    taken = after(gone, create_table("t"))
    with pytest.raises(DuplicateTable, match="'t' already exists"):
        after(taken, undrop(taken, first))
    both = after(taken, drop(taken, item(taken, "t")))
    assert sorted(d.name for d in both.dropped_items.values()) == ["i", "m", "t", "t", "v"]
    assert item(after(both, undrop(both, first)), "t").item_id == first


def test_what_it_depends_on_must_be_there() -> None:
    before, gone = dropped_populated()
    v, m = item(before, "v").item_id, item(before, "m").item_id
    with pytest.raises(UndefinedTable, match="unknown catalog item"):
        after(gone, undrop(gone, v))
    op = undrop(gone, m)
    unknown = replace(op.items[0], item_id=ItemId("u99"))
    with pytest.raises(UndefinedTable, match="unknown dropped item 'u99'"):
        after(gone, UndropItemsOp((unknown,)))


def test_comments_come_back() -> None:
    snapshot = populated()
    key = ("item", item(snapshot, "t").item_id)
    snapshot = after(
        snapshot,
        SetCommentOp(target=key, comment="what was sold"),
        SetCommentOp(target=key, column=2, comment="in euros"),
    )
    said = snapshot.comments_on(ObjectKind.ITEM, key[1])
    gone = after(snapshot, drop(snapshot, item(snapshot, "t")))
    assert gone.comments_on(ObjectKind.ITEM, key[1]) == []
    back = after(gone, undrop(gone, ItemId(key[1])))
    assert back.comments_on(ObjectKind.ITEM, key[1]) == said
    assert len(said) == 2


def test_privileges_come_back_but_for_those_of_roles_that_are_gone() -> None:
    snapshot = after(populated(), *(CreateRoleOp(name=n) for n in ("ann", "bob")))
    ann, bob = (snapshot.role_named(name) for name in ("ann", "bob"))
    assert ann is not None
    assert bob is not None
    t = item(snapshot, "t")
    for role in (ann, bob):
        snapshot = after(
            snapshot,
            GrantPrivilegesOp(
                target=("item", t.item_id),
                grantee=role.role_id,
                letters="r",
            ),
        )
    granted = item(snapshot, "t").privileges
    gone = after(snapshot, drop(snapshot, item(snapshot, "t")))
    unchanged = after(gone, undrop(gone, t.item_id))
    assert item(unchanged, "t").privileges == granted
    # Nobody is kept from going by what is dropped.
    left = after(gone, DropRoleOp(bob.role_id))
    back = after(left, undrop(left, t.item_id))
    assert item(back, "t").privileges == tuple(e for e in granted if e.grantee != bob.role_id)
    assert faults_of(back) == []


def test_who_brings_back_what_nobody_owns_gets_it() -> None:
    snapshot = after(populated(), CreateRoleOp(name="ann"))
    ann = snapshot.role_named("ann")
    assert ann is not None
    snapshot = after(snapshot, replace(create_table("hers"), owner=ann.role_id))
    hers = item(snapshot, "hers")
    snapshot = after(snapshot, drop(snapshot, hers))
    snapshot = after(snapshot, DropRoleOp(ann.role_id))
    op = undrop(snapshot, hers.item_id)
    mine = replace(op.items[0], owner=DEFAULT_ROLE_ID)
    back = item(after(snapshot, UndropItemsOp((mine,))), "hers")
    assert back.owner == DEFAULT_ROLE_ID
    assert {(e.grantee, e.grantor) for e in back.privileges} == {(DEFAULT_ROLE_ID, DEFAULT_ROLE_ID)}


def test_sources_and_what_depends_on_them_are_gone_at_once() -> None:
    source = NewSource(cluster_id=DEFAULT, as_of=Timestamp(5), load=CounterLoad(tick_ms=5),
                       stored=True)  # fmt: skip
    snapshot = after(new_snapshot(), create("s", source, desc=COUNTER), create_table("t"))
    s, t = item(snapshot, "s"), item(snapshot, "t")
    snapshot = after(snapshot, create("v", View(), s, t), create_view("w", t))
    snapshot = after(snapshot, drop(snapshot, s, t))
    assert sorted(d.name for d in snapshot.dropped_items.values()) == ["t", "w"]


def test_replacements_are_gone_at_once_and_their_target_comes_back() -> None:
    snapshot = tables_and_view()
    snapshot = after(snapshot, stage("r", item(snapshot, "m"), item(snapshot, "u")))
    snapshot = after(snapshot, drop(snapshot, item(snapshot, "m")))
    assert sorted(d.name for d in snapshot.dropped_items.values()) == ["i", "m", "w"]


def test_a_view_that_was_changing_hands_comes_back_under_its_new_definition() -> None:
    snapshot = tables_and_view()
    snapshot = after(snapshot, stage("r", item(snapshot, "m"), item(snapshot, "u")))
    snapshot = after(snapshot, apply(snapshot, "m", "r"))
    m, t, u = (item(snapshot, name) for name in "mtu")
    assert set(m.depends_on) == {t.item_id, u.item_id}
    snapshot = after(snapshot, drop(snapshot, m))
    # The old definition's table may go.
    snapshot = after(snapshot, DropItemsOp(with_dependants(snapshot, [t.item_id])))
    back = after(snapshot, undrop(snapshot, m.item_id, anew={m.item_id: Timestamp(50)}))
    view = item(back, "m")
    assert view.depends_on == (u.item_id,)
    assert view.outgoing is None
    assert len(view.versions) == 3
    assert faults_of(back) == []


def test_texts_that_were_planned_against_a_later_version_keep_it() -> None:
    snapshot = tables_and_view()
    snapshot = after(snapshot, stage("r", item(snapshot, "m"), item(snapshot, "u")))
    snapshot = after(snapshot, apply(snapshot, "m", "r"))
    snapshot = after(snapshot, finish(snapshot, "m"))
    m = item(snapshot, "m")
    snapshot = after(snapshot, create_view("late", m), create_index("li", m))
    late = item(snapshot, "late")
    assert late.planned_against == (m.global_id,)
    # One is dropped before the view, and brought back after it.
    snapshot = after(snapshot, drop(snapshot, late))
    snapshot = after(snapshot, drop(snapshot, m))
    snapshot = after(snapshot, undrop(snapshot, m.item_id))
    snapshot = after(snapshot, undrop(snapshot, late.item_id))
    assert (
        item(snapshot, "m").version_among(item(snapshot, "late").planned_against) == m.versions[1]
    )
    assert faults_of(snapshot) == []


def test_what_one_transaction_makes_and_drops_was_never_there() -> None:
    snapshot = populated()
    made = after(snapshot, create_table("x"))
    gone = after(snapshot, create_table("x"), DropItemsOp((item(made, "x").item_id,), keep=True))
    assert not gone.dropped_items


def test_nothing_is_kept_without_a_grace_period_or_if_it_was_not_asked_for() -> None:
    snapshot = populated()
    everything = with_dependants(snapshot, ids(item(snapshot, "t")))
    assert not after(snapshot, DropItemsOp(everything)).dropped_items
    none = after(snapshot, SetSystemConfigurationOp(GRACE_PERIOD, "0 d"))
    assert not after(none, drop(none, item(none, "t"))).dropped_items


def test_it_is_kept_for_as_long_as_the_period_says_now(monkeypatch: pytest.MonkeyPatch) -> None:
    _, gone = dropped_populated()
    day_ms = 86_400_000
    assert grace_ms(gone) == day_ms
    assert expired(gone, 2_000 + day_ms - 1) == []
    assert len(expired(gone, 2_000 + day_ms)) == 4
    shorter = after(gone, SetSystemConfigurationOp(GRACE_PERIOD, "90 s"))
    assert len(expired(shorter, 2_000 + 90_000)) == 4
    assert expired(shorter, 2_000 + 89_999) == []
    assert len(expired(after(gone, SetSystemConfigurationOp(GRACE_PERIOD, "0 d")), 2_000)) == 4
    # An edit by hand may have left anything.
    assert grace_ms(after(gone, SetSystemConfigurationOp(GRACE_PERIOD, "soon"))) == day_ms
    more = after(gone, create_table("x"))
    more = after(more, drop(more, item(more, "x")))
    monkeypatch.setattr(grace, "MOST_KEPT", 1)
    assert sorted(d.name for d in expired(more, 2_001)) == ["i", "m", "t", "v"]


def test_purging_ends_it_and_is_told() -> None:
    before, gone = dropped_populated()
    t, v = item(before, "t").item_id, item(before, "v").item_id
    assert events(gone, PurgeDroppedOp((t, ItemId("u99")))) == [("purge", "table", "t")]
    left = after(gone, PurgeDroppedOp((t,)))
    assert t not in left.dropped_items
    assert v in left.dropped_items
    with pytest.raises(UndefinedTable):
        after(left, undrop(left, v))
    assert events(gone, undrop(gone, t)) == [("undrop", "table", "t")]
    assert [e[0] for e in events(before, drop(before, item(before, "m")))] == ["drop"]


def test_what_is_dropped_is_listed_apart() -> None:
    before, gone = dropped_populated()
    relation = find_builtin("mz_internal", "mz_dropped_objects")
    assert relation is not None
    rows = {row[5]: row for row in builtin_rows(relation, gone, database="materialize")}
    t = item(before, "t")
    day_us = 86_400_000_000
    assert rows["t"] == (
        t.item_id, t.oid, "table", "materialize", "public", "t", DEFAULT_ROLE_ID,
        2_000_000, 2_000_000 + day_us, None, t.create_sql,
    )  # fmt: skip
    assert rows["m"][2] == "materialized-view"
    assert rows["m"][9] == t.item_id
    objects = find_builtin("mz_catalog", "mz_objects")
    assert objects is not None
    listed = builtin_rows(objects, gone, database="materialize")
    assert not [row for row in listed if str(row[0]).startswith("u")]
