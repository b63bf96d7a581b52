"""Memory held by the kernel: a control group (version 2) for every replica with a limit.

This needs a group that was given to the server: the one it runs in must have the memory controller,
be writable, and hold nobody else's processes. A service with `Delegate=memory` is such a one. Where
it is not so nothing is touched, and memory is watched instead.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import structlog

_MEMORY: Final = "memory"
# Where the server itself goes: a group that hands controllers down may hold no process.
_OWN: Final = "evertide-server"
_PREFIX: Final = "evertide-replica-"

log = structlog.get_logger()


class MemoryGroups:
    """Groups below the server's own, one for each replica that is held by the kernel."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # By replica: how many of its processes the kernel had killed when its life began.
        self._killed_before: dict[str, int] = {}

    def hold(self, name: str, pid: int, limit_bytes: int) -> bool:
        """Keep a process, and all it will start, below a limit; False: that cannot be done here.

        What is above it is killed as a whole.
        """
        group = self._group(name)
        try:
            group.mkdir(exist_ok=True)
            _write(group / "memory.max", limit_bytes)
            _write(group / "memory.oom.group", 1)
            if (group / "memory.swap.max").exists():
                _write(group / "memory.swap.max", 0)
            killed = _kills(group)
            _write(group / "cgroup.procs", pid)
        except OSError as error:
            log.warning(
                "the kernel does not hold a replica's memory", child=name, reason=str(error)
            )
            return False
        self._killed_before[name] = killed
        return True

    def end(self, name: str) -> bool:
        """A life of it is over; whether the kernel ended it for its memory."""
        before = self._killed_before.pop(name, None)
        return before is not None and _kills(self._group(name)) > before

    def forget(self, name: str) -> None:
        """The replica is not wanted any more."""
        self._killed_before.pop(name, None)
        _remove(self._group(name))

    def _group(self, name: str) -> Path:
        return self._directory / f"{_PREFIX}{name}"


def memory_groups() -> MemoryGroups | None:
    """Of this process; None: it was given no group of its own."""
    try:
        own = _own_directory(Path("/proc/self"))
        if own is None:
            return None
        return prepared(own, _is_own)
    except OSError as error:
        log.info("control groups cannot be used for memory", reason=str(error))
        return None


def prepared(own: Path, is_own: Callable[[int], bool]) -> MemoryGroups | None:
    """The groups below `own`, in which this process runs; None: it is not this server's to use.

    What an earlier server left behind is taken away.
    """
    # The root of all groups, which alone has no type, is no server's: two would share it.
    if not (own / "cgroup.type").exists() or _MEMORY not in _words(own / "cgroup.controllers"):
        return None
    if not os.access(own / "cgroup.subtree_control", os.W_OK) or not os.access(own, os.W_OK):
        return None
    if _MEMORY not in _words(own / "cgroup.subtree_control"):
        inside = [int(word) for word in _words(own / "cgroup.procs")]
        if not all(is_own(each) for each in inside):
            return None
        _hand_down(own, inside)
    for left in own.glob(f"{_PREFIX}*"):
        _remove(left)
    return MemoryGroups(own)


def _hand_down(own: Path, inside: Iterable[int]) -> None:
    """Let groups below have the controller, for which the processes here go one down."""
    leaf = own / _OWN
    leaf.mkdir(exist_ok=True)
    for pid in inside:
        _write(leaf / "cgroup.procs", pid)
    try:
        _write(own / "cgroup.subtree_control", f"+{_MEMORY}")
    except OSError:
        for pid in inside:
            _write(own / "cgroup.procs", pid)
        _remove(leaf)
        raise


def _own_directory(process: Path) -> Path | None:
    """Where this process's group of version 2 is mounted; None: there is none."""
    groups = (line.split(":", 2) for line in (process / "cgroup").read_text().splitlines())
    path = next((path for number, _, path in groups if number == "0"), None)
    for line in (process / "mountinfo").read_text().splitlines():
        here, _, kind = line.partition(" - ")
        if kind.split()[:1] == ["cgroup2"] and path is not None:
            # A mount shows the groups below its root, which need not be the host's.
            root, at = here.split()[3:5]
            inner = os.path.relpath(path, root)
            found = Path(at) / inner
            return None if inner.startswith("..") or not found.is_dir() else found
    return None


def _is_own(pid: int) -> bool:
    """Whether a process is this one or one that it started."""
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return True  # it ended meanwhile
        pid = int(stat.rpartition(b")")[2].split()[1])
    return False


def _kills(group: Path) -> int:
    """How many of a group's processes the kernel has ended for want of memory."""
    try:
        lines = (group / "memory.events").read_text().splitlines()
    except OSError:
        return 0
    events = dict(line.split(" ", 1) for line in lines)
    return int(events.get("oom_kill", 0))


def _words(path: Path) -> list[str]:
    return path.read_text().split()


def _write(path: Path, value: int | str) -> None:
    path.write_text(f"{value}\n")


def _remove(group: Path) -> None:
    try:
        group.rmdir()
    except OSError:
        pass  # something of it still runs, or it never was
