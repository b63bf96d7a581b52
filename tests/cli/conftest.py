"""Environments on disk without a server, and the command line without a process."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evertide.catalog.durable.place import CatalogKind
from evertide.catalog.ops import Op
from evertide.catalog.snapshot import Snapshot
from evertide.cli import adapter, catalog_debug, serve
from evertide.cli.config import Config
from evertide.cli.main import build_parser, config_of, main
from evertide.cli.stores import open_generation
from evertide.persist.push.notify import LocalNotifier
from tests.catalog.environment import commit


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Site:
    """One environment, by the flags that name it."""

    flags: tuple[str, ...]
    directory: Path
    run: Callable[[Sequence[str]], Said]

    def debug(self, *arguments: str) -> Said:
        """`evertide catalog-debug`."""
        return self.run(["catalog-debug", *arguments, *self.flags])

    def serve(self, *ops: Op, catalog: str | None = None) -> Snapshot:
        """What a server would do that is started, gets these statements and ends."""
        flags = self.flags if catalog is None else (*self.flags, "--catalog", catalog)
        config = config_of(build_parser().parse_args(["serve", *flags]))
        return asyncio.run(_served(config, self.directory, ops))

    def dump(self) -> list[dict[str, Any]]:
        said = self.debug("dump")
        assert said.code == 0, said.err
        return [json.loads(line) for line in said.out.splitlines()]

    def bytes(self) -> dict[str, bytes]:
        """Every file of it."""
        files = (path for path in self.directory.rglob("*") if path.is_file())
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in files}


async def _served(config: Config, directory: Path, ops: Sequence[Op]) -> Snapshot:
    directory.mkdir(exist_ok=True)
    opened = await open_generation(config, directory.parent / "cache", LocalNotifier())
    try:
        return await commit(opened.catalog, *ops) if ops else await opened.catalog.current()
    finally:
        await opened.close()


@pytest.fixture
def evertide(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Sequence[str]], Said]:
    """Run a command in this process."""
    for program in (adapter, catalog_debug, serve):
        # Logs of this process are not the command's to set up.
        monkeypatch.setattr(program, "start_logging", lambda _: None)

    def run(arguments: Sequence[str]) -> Said:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(str(ended.code))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture(params=list(CatalogKind))
def kind(request: pytest.FixtureRequest) -> CatalogKind:
    found: CatalogKind = request.param
    return found


@pytest.fixture
def new_site(tmp_path: Path, evertide: Callable[[Sequence[str]], Said]) -> Site:
    """Where nothing is yet."""
    return Site(("--data", str(tmp_path / "data")), tmp_path / "data", evertide)


@pytest.fixture
def site(new_site: Site, kind: CatalogKind) -> Site:
    """An environment with each kind of catalog; nobody uses it just now."""
    new_site.serve(catalog=kind)
    return new_site
