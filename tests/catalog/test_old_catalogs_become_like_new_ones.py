"""An environment that an old version made is after its upgrade what a new one is."""

import ast
import json
from pathlib import Path

import pytest

from evertide.catalog.checks import faults_of
from evertide.catalog.durable import upgrade
from evertide.catalog.durable.bootstrap import bootstrap_updates
from evertide.catalog.durable.codec import CATALOG_VERSION, decode_object, encode_object
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.upgrade.from_2_to_3 import from_2_to_3
from evertide.catalog.durable.upgrade.plain import Plain, PlainRow
from evertide.catalog.durable.upgrade.steps import upgraded
from evertide.catalog.faults import CatalogFault
from evertide.catalog.objects import CatalogUpdate, IdAllocator, IntrospectionSourceIndex
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import ENVIRONMENT

HERE = Path(__file__).parent
STEPS = sorted(Path(upgrade.__file__).parent.glob("from_*.py"))
# What a step may use: rows as plain values, which are the same in all versions.
SAME_FOR_EVER = {"evertide.catalog.durable.upgrade.plain"}


def new_of(version: int) -> list[StoredRow]:
    """All rows of an environment that this version has just made."""
    rows = json.loads((HERE / f"version_{version}_new.json").read_text())
    return [StoredRow(*row) for row in rows]


def loaded(rows: list[StoredRow]) -> Snapshot:
    return Snapshot().apply([CatalogUpdate(decode_object(row), 1) for row in rows], Timestamp(2))


@pytest.mark.parametrize("version", range(1, CATALOG_VERSION))
def test_an_upgraded_empty_environment_equals_a_new_one(version: int) -> None:
    old = upgraded(new_of(version), stored=version, wanted=CATALOG_VERSION)
    new = [encode_object(u.object) for u in bootstrap_updates(ENVIRONMENT, 1_000)]
    assert sorted(encode_object(decode_object(row)) for row in old) == sorted(new)
    assert faults_of(loaded(list(old))) == []


def test_every_cluster_gets_its_own_reports_and_ids_go_on_after_them() -> None:
    cluster = '{"name":"%s","owner":"u1","variant":{"is":"unmanaged"}}'
    more = [StoredRow("cluster", f'{{"cluster_id":"u{n}"}}', cluster % f"c{n}") for n in (10, 2, 9)]
    allocator = StoredRow("id_allocator", '{"name":"cluster"}', '{"next_number":11}')
    first = [row for row in new_of(1) if (row.kind, row.key) != (allocator.kind, allocator.key)]
    rows = upgraded([*first, allocator, *more], stored=1, wanted=CATALOG_VERSION)
    indexes = [o for o in map(decode_object, rows) if isinstance(o, IntrospectionSourceIndex)]
    by_number = sorted(indexes, key=lambda index: int(index.index_id.removeprefix("si")))
    assert [i.cluster_id for i in by_number] == [f"u{n}" for n in (1, 1, 2, 2, 9, 9, 10, 10)]
    snapshot = loaded(list(rows))
    assert faults_of(snapshot) == []
    assert snapshot.next_numbers["introspection_source_index"] == 9
    assert snapshot.next_numbers["oid"] == max(i.oid for i in indexes) + 1


def test_an_upgrade_leaves_every_other_row_as_it_was() -> None:
    before, after = set(new_of(1)), set(upgraded(new_of(1), stored=1, wanted=2))
    gone = [decode_object(row) for row in before - after]
    assert {(type(o).__name__, getattr(o, "name", None)) for o in gone} == {
        ("Config", "catalog_version"),
        (IdAllocator.__name__, "oid"),
    }


def test_an_item_is_told_in_which_cluster_it_runs() -> None:
    """Goal: definitions stand alone. Those that name a cluster stay as they are, byte for byte."""
    texts = {
        'CREATE INDEX "i" ON "t" (a)': 'CREATE INDEX "i" IN CLUSTER "a ""b""" ON "t" (a)',
        "CREATE INDEX i ON t (a)": 'CREATE INDEX i IN CLUSTER "a ""b""" ON t (a)',
        'CREATE MATERIALIZED VIEW "d"."s"."x IN CLUSTER y" AS SELECT 1': (
            'CREATE MATERIALIZED VIEW "d"."s"."x IN CLUSTER y" IN CLUSTER "a ""b""" AS SELECT 1'
        ),
        "CREATE MATERIALIZED VIEW d.s.v (x, y) AS SELECT 1, 2": (
            'CREATE MATERIALIZED VIEW d.s.v (x, y) IN CLUSTER "a ""b""" AS SELECT 1, 2'
        ),
    }
    texts |= {
        text: text
        for text in (
            "CREATE INDEX i IN CLUSTER c ON t (a)",
            'CREATE INDEX "i (x" IN CLUSTER c ON t (a)',
            "CREATE MATERIALIZED VIEW v IN CLUSTER c AS SELECT 1",
            'CREATE MATERIALIZED VIEW d.s.v (x) IN CLUSTER "default" AS SELECT 1',
            'CREATE MATERIALIZED VIEW d.s.v (x, y) IN CLUSTER "default" AS SELECT 1, 2',
            'CREATE MATERIALIZED VIEW d.s."v (x" ("a ""b""", "c, (d)") IN CLUSTER c AS SELECT 1, 2',
        )
    }
    cluster = PlainRow(
        "cluster",
        {"cluster_id": "u7"},
        {"name": 'a "b"', "owner": "u1", "variant": {"is": "unmanaged"}},
    )
    for number, (before, wanted) in enumerate(texts.items()):
        value: dict[str, Plain] = {"create_sql": before, "definition": {"cluster_id": "u7"}}
        row = PlainRow("item", {"item_id": f"u{number}"}, value)
        found = next(one for one in from_2_to_3([cluster, row]) if one.kind == "item")
        assert found.value["create_sql"] == wanted


@pytest.mark.parametrize("path", STEPS, ids=lambda path: path.stem)
def test_a_step_imports_nothing_of_today(path: Path) -> None:
    """Goal: today's objects move on without changing what an old step does."""
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if _is_import(node)]
    named = {name for node in imports for name in _modules(node)}
    assert {name for name in named if name.startswith("evertide")} <= SAME_FOR_EVER


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    assert isinstance(node, ast.Import)
    return [alias.name for alias in node.names]


@pytest.mark.parametrize("version", [0, -3])
def test_a_version_that_never_was_is_told(version: int) -> None:
    with pytest.raises(CatalogFault, match=f"of version {version}, which never was"):
        upgraded(new_of(1), stored=version, wanted=CATALOG_VERSION)
