"""Goal: no edit or deletion by hand leaves an environment that later statements stumble over."""

import json
from dataclasses import replace
from typing import Any

import pytest

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import UnmanagedCluster
from evertide.catalog.ops import CreateClusterOp, CreateDatabaseOp, CreateRoleOp
from tests.catalog.samples import create_table, create_view, item
from tests.cli.conftest import Said, Site

CLUSTER = '{"name":"c","owner":"u1","variant":{"is":"unmanaged"}}'
COMMENT = '{"object_kind":"%s","object_id":"u1","sub_id":null}'


def changed(site: Site, kind: str, key: dict[str, Any], **fields: Any) -> Said:
    """Edit some fields of an object that there is."""
    (row,) = [row for row in site.dump() if (row["kind"], row["key"]) == (kind, key)]
    return site.debug("edit", kind, json.dumps(key), json.dumps({**row["value"], **fields}))


def test_what_was_created_by_hand_is_not_in_the_way_of_what_is_created_later(site: Site) -> None:
    oid = site.serve().next_numbers["oid"]
    for kind, key, value in (
        ("cluster", '{"cluster_id":"u2"}', CLUSTER),
        ("role", '{"role_id":"u2"}', f'{{"name":"r","oid":{oid}}}'),
        ("database", '{"database_id":"u5"}', f'{{"name":"d","oid":{oid + 3},"owner":"u1"}}'),
    ):
        said = site.debug("edit", kind, key, value)
        assert said.code == 0, said.err
    assert site.debug("upgrade-check").code == 0
    snapshot = site.serve(
        CreateClusterOp(name="later", owner=DEFAULT_ROLE_ID, variant=UnmanagedCluster()),
        CreateRoleOp(name="later"),
        CreateDatabaseOp(name="later", owner=DEFAULT_ROLE_ID),
    )
    found = snapshot.cluster_named("later"), snapshot.role_named("later")
    assert [getattr(each, each.KEY[0]) for each in found if each is not None] == ["u3", "u3"]
    database = snapshot.database_named("later")
    assert database is not None
    assert database.database_id == "u6"
    assert site.debug("upgrade-check").code == 0


def test_an_item_created_by_hand_uses_up_its_ids(site: Site) -> None:
    site.serve(create_table("t"))
    (row,) = [row for row in site.dump() if row["kind"] == "item"]
    version = {**row["value"]["versions"][0], "global_id": "u9"}
    value = {**row["value"], "name": "copy", "oid": 30_000, "versions": [version]}
    said = site.debug("edit", "item", '{"item_id":"u2"}', json.dumps(value))
    assert said.code == 0, said.err
    table = item(site.serve(create_table("later")), "later")
    assert (table.item_id, table.oid) == ("u10", 30_001)


def test_an_allocator_may_be_raised(site: Site) -> None:
    said = site.debug("edit", "id_allocator", '{"name":"user"}', '{"next_number":40}')
    assert said.code == 0, said.err
    assert item(site.serve(create_table("t")), "t").item_id == "u40"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("edit", "role", '{"role_id":"u2"}', '{"name":"r","oid":20000}'), "oid '20000'"),
        (("edit", "role", '{"role_id":"u2"}', '{"name":"r","oid":-1}'), "the oid -1"),
        (("edit", "role", '{"role_id":"u2"}', '{"name":"","oid":5}'), "an empty name"),
        (("edit", "role", '{"role_id":"u2"}', '{"name":"r","oid":4294967295}'), "next number"),
        (("edit", "cluster", '{"cluster_id":""}', CLUSTER), "the id ''"),
        (("edit", "cluster", '{"cluster_id":"zz"}', CLUSTER), "the id 'zz'"),
        (("edit", "timestamp", '{"timeline":"epoch_ms"}', '{"ts":-1}'), "the timestamp -1"),
        (("edit", "config", '{"name":"catalog_version"}', '{"value":0}'), "at least 1"),
        (("edit", "comment", COMMENT % "planet", '{"comment":"c"}'), "one of cluster, cluster_i"),
        (("edit", "comment", COMMENT % "config", '{"comment":"c"}'), "one of cluster, cluster_i"),
        (("edit", "audit_event", '{"event_id":1}', "{}"), "only ever added"),
        (("delete", "audit_event", '{"event_id":1}'), "only ever added"),
        (("delete", "setting", '{"name":"environment_id"}'), "cannot be deleted"),
        (("delete", "config", '{"name":"deployment_generation"}'), "cannot be deleted"),
        (("delete", "timestamp", '{"timeline":"catalog"}'), "cannot be deleted"),
        (("delete", "schema", '{"schema_id":"s2"}'), "cannot be deleted"),
        (("delete", "role", '{"role_id":"s2"}'), "cannot be deleted"),
    ],
)
def test_nonsense_is_told_and_changes_nothing(
    site: Site, arguments: tuple[str, ...], told: str
) -> None:
    before = site.bytes()
    answer = site.debug(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert site.bytes() == before


@pytest.mark.parametrize(
    ("create_sql", "told"),
    [
        ('CREATE VIEW "v" AS SELEKT 1', "does not parse at character 20"),
        ("", "does not parse"),
        ('CREATE TABLE "v" ("a" int4)', "does not create a view"),
    ],
)
def test_sql_that_cannot_be_read_is_refused(site: Site, create_sql: str, told: str) -> None:
    site.serve(create_view("v"))
    before = site.bytes()
    answer = changed(site, "item", {"item_id": "u1"}, create_sql=create_sql)
    assert answer.code == 2
    assert 'create_sql of view "v" (u1)' in answer.err
    assert told in answer.err
    assert site.bytes() == before


def test_an_upgrade_check_tells_of_sql_that_cannot_be_read(site: Site) -> None:
    site.serve(replace(create_view("v"), create_sql="CREATE NOTHING"))
    answer = site.debug("upgrade-check")
    assert answer.code == 5
    assert 'create_sql of view "v" (u1) does not parse' in answer.err
