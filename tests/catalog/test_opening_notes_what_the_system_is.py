"""Opening for writing brings up to date what the program, not a user, decides."""

from dataclasses import replace

import msgspec

from evertide.catalog.builtin.registry import BUILTINS, find_builtin
from evertide.catalog.checks import faults_of
from evertide.catalog.durable.opening import fingerprint, opened_updates
from evertide.catalog.objects import (
    CatalogUpdate,
    IntrospectionSourceIndex,
    SystemObjectMapping,
)
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.ids import ItemId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import INT4, TEXT
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.catalog.samples import new_snapshot, populated

NOW = {Timeline.EPOCH_MS: Timestamp(100), Timeline.CATALOG: Timestamp(3)}


def opened(
    snapshot: Snapshot,
    *,
    generation: int | None = None,
    timestamps: dict[Timeline, Timestamp] = NOW,
) -> Snapshot:
    return snapshot.apply(updates(snapshot, generation, timestamps), snapshot.upper)


def updates(
    snapshot: Snapshot,
    generation: int | None = None,
    timestamps: dict[Timeline, Timestamp] = NOW,
) -> tuple[CatalogUpdate, ...]:
    return opened_updates(
        snapshot, now_ms=5, deployment_generation=generation, timestamps=timestamps
    )


def mappings(snapshot: Snapshot) -> dict[str, SystemObjectMapping]:
    return {f"{m.schema}.{m.name}": m for m in snapshot.of_type(SystemObjectMapping)}


def test_every_system_relation_is_mapped_to_its_id() -> None:
    snapshot = opened(new_snapshot())
    found = mappings(snapshot)
    assert {name: m.object_id for name, m in found.items()} == {
        f"{b.schema}.{b.name}": b.item_id for b in BUILTINS
    }
    assert found["pg_catalog.pg_views"].object_type == "view"
    assert faults_of(snapshot) == []


def test_a_second_opening_changes_nothing() -> None:
    assert updates(opened(populated())) == ()


def test_a_relation_that_changed_or_went_is_noticed() -> None:
    snapshot = opened(new_snapshot())
    old = mappings(snapshot)["mz_catalog.mz_tables"]
    changed = msgspec.structs.replace(old, fingerprint="of another program")
    retired = msgspec.structs.replace(old, name="mz_retired", object_id=ItemId("s1"))
    edits = [CatalogUpdate(old, -1), CatalogUpdate(changed, 1), CatalogUpdate(retired, 1)]
    snapshot = snapshot.apply(edits, snapshot.upper)
    assert set(updates(snapshot)) == {
        CatalogUpdate(changed, -1),
        CatalogUpdate(old, 1),
        CatalogUpdate(retired, -1),
    }


def test_a_fingerprint_tells_every_difference_that_a_reader_sees() -> None:
    builtin = find_builtin("mz_catalog", "mz_databases")
    assert builtin is not None
    first, *rest = builtin.desc.columns
    shapes = [
        RelationDesc((ColumnDesc("other", first.type, nullable=first.nullable), *rest)),
        RelationDesc((ColumnDesc(first.name, INT4, nullable=first.nullable), *rest)),
        RelationDesc((ColumnDesc(first.name, TEXT, nullable=not first.nullable), *rest)),
        RelationDesc(tuple(rest)),
        RelationDesc((*rest, first)),
    ]
    others = [replace(builtin, desc=desc) for desc in shapes]
    others += [replace(builtin, name="x"), replace(builtin, schema="mz_internal")]
    prints = [fingerprint(each) for each in [builtin, *others]]
    assert len(set(prints)) == len(prints)
    assert fingerprint(replace(builtin, rows=None)) == fingerprint(builtin)


def test_timestamps_follow_the_oracle_and_never_go_back() -> None:
    snapshot = opened(new_snapshot())
    assert snapshot.timestamps == NOW
    behind = {Timeline.EPOCH_MS: Timestamp(50), Timeline.CATALOG: Timestamp(9)}
    snapshot = opened(snapshot, timestamps=behind)
    assert snapshot.timestamps == {Timeline.EPOCH_MS: 100, Timeline.CATALOG: 9}


def test_the_deployment_generation_changes_only_when_given() -> None:
    snapshot = opened(new_snapshot())
    assert snapshot.configs["deployment_generation"] == 0
    snapshot = opened(opened(snapshot, generation=4))
    assert snapshot.configs["deployment_generation"] == 4


def test_each_cluster_keeps_an_index_on_each_report_and_on_no_other() -> None:
    snapshot = opened(new_snapshot())
    first, second = sorted(snapshot.of_type(IntrospectionSourceIndex), key=lambda index: index.name)
    retired = msgspec.structs.replace(first, name="mz_retired")
    snapshot = snapshot.apply([CatalogUpdate(first, -1), CatalogUpdate(retired, 1)], snapshot.upper)
    found = sorted(opened(snapshot).of_type(IntrospectionSourceIndex), key=lambda index: index.name)
    assert [index.name for index in found] == [first.name, second.name]
    assert found[1] == second
    assert found[0].index_id == "si3"
