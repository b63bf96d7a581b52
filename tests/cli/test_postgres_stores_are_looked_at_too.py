"""Goal: the same tools over PostgreSQL; looking makes no schema and changes no row."""

from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
import pytest

from evertide.catalog.durable.place import CatalogKind
from tests.catalog.samples import create_table
from tests.cli.conftest import Said, Site
from tests.support.postgres import own_schema

# Everything that a schema holds, and which version of each row it is.
_CONTENTS = "SELECT ctid, xmin, t::text FROM {} t ORDER BY 3"


@pytest.fixture
def url(postgres_dsn: str) -> str:
    return own_schema(postgres_dsn)


@pytest.fixture
def remote(url: str, tmp_path: Path, evertide: Callable[[Sequence[str]], Said]) -> Site:
    flags = ("--consensus", url, "--blob", f"file:{tmp_path / 'blob'}")
    return Site(flags, tmp_path / "blob", evertide)


def stored(url: str) -> dict[str, list[tuple[object, ...]]]:
    with psycopg.connect(url) as connection:
        (schema,) = connection.execute("SELECT current_schema()").fetchone() or (None,)
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)
        ).fetchall()
        return {
            name: connection.execute(_CONTENTS.format(f'"{name}"').encode()).fetchall()
            for (name,) in names
        }


def test_looking_changes_no_row(remote: Site, url: str, kind: CatalogKind) -> None:
    remote.serve(create_table("t"), catalog=kind)
    before, files = stored(url), remote.bytes()
    assert before["epoch"]
    for action in ("dump", "epoch", "upgrade-check"):
        answer = remote.debug(action)
        assert answer.code == 0, answer.err
    assert any(row["value"].get("name") == "t" for row in remote.dump())
    refused = remote.debug("delete", "role", '{"role_id":"u1"}')
    assert refused.code == 2
    assert (stored(url), remote.bytes()) == (before, files)


def test_an_edit_and_a_move_reach_the_database(remote: Site, kind: CatalogKind) -> None:
    remote.serve(catalog=kind)
    said = remote.debug("edit", "setting", '{"name":"a"}', '{"value":"1"}')
    assert said.code == 0, said.err
    to = CatalogKind.STASH if kind is CatalogKind.PERSIST else CatalogKind.PERSIST
    assert remote.debug("move", "--to", to).code == 0
    assert remote.serve(catalog=to).settings["a"] == "1"


def test_a_schema_that_is_not_there_is_not_made(remote: Site, url: str, tmp_path: Path) -> None:
    (tmp_path / "blob").mkdir()
    for action in ("dump", "epoch", "upgrade-check"):
        answer = remote.debug(action)
        assert answer.code == 2
        assert "no environment" in answer.err
    answer = remote.run(["adapter", "--join", *remote.flags])
    assert answer.code == 2
    assert "no environment" in answer.err
    assert not stored(url)


@pytest.mark.parametrize("flag", ["--consensus", "--oracle"])
def test_a_url_that_makes_no_sense_is_bad_usage(
    tmp_path: Path, evertide: Callable[[Sequence[str]], Said], flag: str
) -> None:
    url = "postgresql://me:secret@[host/x?nonsense"
    for command in (["serve"], ["catalog-debug", "epoch"], ["adapter", "--join"]):
        answer = evertide([*command, "--data", str(tmp_path / "data"), flag, url])
        assert answer.code == 2
        assert f"{flag} is not a URL" in answer.err
        assert "secret" not in answer.err
    assert not (tmp_path / "data").exists()
