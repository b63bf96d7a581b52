"""Goal: a dump shows a view with all its definitions, and edits of them are checked like others."""

import json
from typing import Any

import pytest

from evertide.catalog.ops import Op
from evertide.catalog.snapshot import Snapshot
from tests.catalog.replacing import apply, finish, stage
from tests.catalog.samples import create_mv, create_table, item
from tests.cli.conftest import Site


def replaced(site: Site) -> dict[str, Any]:
    """The stored value of a view that was replaced, and has a replacement again."""
    snapshot = site.serve(create_table("t"), create_table("u"))
    snapshot = site.serve(create_mv("m", item(snapshot, "t")))
    for step in (staged, lambda s: apply(s, "m", "r"), lambda s: finish(s, "m"), staged):
        op: Op = step(snapshot)
        snapshot = site.serve(op)
    (row,) = [row for row in site.dump() if row["key"] == {"item_id": item(snapshot, "m").item_id}]
    value: dict[str, Any] = row["value"]
    return value


def staged(snapshot: Snapshot) -> Op:
    return stage("r", item(snapshot, "m"), item(snapshot, "u"))


def test_a_dump_shows_every_definition_and_an_edit_may_leave_it_as_it_is(site: Site) -> None:
    value = replaced(site)
    (past,) = value["definition"]["past"]
    assert past["create_sql"].startswith("CREATE MATERIALIZED VIEW")
    assert past["names"] == [{"name": ["materialize", "public", "t"], "item_id": "u1"}]
    assert [version["global_id"] for version in value["versions"]] == ["u3", "u4"]
    (r,) = [row["value"] for row in site.dump() if row["key"] == {"item_id": "u5"}]
    assert r["definition"]["replacement"] == {"target": "u3"}
    answer = site.debug("edit", "item", '{"item_id":"u3"}', json.dumps(value))
    assert answer.code == 0, answer.err
    assert site.debug("upgrade-check").code == 0


@pytest.mark.parametrize(
    ("field", "wrong", "told"),
    [
        ("create_sql", "CREATE NOTHING", 'create_sql of materialized view "m" (u3) does not parse'),
        ("global_id", "u9", "does not have a definition for each of its earlier versions"),
        ("as_of", -1, "has the timestamp -1"),
    ],
)
def test_an_earlier_definition_that_makes_no_sense_is_refused(
    site: Site, field: str, wrong: object, told: str
) -> None:
    value = replaced(site)
    value["definition"]["past"][0][field] = wrong
    before = site.bytes()
    answer = site.debug("edit", "item", '{"item_id":"u3"}', json.dumps(value))
    assert answer.code == 2
    assert told in answer.err
    assert site.bytes() == before


def test_a_target_cannot_be_deleted_from_under_its_replacement(site: Site) -> None:
    replaced(site)
    answer = site.debug("delete", "item", '{"item_id":"u3"}')
    assert answer.code == 2
    assert 'materialized view "r" (u5) refers to' in answer.err
