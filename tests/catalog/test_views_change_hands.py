"""Goal: a view gets another definition in two steps and keeps its id, its name and its dependants;
in between both definitions are known, and what either needs cannot go."""

import msgspec
import pytest

from evertide.catalog.builtin.registry import builtin_rows, find_builtin
from evertide.catalog.checks import faults_of
from evertide.catalog.objects import CatalogUpdate, Item, MaterializedView, NamedInput, PastVersion
from evertide.catalog.ops import (
    DropClusterOp,
    DropItemsOp,
    RenameItemOp,
    SetHistoryOp,
)
from evertide.catalog.replacement_ops import FinishHandoverOp
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    FeatureNotSupported,
    ObjectNotInPrerequisiteState,
    WrongObjectType,
)
from evertide.vocab.ids import GlobalId, ItemId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.replacing import (
    OTHER,
    THREE_COLUMNS,
    apply,
    events,
    finish,
    handed_over,
    handing_over,
    stage,
    staged,
    tables_and_view,
)
from tests.catalog.samples import DEFAULT, after, create_mv, create_view, ids, item


def view_of(snapshot: Snapshot, name: str) -> MaterializedView:
    definition = item(snapshot, name).definition
    assert isinstance(definition, MaterializedView)
    return definition


def test_the_view_gets_the_replacements_version_and_keeps_what_it_is() -> None:
    before, now = staged(), handing_over()
    old, r, new = item(before, "m"), item(before, "r"), item(now, "m")
    assert new.versions == (*old.versions, *r.versions)
    assert (new.global_id, new.desc) == (r.global_id, r.desc)
    assert new.create_sql == r.create_sql.replace('"r"', '"m"')
    kept = ("item_id", "oid", "schema_id", "name", "owner", "privileges", "shard_id", "history_ms")
    for field in kept:
        assert getattr(new, field) == getattr(old, field), field
    assert (new.cluster_id, view_of(now, "m").as_of) == (OTHER, Timestamp(9))
    assert r.item_id not in now.items
    assert now.item_of(old.global_id) == now.item_of(r.global_id) == new
    for name in "iwtuv":
        assert item(now, name) == item(before, name)
    assert now.replacement_of(new.item_id) is None
    assert faults_of(now) == []


def test_the_old_definition_is_still_there_as_it_was() -> None:
    before, now = staged(), handing_over()
    assert item(now, "m").outgoing == item(before, "m")
    assert item(handed_over(), "m").outgoing is None


def test_while_handing_over_it_depends_on_what_either_reads() -> None:
    now = handing_over()
    m, t, u = (item(now, name) for name in "mtu")
    assert m.depends_on == ids(t, u)
    assert m.reads == ids(u)
    for name, cluster_id in (("t", DEFAULT), ("u", OTHER)):
        with pytest.raises(DependentObjectsStillExist):
            after(now, DropItemsOp(ids(item(now, name))))
        assert m in now.items_in_cluster(cluster_id)
    now = after(now, DropItemsOp(ids(item(now, "i"))))
    for cluster_id in (DEFAULT, OTHER):
        with pytest.raises(DependentObjectsStillExist):
            after(now, DropClusterOp(cluster_id))
    done = after(now, finish(now, "m"))
    assert DEFAULT not in after(done, DropClusterOp(DEFAULT)).clusters


def test_afterwards_what_only_the_old_one_read_may_go() -> None:
    now = handed_over()
    m, t, u = (item(now, name) for name in "mtu")
    assert m.depends_on == m.reads == ids(u)
    assert m not in now.items_in_cluster(DEFAULT)
    gone = after(now, DropItemsOp(ids(item(now, "v"), t)))
    assert item(gone, "m") == m
    assert faults_of(gone) == []


def test_what_both_read_is_depended_on_afterwards() -> None:
    snapshot = tables_and_view()
    t, u = item(snapshot, "t"), item(snapshot, "u")
    snapshot = after(snapshot, stage("r", item(snapshot, "m"), u, t))
    snapshot = after(snapshot, apply(snapshot, "m", "r"))
    assert item(snapshot, "m").depends_on == ids(t, u)
    assert item(after(snapshot, finish(snapshot, "m")), "m").depends_on == ids(u, t)


def test_finishing_what_is_not_going_on_changes_nothing() -> None:
    now = handing_over()
    m = item(now, "m")
    done = after(now, finish(now, "m"))
    for snapshot, item_id, global_id in (
        (done, m.item_id, m.global_id),
        (now, m.item_id, m.versions[0].global_id),
        (now, ItemId("u999"), m.global_id),
        (now, item(now, "t").item_id, item(now, "t").global_id),
    ):
        late = FinishHandoverOp(item_id=item_id, global_id=global_id)
        assert after(snapshot, late).items == snapshot.items


