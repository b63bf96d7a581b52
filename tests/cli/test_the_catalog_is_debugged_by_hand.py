"""Goal: whoever looks after an environment can read and mend its catalog without a server."""

import json
from pathlib import Path

import pytest

from evertide.catalog.durable.codec import CATALOG_VERSION
from evertide.catalog.objects import Cluster
from evertide.catalog.ops import SetSystemConfigurationOp
from tests.catalog.samples import create_table, create_view, item
from tests.cli.conftest import Site

VERSION_KEY = '{"name": "catalog_version"}'


def test_a_clusters_name_is_edited_and_seen_by_the_next_server(site: Site) -> None:
    site.serve(create_table("t"))
    (line,) = [row for row in site.dump() if row["kind"] == "cluster"]
    value = {**line["value"], "name": "renamed"}
    said = site.debug("edit", "cluster", json.dumps(line["key"]), json.dumps(value))
    assert said.code == 0, said.err
    assert "epoch is 3" in said.out
    snapshot = site.serve()
    cluster = snapshot.cluster_named("renamed")
    assert cluster is not None
    assert snapshot.cluster_named("default") is None
    assert item(snapshot, "t").name == "t"


def test_what_a_dump_shows_can_be_pasted_into_an_edit(site: Site) -> None:
    site.serve(create_table("t"))
    before = site.dump()
    for kind in sorted({row["kind"] for row in before} - {"audit_event"}):
        row = next(row for row in site.dump() if row["kind"] == kind)
        said = site.debug("edit", kind, json.dumps(row["key"]), json.dumps(row["value"]))
        assert said.code == 0, (kind, said.err)
    told = {"audit_event", "id_allocator", "timestamp"}
    after = site.dump()
    assert [r for r in after if r["kind"] not in told] == [
        r for r in before if r["kind"] not in told
    ]
    assert "t" in {found.name for found in site.serve().items.values()}


def test_an_object_is_deleted_by_its_key(site: Site) -> None:
    site.serve(SetSystemConfigurationOp("max_tables", "7"))
    assert site.debug("delete", "system_configuration", '{"name":"max_tables"}').code == 0
    assert not site.serve().system_configurations


def test_changes_by_hand_are_audited(site: Site) -> None:
    key = '{"name":"max_tables"}'
    for arguments in (
        ("edit", key, '{"value":"1"}'),
        ("edit", key, '{"value":"2"}'),
        ("delete", key),
    ):
        said = site.debug(arguments[0], "system_configuration", *arguments[1:])
        assert said.code == 0, said.err
    events = [row["value"] for row in site.dump() if row["kind"] == "audit_event"]
    told = [e for e in events if e["details"].get("by") == "catalog-debug"]
    assert [e["event_type"] for e in told] == ["create", "alter", "drop"]
    assert {(e["object_type"], e["details"]["name"]) for e in told} == {
        ("system-configuration", "max_tables")
    }


def test_every_change_by_hand_raises_the_epoch(site: Site) -> None:
    epochs = [site.debug("epoch").out.strip()]
    site.debug("edit", "setting", '{"name":"a"}', '{"value":"1"}')
    epochs.append(site.debug("epoch").out.strip())
    site.debug("delete", "setting", '{"name":"a"}')
    epochs.append(site.debug("epoch").out.strip())
    assert epochs == ["1", "2", "3"]


