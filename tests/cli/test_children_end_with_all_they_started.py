"""Goal: a child is known to have ended when it has, whatever holds its pipe or was said on it, and
nothing of it goes on beside its next life, or after it was stopped.

Method: real processes in place of the programs, on the loop that supervisors use; each starts one
of its own, which is frozen and keeps the pipe open.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import uvloop

from evertide.cli.child import read_boot
from evertide.cli.config import EXIT_OK, Boot, Config
from evertide.cli.processes import Child, ChildSpec
from tests.support.server import alive

BOOT = Boot(
    config=Config(data=None, consensus="", blob="", oracle=""),
    epoch=1,
    oracle_epoch=1,
    environment_id="here",
    runtime="",
)
# Says which process it started; that one is frozen.
STARTS_ANOTHER = """
import os, signal, subprocess, sys, time
sys.stdin.readline()
other = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
os.kill(other.pid, signal.SIGSTOP)
print(other.pid, flush=True)
time.sleep(600)
"""
# Says much on one line, and then, by a file, that all of it was taken.
SAYS_MUCH = """
import pathlib, sys, time
sys.stdin.readline()
print("ready", flush=True)
sys.stdout.write("x" * 2_000_000)
sys.stdout.flush()
pathlib.Path(sys.argv[0]).with_suffix(".said").touch()
time.sleep(600)
"""
BEGINS_WITH_TOO_MUCH = """
import sys, time
sys.stdin.readline()
print("x" * 2_000_000, flush=True)
time.sleep(600)
"""
# Its first life is over before it is told anything.
ENDS_EARLY = """
import pathlib, sys, time
before = pathlib.Path(sys.argv[0]).with_suffix(".before")
if not before.exists():
    before.touch()
    sys.exit(7)
sys.stdin.readline()
print("ready", flush=True)
time.sleep(600)
"""


class Lives:
    """What a supervisor would hear."""

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.codes: list[int] = []
        self._others: list[int] = []
        self._changed = asyncio.Event()

    def fatal(self, code: int) -> None:
        raise AssertionError(f"no such end was told: {code}")

    def started(self, _name: str, pid: int) -> None:
        self.pids.append(pid)
        self._changed.set()

    def ready(self, _name: str) -> None:
        """Waited for elsewhere."""

    def ended(self, _name: str, code: int) -> None:
        self.codes.append(code)
        self._changed.set()

    async def started_by(self, child: Child) -> int:
        """The process that it says it started."""
        self._others.append(int(await child.ready()))
        return self._others[-1]

    def end_others(self) -> None:
        """Nothing may be left, also if what is tested here is broken."""
        for pid in self._others:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)

    async def until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self._changed.clear()
            await self._changed.wait()


async def until(reached: Callable[[], bool]) -> None:
    """What no one tells is looked for."""
    while not reached():
        await asyncio.sleep(0.01)


Story = Callable[[Child, Lives], Coroutine[None, None, None]]


def lived(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """The story of one child that runs this program, within a while."""
    script = tmp_path / "program.py"
    script.write_text(f"#!{sys.executable}\n{program}")
    script.chmod(0o700)
    monkeypatch.setattr("evertide.cli.processes.sys", SimpleNamespace(executable=str(script)))

    async def told() -> None:
        lives = Lives()
        child = Child(ChildSpec("replica", "r"), lives)
        child.start()
        try:
            async with asyncio.timeout(20):
                await story(child, lives)
        finally:
            lives.end_others()
            await child.stop()
            assert not [pid for pid in lives.pids if alive(pid)]

    uvloop.run(told())


def test_a_child_has_ended_though_its_pipe_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(child: Child, lives: Lives) -> None:
        child.boot(BOOT)
        other = await lives.started_by(child)
        os.kill(lives.pids[0], signal.SIGKILL)
        await lives.until(lambda: lives.codes == [-signal.SIGKILL])
        assert not alive(other), "it was ended before the next life"
        await lives.until(lambda: len(lives.pids) == 2)

    lived(story, tmp_path, monkeypatch, STARTS_ANOTHER)


def test_what_an_ended_child_started_does_not_outlive_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(child: Child, lives: Lives) -> None:
        child.boot(BOOT)
        other = await lives.started_by(child)
        os.kill(lives.pids[0], signal.SIGKILL)
        await until(lambda: not Path(f"/proc/{lives.pids[0]}").exists())
        await child.stop()
        assert not alive(other)

    lived(story, tmp_path, monkeypatch, STARTS_ANOTHER)


def test_a_child_may_say_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(child: Child, lives: Lives) -> None:
        child.boot(BOOT)
        await child.ready()
        await until((tmp_path / "program.said").exists)
        os.kill(lives.pids[0], signal.SIGKILL)
        await lives.until(lambda: bool(lives.codes))
        assert lives.codes == [-signal.SIGKILL], "it had lived until then"

    lived(story, tmp_path, monkeypatch, SAYS_MUCH)


def test_a_child_that_cannot_be_heard_is_ended_before_the_next_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(child: Child, lives: Lives) -> None:
        child.boot(BOOT)
        await lives.until(lambda: bool(lives.codes))
        assert not alive(lives.pids[0])

    lived(story, tmp_path, monkeypatch, BEGINS_WITH_TOO_MUCH)


def test_a_child_that_ends_before_it_is_told_anything_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(child: Child, lives: Lives) -> None:
        await lives.until(lambda: lives.codes == [7])
        child.boot(BOOT)
        assert await child.ready() == "ready\n"

    lived(story, tmp_path, monkeypatch, ENDS_EARLY)


@pytest.mark.parametrize("pair", [os.pipe, lambda: [end.detach() for end in socket.socketpair()]])
def test_a_child_whose_supervisor_went_before_it_began_ends_at_once(
    pair: Callable[[], Sequence[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair()
    os.write(theirs, 2 * (msgspec.json.encode(BOOT) + b"\n"))
    with os.fdopen(ours) as told:
        monkeypatch.setattr(sys, "stdin", told)
        assert read_boot() == BOOT
        os.close(theirs)
        with pytest.raises(SystemExit) as ended:
            read_boot()
    assert ended.value.code == EXIT_OK