def test_one_is_not_applied_before_the_last_is_through() -> None:
    now = handing_over()
    now = after(now, stage("r2", item(now, "m"), item(now, "t")))
    with pytest.raises(ObjectNotInPrerequisiteState, match="still being handed over"):
        after(now, apply(now, "m", "r2"))
    now = after(now, finish(now, "m"))
    assert len(item(after(now, apply(now, "m", "r2")), "m").versions) == 3


def test_a_replacement_is_for_its_target_only() -> None:
    snapshot = staged()
    snapshot = after(snapshot, create_mv("n", item(snapshot, "t")))
    for target in "nt":
        op = apply(snapshot, target, "r")
        with pytest.raises(WrongObjectType, match=rf"cannot replace .* {target} with .* r$"):
            after(snapshot, op)
    with pytest.raises(WrongObjectType, match="cannot replace materialized view m with"):
        after(snapshot, apply(snapshot, "m", "n"))


def test_two_replacements_that_cross_do_not_make_a_circle() -> None:
    """Each was fine when it was staged."""
    snapshot = tables_and_view()
    snapshot = after(snapshot, create_mv("n", item(snapshot, "t")))
    m, n = item(snapshot, "m"), item(snapshot, "n")
    snapshot = after(snapshot, stage("rm", m, n), stage("rn", n, m))
    snapshot = after(snapshot, apply(snapshot, "m", "rm"))
    with pytest.raises(FeatureNotSupported, match="would cause n to depend on itself"):
        after(snapshot, apply(snapshot, "n", "rn"))


def test_applying_is_audited() -> None:
    before = staged()
    m, r = item(before, "m"), item(before, "r")
    dropped, altered, moved = events(before, apply(before, "m", "r"))
    assert dropped[:2] == ("drop", "materialized-view")
    assert (dropped[2]["id"], dropped[2]["reason"]) == (r.item_id, "applied")
    assert altered[:2] == ("alter", "materialized-view")
    assert altered[2] == {
        "id": m.item_id,
        "target": {"database": "materialize", "schema": "public", "item": "m"},
        "replacement_id": r.item_id,
        "replacement": {"database": "materialize", "schema": "public", "item": "r"},
        "old_global_id": m.global_id,
        "new_global_id": r.global_id,
        "forward_time": False,
    }
    assert moved[2] == {"id": m.item_id, "old_cluster": DEFAULT, "new_cluster": OTHER}
    assert events(handing_over(), finish(handing_over(), "m")) == []


def test_how_long_its_past_stays_readable_is_the_targets() -> None:
    snapshot = staged()
    m = item(snapshot, "m")
    snapshot = after(
        snapshot, SetHistoryOp(item_id=m.item_id, history_ms=7_000, create_sql=m.create_sql)
    )
    now = after(snapshot, apply(snapshot, "m", "r"))
    assert item(now, "m").history_ms == 7_000


def test_earlier_definitions_know_what_their_names_meant() -> None:
    """Goal: a text can be planned later, though what it names has other names by then."""
    before, now = staged(), handed_over()
    old, t = item(before, "m"), item(before, "t")
    (past,) = view_of(now, "m").past
    assert past == PastVersion(
        global_id=old.global_id,
        create_sql=old.create_sql,
        depends_on=ids(t),
        cluster_id=DEFAULT,
        as_of=Timestamp(5),
        names=(NamedInput(name=("materialize", "public", "t"), item_id=t.item_id),),
    )
    renamed = after(
        now, RenameItemOp(item_id=t.item_id, new_name="elsewhere", create_sql=t.create_sql)
    )
    assert view_of(renamed, "m").past == (past,)
    assert item(renamed, "m").as_was(old.global_id) == old


def test_a_third_definition_keeps_both_before() -> None:
    snapshot = handed_over()
    first, second = item(staged(), "m"), item(snapshot, "m")
    wider = stage("r2", second, item(snapshot, "u"), desc=THREE_COLUMNS)
    snapshot = after(snapshot, wider)
    snapshot = after(snapshot, apply(snapshot, "m", "r2"))
    m = item(snapshot, "m")
    assert m.outgoing == second
    assert m.as_was(first.global_id) == first
    assert [version.desc.arity for version in m.versions] == [2, 2, 3]
    builtin = find_builtin("mz_internal", "mz_materialized_view_versions")
    assert builtin is not None
    assert list(builtin_rows(builtin, snapshot, database="materialize")) == [
        (m.item_id, 1, first.global_id, first.create_sql, False),
        (m.item_id, 2, second.global_id, second.create_sql, False),
        (m.item_id, 3, m.global_id, m.create_sql, True),
    ]


