"""Goal: `serve` writes down in both stores that the blob store is this generation's, and nobody
else does; what belongs to the generation may delete from it.

Method: real stores in files, opened as the programs open them; the time that a generation waits
before it deletes is none.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evertide.cli.config import Boot, Config
from evertide.cli.generation import Generation
from evertide.cli.main import build_parser, config_of
from evertide.cli.stores import Opened, join_generation, open_generation
from evertide.persist import owner
from evertide.persist.owner import OwnerRecord, read_note, read_owner
from evertide.persist.push.notify import LocalNotifier
from evertide.persist.upkeep.sweep import SweepTimes
from tests.cli.conftest import Site


def config_for(site: Site) -> Config:
    return config_of(build_parser().parse_args(["serve", *site.flags]))


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "_now_s", iter(range(0, 10**9, 1_000)).__next__)


def record(site: Site) -> Path:
    return site.directory / "blob" / "environment"


async def with_opened(site: Site, check: Callable[[Opened], Coroutine[Any, Any, None]]) -> None:
    site.directory.mkdir(exist_ok=True)
    opened = await open_generation(config_for(site), site.directory / "cache", LocalNotifier())
    try:
        await check(opened)
    finally:
        await opened.close()


@contextmanager
def untouched(path: Path) -> Iterator[None]:
    before, stat = path.read_bytes(), path.stat()
    yield
    assert path.read_bytes() == before
    assert path.stat().st_ino == stat.st_ino, "it was not even written again"


def test_serve_writes_the_same_record_into_both_stores(new_site: Site) -> None:
    seen: list[str] = []

    async def check(opened: Opened) -> None:
        found, note = await read_owner(opened.stores.blob), await read_note(opened.stores.consensus)
        assert isinstance(found, OwnerRecord)
        assert note is not None
        assert found == note.record
        assert note.epoch == opened.generation.epoch
        assert found.environment == opened.generation.environment
        assert not found.contested
        seen.append(found.incarnation)

    for _ in range(2):
        asyncio.run(with_opened(new_site, check))
    assert seen[0] != seen[1]


def test_whoever_looks_or_changes_by_hand_is_no_owner(new_site: Site) -> None:
    new_site.serve()
    with untouched(record(new_site)):
        for arguments in (
            ("dump",),
            ("epoch",),
            ("upgrade-check",),
            ("edit", "setting", '{"name":"a"}', '{"value":"1"}'),
            ("delete", "setting", '{"name":"a"}'),
            ("move", "--to", "stash"),
        ):
            assert new_site.debug(*arguments).code == 0
    new_site.serve()
    assert not json.loads(record(new_site).read_bytes())["contested"], "they opened it in between"


def test_a_blob_store_of_the_first_release_is_opened(new_site: Site) -> None:
    """It holds only the environment's id."""
    new_site.serve()
    identity = json.loads(record(new_site).read_bytes())["environment"]
    record(new_site).write_text(identity)

    async def check(opened: Opened) -> None:
        assert opened.generation.environment == identity
        assert await opened.stores.ownership.may_delete()

    asyncio.run(with_opened(new_site, check))
    assert json.loads(record(new_site).read_bytes())["environment"] == identity


@pytest.mark.parametrize("value", [b'{"environment": 1}', b"\xff", b"{" * 5_000, b"", b"other"])
def test_what_is_not_its_record_is_refused_before_anything_is_fenced(
    new_site: Site, value: bytes
) -> None:
    new_site.serve()
    epoch = new_site.debug("epoch").out
    record(new_site).write_bytes(value)
    said = new_site.run(["serve", *new_site.flags])
    assert said.code == 2
    assert "--blob" in said.err
    assert "Traceback" not in said.err
    assert new_site.debug("epoch").out == epoch
    assert record(new_site).read_bytes() == value


def test_children_delete_as_their_generation_does_and_who_joins_by_hand_does_not(
    new_site: Site,
) -> None:
    async def check(opened: Opened) -> None:
        boot = Boot(
            config=config_for(new_site),
            epoch=opened.generation.epoch,
            oracle_epoch=opened.generation.oracle_epoch,
            environment_id=opened.generation.environment,
            runtime="",
        )
        for by_hand in (False, True):
            cache = new_site.directory / f"cache-{by_hand}"
            joined = await join_generation(boot, cache, LocalNotifier(), by_hand=by_hand)
            assert await joined.storage.blob.delete("s1/1-a.parquet") is not by_hand
            await joined.close()

    asyncio.run(with_opened(new_site, check))


class NoReplicas:
    """What a generation keeps beside its own work."""

    def parts(self) -> tuple[()]:
        return ()


def test_a_running_generation_looks_whether_it_is_alone(
    new_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "LOOK_EVERY_S", 0.001)

    async def check(opened: Opened) -> None:
        blob, stopped = opened.stores.blob, asyncio.Event()
        generation = Generation(config_for(new_site), opened, new_site.directory)
        replicas: Any = NoReplicas()
        generation._replicas = replicas
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(generation.run(ended, stopped))
        found = await read_owner(blob)
        assert isinstance(found, OwnerRecord)
        other = msgspec.structs.replace(found, incarnation="0" * 32)
        await blob.write_owner(msgspec.json.encode(other))
        contested = msgspec.structs.replace(other, contested=True)
        while await read_owner(blob) != contested:
            await asyncio.sleep(0.001)
        stopped.set()
        assert await running == 0

    asyncio.run(with_opened(new_site, check))


def test_both_sweeps_leave_alone_what_is_anothers(new_site: Site) -> None:
    """Through all that the supervisor makes, and not by the times that things are left alone."""

    async def check(opened: Opened) -> None:
        blob, secret = opened.stores.blob, f"secrets/{opened.generation.environment}-orphan"
        found = await blob.read_owner()
        assert found is not None
        incarnation = json.loads(found)["incarnation"].encode()
        for is_ours in (False, True):
            await blob.write_owner(found if is_ours else found.replace(incarnation, b"0" * 32))
            for key in (secret, "txns/1-orphan.parquet"):
                await blob.put(key, b"")
            sweeper, secrets = opened.sweeper(), opened.secret_sweeper()
            sweeper._times = SweepTimes(unreferenced_ms=0, old_ms=0)
            secrets._spared_ms = 0
            assert len((await sweeper.sweep_once()).deleted) == is_ours
            assert await secrets.sweep_once() == is_ours
            assert (secret in await blob.keys()) is not is_ours

    asyncio.run(with_opened(new_site, check))
