"""Goal: `--catalog` says how a new environment keeps its catalog; later, only a move changes it."""

from itertools import permutations
from typing import Any

import pytest

from evertide.catalog.durable.place import CatalogKind
from evertide.cli.config import UsageError
from tests.catalog.samples import create_table
from tests.cli.conftest import Site

PERSIST, STASH, SHADOW = CatalogKind


def without_history(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects that a move leaves as they are: it adds an audit event."""
    return [row for row in rows if row["kind"] not in ("audit_event", "id_allocator")]


def test_an_environment_stays_with_the_catalog_it_began_with(site: Site, kind: CatalogKind) -> None:
    site.serve(create_table("t"))
    site.serve(create_table("u"), catalog=kind)
    for other in set(CatalogKind) - {kind}:
        with pytest.raises(UsageError, match=f"catalog-debug move --to {other}"):
            site.serve(catalog=other)
        answer = site.debug("dump", "--catalog", other)
        assert answer.code == 2
        assert f"kept as {kind}, not as {other}" in answer.err
    assert site.debug("dump", "--catalog", kind).code == 0
    assert sorted(item.name for item in site.serve().items.values()) == ["t", "u"]
    assert site.debug("epoch").out == "4\n"


def test_a_new_environment_without_a_choice_is_in_persist(new_site: Site) -> None:
    new_site.serve()
    with pytest.raises(UsageError, match="kept as persist"):
        new_site.serve(catalog=STASH)


@pytest.mark.parametrize(("source", "target"), list(permutations(CatalogKind, 2)))
def test_a_catalog_is_moved_there_and_back(
    new_site: Site, source: CatalogKind, target: CatalogKind
) -> None:
    new_site.serve(create_table("t"), catalog=source)
    for to in (target, source):
        before = new_site.dump()
        said = new_site.debug("move", "--to", to)
        assert said.code == 0, said.err
        assert f"kept as {to} now" in said.out
        assert without_history(new_site.dump()) == without_history(before)
        new_site.serve(create_table(f"in_{to}"), catalog=to)
    names = {item.name for item in new_site.serve().items.values()}
    assert names == {"t", f"in_{target}", f"in_{source}"}


@pytest.mark.parametrize(("source", "target"), list(permutations(CatalogKind, 2)))
def test_a_move_leaves_an_audit_event_in_the_catalog_it_ends_in(
    new_site: Site, source: CatalogKind, target: CatalogKind
) -> None:
    new_site.serve(catalog=source)
    before = [row for row in new_site.dump() if row["kind"] == "audit_event"]
    assert new_site.debug("move", "--to", target).code == 0
    events = [row for row in new_site.dump() if row["kind"] == "audit_event"]
    (added,) = [event["value"] for event in events if event not in before]
    assert (added["event_type"], added["object_type"]) == ("alter", "catalog")
    assert added["details"] == {"by": "catalog-debug", "from": source, "to": target}


def test_a_move_to_where_the_catalog_is_changes_nothing(site: Site, kind: CatalogKind) -> None:
    before = site.bytes()
    said = site.debug("move", "--to", kind)
    assert said.code == 0, said.err
    assert f"kept as {kind} already" in said.out
    assert site.bytes() == before


def test_an_unknown_catalog_is_refused(new_site: Site) -> None:
    answer = new_site.run(["serve", *new_site.flags, "--catalog", "sock"])
    assert answer.code == 2
    assert "persist, stash, shadow" in answer.err
