"""INTROSPECTION INTERVAL says how often a replica's processes are measured; zero: never."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from evertide.catalog.objects import Introspection
from evertide.cli import watch as subject
from evertide.cli.process_tree import Member
from evertide.cli.watch import (
    SHORTEST_SECONDS,
    USUAL_SAMPLING,
    Sampling,
    Watch,
    Watched,
    sampling_of,
)
from evertide.vocab.clock import SystemClock

SESSION = 7


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[int]]:
    """Which sessions each look was at; every session has one process that takes a megabyte."""
    found: list[Sequence[int]] = []

    def members(sessions: Sequence[int]) -> dict[int, list[Member]]:
        found.append(list(sessions))
        return {session: [Member(session, session, 0, 0)] for session in sessions}

    monkeypatch.setattr(subject, "members", members)
    monkeypatch.setattr(subject, "anonymous_bytes", lambda pids: len(pids) << 20)
    monkeypatch.setattr(subject, "own_anonymous_bytes", lambda pids: len(pids) << 20)
    return found


def watched(sampling: Sampling, *, age_s: float, limit_bytes: int | None = None) -> Watched:
    known_at_s = time.monotonic() - age_s
    return Watched(SESSION, limit_bytes, sampling, known_at_s=known_at_s)


@pytest.mark.parametrize(
    ("introspection", "wanted"),
    [
        (None, USUAL_SAMPLING),
        (Introspection(), Sampling(1.0)),
        (Introspection(interval_ms=30_000, debugging=True), Sampling(30.0, told=True)),
        (Introspection(interval_ms=1), Sampling(SHORTEST_SECONDS)),
        (Introspection(interval_ms=None), Sampling(None)),
    ],
)
def test_what_the_settings_of_a_replica_mean(
    introspection: Introspection | None, wanted: Sampling
) -> None:
    assert sampling_of(introspection) == wanted


def test_a_replica_is_measured_when_its_interval_is_over(looks: list[Sequence[int]]) -> None:
    each = watched(Sampling(10.0), age_s=9.0)
    subject._look({"r": each}, 1)
    assert (each.measured, looks) == (None, [])
    each = watched(Sampling(10.0), age_s=10.0)
    subject._look({"r": each}, 2)
    assert each.measured is not None
    assert (each.measured.memory_bytes, each.measured.at_ms) == (1 << 20, 2)


def test_one_that_is_not_watched_is_never_measured(looks: list[Sequence[int]]) -> None:
    each = watched(Sampling(None), age_s=1e6)
    subject._look({"r": each}, 1)
    assert (each.measured, looks) == (None, [])


def test_a_limit_holds_however_seldom_a_replica_is_measured(
    looks: list[Sequence[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(subject, "end_session", ended.append)
    each = watched(Sampling(None), age_s=1.0, limit_bytes=1 << 10)
    subject._look({"r": each}, 1)
    assert (ended, each.too_large, each.measured) == ([SESSION], True, None)
    assert subject._pause_s([each]) == subject.LIMITED_SECONDS


@pytest.mark.parametrize(
    ("samplings", "wanted"),
    [([], 5.0), ([None], 5.0), ([60.0], 5.0), ([1.0, 3.0, None], 1.0), ([0.25], 0.25)],
)
def test_looks_are_as_far_apart_as_the_closest_watch_allows(
    samplings: list[float | None], wanted: float
) -> None:
    each = [watched(Sampling(every_s), age_s=0.0) for every_s in samplings]
    assert subject._pause_s(each) == wanted


@pytest.mark.usefixtures("looks")
async def test_turning_it_off_takes_the_measure_away_and_on_brings_it_back() -> None:
    watch = Watch(SystemClock())
    watch.sample("r", Sampling(0.25))
    watch.begin("r", SESSION, None)
    running = asyncio.create_task(watch.run())

    async def until_measured() -> None:
        async with asyncio.timeout(20):
            while not list(watch.current()):
                await asyncio.sleep(0.01)

    await until_measured()
    watch.sample("r", Sampling(None))
    assert list(watch.current()) == []
    watch.sample("r", Sampling(0.25))
    await until_measured()
    assert not watch.end("r")
    watch.begin("r", SESSION, None)  # started again, it is watched as before
    await until_measured()
    running.cancel()


def test_a_close_watch_is_told_of_in_the_log(
    looks: list[Sequence[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    subject._look({"quiet": watched(Sampling(1.0), age_s=2.0)}, 1)
    subject._look({"close": watched(Sampling(1.0, told=True), age_s=2.0)}, 1)
    printed = "".join(capsys.readouterr())
    assert len(looks) == 2
    assert "close" in printed
    assert "quiet" not in printed
