"""Goal: a process tree stays on its CPUs and below its memory, and nothing of it is left behind.

Method: real processes in sessions of their own, which try to exceed both.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pytest

from evertide.cli.cpus import CpuShares
from evertide.cli.process_tree import (
    Member,
    anonymous_bytes,
    end_session,
    members,
    pin,
    used_ns,
)
from evertide.cli.watch import Sampling, Watch
from evertide.vocab.clock import SystemClock
from tests.support.server import alive, command_line, descendants_of, eventually

# A leader whose child, in a group of its own, keeps what it is told to take.
TAKING = """
import os, sys, time
megabytes = int(sys.argv[1])
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    taken = bytearray(megabytes << 20)
    for at in range(0, len(taken), 4096):
        taken[at] = 1
os.write(1, b"ready\\n")
time.sleep(600)
"""
# Two processes that compute for ever.
SPINNING = """
import os
os.fork()
os.write(1, b"ready\\n")
sum(iter(int, 1))
"""
# Two processes whose names and arguments are no text.
UNREADABLE = """
import ctypes, os, sys, time
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, "-c", os.environ["PROGRAM"], b"\\xff\\xfe"])
ctypes.CDLL(None).prctl(15, b"\\xff) \\xfe", 0, 0, 0)
os.fork()
os.write(1, b"ready\\n")
time.sleep(600)
"""


@contextmanager
def session(program: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that leads a session; whatever happens, nothing of it is left."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        for _ in range(2):
            assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        end_session(process.pid)
        process.wait(10)
        process.stdout.close()


async def watched(name: str, process: "subprocess.Popen[str]", limit_mb: int | None) -> Watch:
    watch = Watch(SystemClock())
    watch.sample(name, Sampling(every_s=0.5))
    watch.begin(name, process.pid, None if limit_mb is None else limit_mb << 20)
    return watch


@contextmanager
def running(watch: Watch) -> Iterator[None]:
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()


async def test_a_tree_above_its_memory_is_ended_and_said_to_be() -> None:
    with session(TAKING, "200") as process:
        (child,) = descendants_of(process.pid)
        watch = await watched("r", process, 100)
        with running(watch):
            assert await asyncio.to_thread(process.wait, 20) == -signal.SIGKILL
            await asyncio.to_thread(eventually, lambda: not alive(child), seconds=20)
        assert watch.end("r"), "the reason is known"


async def test_a_tree_below_its_memory_is_left_alone() -> None:
    with session(TAKING, "50") as process:
        watch = await watched("r", process, 200)
        with running(watch):
            async with asyncio.timeout(20):
                while not list(watch.current()):
                    await asyncio.sleep(0.05)
        assert process.poll() is None
        ((name, _, memory_bytes, _),) = watch.current()
        assert name == "r"
        assert isinstance(memory_bytes, int)
        assert 50 << 20 < memory_bytes < 200 << 20
        assert not watch.end("r")


def test_a_tree_stays_on_its_cpus_whatever_it_starts() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    with session(SPINNING) as process:
        # Its child is there already: only what comes later is certain to inherit.
        for pid in (process.pid, *descendants_of(process.pid)):
            pin(pid, cpus[:1])
        before = {m.pid: m for m in members([process.pid])[process.pid]}
        started = time.monotonic()
        eventually(lambda: time.monotonic() - started > 1.0)
        elapsed_s = time.monotonic() - started
        now = members([process.pid])[process.pid]
        assert len(now) == 2
        used = used_ns(before, now) / 1e9
        # Two processes that compute for ever would take both.
        assert used < 1.2 * elapsed_s
        for pid in (process.pid, *descendants_of(process.pid)):
            for thread in os.listdir(f"/proc/{pid}/task"):
                assert os.sched_getaffinity(int(thread)) == set(cpus[:1])


def test_names_of_processes_may_be_any_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROGRAM", UNREADABLE)
    with session(UNREADABLE) as process:
        try:
            (child,) = descendants_of(process.pid)
            assert alive(child)
            assert command_line(child)
            assert {m.pid for m in members([process.pid])[process.pid]} == {process.pid, child}
            assert anonymous_bytes([process.pid, child]) > 0
            assert end_session(process.pid) == 2
        finally:
            # Whoever cannot read their names cannot end them either.
            os.killpg(process.pid, signal.SIGKILL)


async def test_a_look_that_failed_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def failing(sessions: Collection[int]) -> dict[int, list[Member]]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("something nobody thought of")
        return members(sessions)

    monkeypatch.setattr("evertide.cli.watch.members", failing)
    with session(TAKING, "1") as process:
        watch = await watched("r", process, 1_000)
        with running(watch):
            async with asyncio.timeout(20):
                while not list(watch.current()):
                    await asyncio.sleep(0.05)
    assert looks > 1


def test_what_a_leader_leaves_behind_is_ended() -> None:
    with session(TAKING, "1") as process:
        (child,) = descendants_of(process.pid)
        process.kill()
        process.wait(10)
        assert alive(child), "nobody ended it yet"
        assert end_session(process.pid) == 1
        assert not alive(child)


def test_other_sessions_are_left_alone() -> None:
    with session(TAKING, "1") as one, session(TAKING, "1") as other:
        end_session(one.pid)
        one.wait(10)
        assert other.poll() is None
        assert len(members([other.pid])[other.pid]) == 2


def test_small_replicas_do_not_share_a_cpu_while_one_is_free() -> None:
    shares = CpuShares([0, 1, 2])
    first, second = shares.take("a", 1), shares.take("b", 1)
    assert shares.take("whole", 8) == (0, 1, 2)
    third = shares.take("c", 1)
    assert len({first, second, third}) == 3
    shares.give_back("b")
    assert shares.take("d", 1) == second


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_share_is_as_large_as_was_asked(count: int) -> None:
    assert len(CpuShares([4, 5, 6]).take("a", count)) == count
