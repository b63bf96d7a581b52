"""Goal: replicas are put into control groups where the server was given one, and nowhere else.

Method: a directory that looks as the kernel's would, and the kernel's own where this host has it.
"""

import asyncio
import signal
from pathlib import Path

import pytest

from evertide.cli import memory_groups as subject
from evertide.cli.memory_groups import MemoryGroups, memory_groups, prepared
from evertide.cli.watch import Watch
from evertide.vocab.clock import SystemClock
from tests.cli.test_replicas_are_held_to_their_sizes import TAKING, session

LIMIT = 100 << 20


def kernel_s(
    directory: Path, *, controllers: str = "cpu memory", inside: str = "7 8", down: str = ""
) -> Path:
    """A group as the kernel shows it, with two processes in it."""
    group = directory / "given"
    group.mkdir()
    (group / "cgroup.type").write_text("domain\n")
    (group / "cgroup.controllers").write_text(f"{controllers}\n")
    (group / "cgroup.subtree_control").write_text(f"{down}\n")
    (group / "cgroup.procs").write_text(inside.replace(" ", "\n") + "\n")
    return group


def own(pid: int) -> bool:
    return pid in (7, 8)


def text(path: Path) -> str:
    return path.read_text().strip()


def test_the_server_goes_one_down_and_hands_the_controller_on(tmp_path: Path) -> None:
    group = kernel_s(tmp_path)
    assert prepared(group, own) is not None
    assert text(group / "cgroup.subtree_control") == "+memory"
    # The kernel moves a process with each write; the last one is what a plain file shows.
    assert text(group / "evertide-server" / "cgroup.procs") == "8"


def test_what_is_handed_on_already_needs_no_move(tmp_path: Path) -> None:
    group = kernel_s(tmp_path, down="memory", inside="1 7")
    assert prepared(group, own) is not None
    assert text(group / "cgroup.subtree_control") == "memory"
    assert not (group / "evertide-server").exists()


@pytest.mark.parametrize(
    "said", [{"controllers": "cpu"}, {"inside": "7 9"}, {"inside": "0"}], ids=str
)
def test_a_group_that_is_not_the_server_s_is_left_as_it_is(
    tmp_path: Path, said: dict[str, str]
) -> None:
    group = kernel_s(tmp_path, **said)
    before = {path: path.read_text() for path in group.iterdir()}
    assert prepared(group, own) is None
    assert {path: path.read_text() for path in group.iterdir()} == before


@pytest.mark.parametrize("down", ["", "memory"])
def test_the_root_of_all_groups_is_left_as_it_is(tmp_path: Path, down: str) -> None:
    """Another server may be there too, and what it holds is not what an earlier one left."""
    group = kernel_s(tmp_path, down=down)
    (group / "cgroup.type").unlink()
    (group / "evertide-replica-another").mkdir()
    assert prepared(group, own) is None
    assert (group / "evertide-replica-another").exists()
    assert text(group / "cgroup.subtree_control") == down


def test_a_controller_that_cannot_be_handed_on_moves_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = kernel_s(tmp_path, inside="7")
    moved: list[tuple[str, str]] = []

    def written(path: Path, value: int | str) -> None:
        if path.name == "cgroup.subtree_control":
            raise OSError("busy")
        moved.append((path.parent.name, str(value)))

    monkeypatch.setattr(subject, "_write", written)
    with pytest.raises(OSError, match="busy"):
        prepared(group, own)
    assert moved == [("evertide-server", "7"), ("given", "7")]
    assert not (group / "evertide-server").exists()


def test_what_an_earlier_server_left_is_taken_away(tmp_path: Path) -> None:
    group = kernel_s(tmp_path, down="memory")
    (group / "evertide-replica-old").mkdir()
    (group / "another").mkdir()
    assert prepared(group, own) is not None
    assert not (group / "evertide-replica-old").exists()
    assert (group / "another").exists()


def test_a_replica_has_its_limit_and_dies_as_a_whole(tmp_path: Path) -> None:
    groups = MemoryGroups(tmp_path)
    assert groups.hold("r", 42, LIMIT)
    group = tmp_path / "evertide-replica-r"
    assert text(group / "memory.max") == str(LIMIT)
    assert text(group / "memory.oom.group") == "1"
    assert text(group / "cgroup.procs") == "42"


def test_only_a_kill_of_this_life_is_told(tmp_path: Path) -> None:
    groups = MemoryGroups(tmp_path)
    groups.hold("r", 42, LIMIT)
    events = tmp_path / "evertide-replica-r" / "memory.events"
    events.write_text("low 0\noom 1\noom_kill 2\noom_group_kill 1\n")
    assert groups.end("r")
    groups.hold("r", 43, LIMIT)
    assert not groups.end("r")
    assert not groups.end("r"), "that life is over already"


def test_a_group_that_cannot_be_made_leaves_the_limit_to_the_watch(tmp_path: Path) -> None:
    (tmp_path / "evertide-replica-r").write_text("in the way")
    groups = MemoryGroups(tmp_path)
    assert not groups.hold("r", 42, LIMIT)
    assert not groups.end("r")


async def test_a_limit_that_the_kernel_keeps_is_not_watched(tmp_path: Path) -> None:
    """And one that it does not keep is: the process is well above."""
    with session(TAKING, "200") as process:
        watch = Watch(SystemClock(), MemoryGroups(tmp_path))
        watch.begin("r", process.pid, LIMIT)
        assert text(tmp_path / "evertide-replica-r" / "cgroup.procs") == str(process.pid)
        running = asyncio.create_task(watch.run())
        async with asyncio.timeout(20):
            while not list(watch.current()):
                await asyncio.sleep(0.05)
        running.cancel()
        assert process.poll() is None
        (tmp_path / "evertide-replica-r" / "memory.events").write_text("oom_kill 1\n")
        assert watch.end("r"), "the kernel's verdict is told like one's own"


async def test_the_kernel_ends_what_is_above_its_limit() -> None:
    groups = memory_groups()
    if groups is None:
        pytest.skip("this host gives no control group of version 2 with the memory controller")
    with session(TAKING, "1") as process:
        assert groups.hold("r", process.pid, 1 << 20)
        assert await asyncio.to_thread(process.wait, 20) == -signal.SIGKILL
        assert groups.end("r")
    groups.forget("r")
