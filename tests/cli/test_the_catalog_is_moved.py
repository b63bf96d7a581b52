"""Goal: `--catalog` says how a new environment keeps its catalog; later, only a move changes it."""

from itertools import permutations

import pytest

from evertide.catalog.durable.place import CatalogKind
from evertide.cli.config import UsageError
from tests.catalog.samples import create_table
from tests.cli.conftest import Site

PERSIST, STASH, SHADOW = CatalogKind


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
        assert new_site.dump() == before
        new_site.serve(create_table(f"in_{to}"), catalog=to)
    names = {item.name for item in new_site.serve().items.values()}
    assert names == {"t", f"in_{target}", f"in_{source}"}


def test_an_unknown_catalog_is_refused(new_site: Site) -> None:
    answer = new_site.run(["serve", *new_site.flags, "--catalog", "sock"])
    assert answer.code == 2
    assert "persist, stash, shadow" in answer.err