def test_new_items_are_planned_against_the_last_version_and_old_ones_stay() -> None:
    snapshot = handed_over()
    m = item(snapshot, "m")
    snapshot = after(snapshot, create_view("late", m, item(snapshot, "t")))
    assert item(snapshot, "w").planned_against == ()
    assert item(snapshot, "late").planned_against == (m.global_id,)
    assert m.version_among(item(snapshot, "w").planned_against) == m.versions[0]
    assert m.version_among(item(snapshot, "late").planned_against) == m.versions[1]
    assert m.version(m.versions[0].global_id) == m.versions[0]


def test_the_new_definition_is_planned_against_what_its_replacement_was() -> None:
    snapshot = handed_over()
    m = item(snapshot, "m")
    snapshot = after(snapshot, create_mv("n", item(snapshot, "t")))
    snapshot = after(snapshot, stage("rn", item(snapshot, "n"), m))
    assert item(snapshot, "rn").planned_against == (m.global_id,)
    snapshot = after(snapshot, apply(snapshot, "n", "rn"))
    n = item(snapshot, "n")
    assert n.planned_against == (m.global_id,)
    assert n.outgoing is not None
    assert n.outgoing.planned_against == ()
    assert faults_of(snapshot) == []


def broken(change: str) -> tuple[Snapshot, Item, Item]:
    """A snapshot, an item of it, and one that contradicts itself or others."""
    snapshot = staged() if change.startswith("replacement") else handing_over()
    found = item(snapshot, "r" if change.startswith("replacement") else "m")
    view = found.definition
    assert isinstance(view, MaterializedView)
    of_view: dict[str, dict[str, object]] = {
        "no past": {"past": ()},
        "not handing over": {"handing_over": False},
        "handing over to what is not read": {"depends_on_after": (ItemId("u1"), ItemId("u99"))},
        "replacement elsewhere": {"shard_id": "item-x"},
    }
    of_item: dict[str, dict[str, object]] = {
        "one version": {"versions": found.versions[-1:]},
        "other columns": {
            "versions": (
                found.versions[0],
                msgspec.structs.replace(found.versions[-1], columns=found.columns[:1]),
            )
        },
        "replacement of what is not depended on": {"depends_on": found.reads},
        "against nothing": {"planned_against": (GlobalId("u98"),)},
        "against another": {"planned_against": (item(snapshot, "v").global_id,)},
    }
    changed = msgspec.structs.replace(view, **of_view.get(change, {}))
    odd = msgspec.structs.replace(found, definition=changed, **of_item.get(change, {}))
    return snapshot, found, odd


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("no past", "does not have a definition for each of its earlier versions"),
        ("one version", "does not have a definition for each of its earlier versions"),
        ("other columns", "which does not only add columns at the end"),
        ("not handing over", "says how it is handing over, but is not"),
        ("handing over to what is not read", "does not depend on all that both versions do"),
        ("replacement elsewhere", "but not over its shard"),
        ("replacement of what is not depended on", "does not depend on its target"),
        ("against nothing", "was planned against u98, which is no version of what it reads"),
        ("against another", "which is no version of what it reads"),
    ],
)
def test_contradictions_are_told(change: str, fault: str) -> None:
    snapshot, sound, odd = broken(change)
    assert sound != odd
    assert faults_of(snapshot) == []
    updates = [CatalogUpdate(sound, -1), CatalogUpdate(odd, 1)]
    found = faults_of(snapshot.apply(updates, snapshot.upper))
    assert [each for each in found if fault in each], found


def test_only_views_have_versions() -> None:
    snapshot = handing_over()
    t, m = item(snapshot, "t"), item(snapshot, "m")
    odd = msgspec.structs.replace(t, versions=(*t.versions, m.versions[-1]))
    found = faults_of(snapshot.apply([CatalogUpdate(t, -1), CatalogUpdate(odd, 1)], snapshot.upper))
    assert [each for each in found if "has more than one version, but is no" in each]


def test_two_replacements_of_one_view_break_the_catalog() -> None:
    """The net below the words for users."""
    snapshot = staged()
    snapshot = after(snapshot, create_mv("n", item(snapshot, "t")))
    m, n = item(snapshot, "m"), item(snapshot, "n")
    assert isinstance(n.definition, MaterializedView)
    r = item(snapshot, "r")
    definition = msgspec.structs.replace(
        n.definition, replacement=r.replacement, shard_id=view_of(snapshot, "m").shard_id
    )
    odd = msgspec.structs.replace(n, definition=definition, depends_on=(m.item_id,))
    both = snapshot.apply([CatalogUpdate(n, -1), CatalogUpdate(odd, 1)], snapshot.upper)
    assert [each for each in faults_of(both) if "replacement of" in each]