CLUSTER = '{"cluster_id":"u1"}'


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("edit", "cluster", "no json", "{}"), "the key is not JSON"),
        (("edit", "cluster", CLUSTER, "{"), "the value is not JSON"),
        (("edit", "cluster", "[1]", "{}"), "the key must be a JSON object"),
        (("edit", "planet", CLUSTER, "{}"), "unknown object type planet"),
        (("edit", "cluster", CLUSTER, '{"name":"x"}'), "not an object of the catalog"),
        (
            (
                "edit",
                "cluster",
                CLUSTER,
                '{"name":"x","owner":"u1","variant":{"is":"virtual"},"more":1}',
            ),
            "more",
        ),
        (
            ("edit", "cluster", CLUSTER, '{"name":"x","owner":"u77","variant":{"is":"virtual"}}'),
            "role u77, which does not exist",
        ),
        (
            (
                "edit",
                "cluster",
                '{"cluster_id":"u8"}',
                '{"name":"default","owner":"u1","variant":{"is":"virtual"}}',
            ),
            "default",
        ),
        (("edit", "id_allocator", '{"name":"oid"}', '{"next_number":1}'), "cannot go back"),
        (("edit", "setting", '{"name":"a"}', '{"value":"postgres://u:…@h"}'), "password"),
        (("delete", "planet", CLUSTER), "unknown object type planet"),
        (("delete", "cluster", '{"cluster_id":"u99"}'), "there is no cluster"),
        (("delete", "cluster", "{"), "the key is not JSON"),
        (("delete", "database", '{"database_id":"u1"}'), "no longer exist"),
        (("delete", "role", '{"role_id":"u1"}'), 'refers to role "materialize" (u1)'),
        (("delete", "config", VERSION_KEY), "cannot be deleted"),
        (("delete", "id_allocator", '{"name":"user"}'), "cannot be deleted"),
        (("move", "--to", "elsewhere"), "--to must be one of"),
        (("edit", "cluster", CLUSTER), "required: VALUE"),
        (("bury",), "invalid choice"),
    ],
)
def test_bad_input_is_told_and_changes_nothing(
    site: Site, arguments: tuple[str, ...], said: str
) -> None:
    before = site.bytes()
    answer = site.debug(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert site.bytes() == before


def test_a_table_that_a_view_reads_cannot_be_deleted(site: Site) -> None:
    snapshot = site.serve(create_table("t"))
    site.serve(create_view("v", item(snapshot, "t")))
    answer = site.debug("delete", "item", '{"item_id":"u1"}')
    assert answer.code == 2
    assert 'table "t" (u1) cannot be deleted:\n' in answer.err
    assert '\n  view "v" (u2) refers to table "t" (u1), which would no longer exist\n' in answer.err


def test_of_many_that_need_an_object_ten_are_named(site: Site) -> None:
    snapshot = site.serve(create_table("t"))
    site.serve(*(create_view(f"v{number}", item(snapshot, "t")) for number in range(12)))
    lines = site.debug("delete", "item", '{"item_id":"u1"}').err.splitlines()
    assert len(lines) == 12
    assert all("would no longer exist" in line for line in lines[1:11])
    assert lines[11] == "  and 2 more"


def test_looking_changes_no_byte(site: Site, tmp_path: Path) -> None:
    before = site.bytes()
    for arguments in (("dump",), ("epoch",), ("upgrade-check",)):
        assert site.debug(*arguments).code == 0
    assert site.debug("dump", "--target", str(tmp_path / "dump.json")).code == 0
    assert site.bytes() == before
    lines = (tmp_path / "dump.json").read_text().splitlines()
    assert [json.loads(line) for line in lines] == site.dump()


def test_flags_may_come_before_the_action(site: Site) -> None:
    assert site.run(["catalog-debug", *site.flags, "epoch"]).out == "1\n"


def test_what_is_not_there_is_not_made(new_site: Site) -> None:
    for arguments in (("dump",), ("epoch",), ("upgrade-check",), ("move", "--to", "stash")):
        answer = new_site.debug(*arguments)
        assert answer.code == 2
        assert "evertide serve" in answer.err
    assert not new_site.directory.exists()


def test_an_upgrade_check_refuses_a_newer_catalog(site: Site) -> None:
    newer = f'{{"value": {CATALOG_VERSION + 1}}}'
    assert site.debug("edit", "config", VERSION_KEY, newer).code == 0
    before = site.bytes()
    answer = site.debug("upgrade-check")
    assert answer.code == 2
    assert f"version {CATALOG_VERSION + 1}" in answer.err
    assert site.debug("dump").code == 0
    assert site.debug("delete", "cluster", CLUSTER).code == 2
    assert site.bytes() == before
    today = f'{{"value": {CATALOG_VERSION}}}'
    assert site.debug("edit", "config", VERSION_KEY, today).code == 0
    assert site.debug("upgrade-check").code == 0
    site.serve()


def test_an_upgrade_check_knows_the_sizes_of_replicas(site: Site, tmp_path: Path) -> None:
    cluster = (
        '{"name":"c","owner":"u1","variant":{"is":"managed","size":"2","replication_factor":1}}'
    )
    said = site.debug("edit", "cluster", '{"cluster_id":"u7"}', cluster)
    assert said.code == 0, said.err
    sizes = tmp_path / "sizes.json"
    sizes.write_text('{"1": {}, "2": {}}')
    assert site.debug("upgrade-check", "--cluster-replica-sizes", str(sizes)).code == 0
    sizes.write_text('["1"]')
    answer = site.debug("upgrade-check", "--cluster-replica-sizes", str(sizes))
    assert answer.code == 5
    assert 'cluster "c" has the unknown size "2"' in answer.err
    sizes.write_text("{")
    assert site.debug("upgrade-check", "--cluster-replica-sizes", str(sizes)).code == 2
    assert isinstance(site.serve().cluster_named("c"), Cluster)


def test_passwords_are_never_printed(site: Site) -> None:
    site.debug("edit", "setting", '{"name":"a"}', '{"value":"at postgres://me:hunter2@host/x"}')
    said = site.debug("dump")
    assert "hunter2" not in said.out
    assert "postgres://me:…@host/x" in said.out
