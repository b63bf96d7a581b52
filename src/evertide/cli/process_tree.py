"""Processes by session, from /proc: what a child and all it started take, and their end.

Every child leads a session of its own, and what it starts stays in that session whoever its parent
is by then. The kernel gives the number of a session to no other process while one member lives.
"""

import os
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
# How often, and how long between, the end of killed processes is waited for.
_END_ROUNDS: Final = 300
_END_PAUSE_S: Final = 0.01
# Fields of /proc/PID/stat behind the name, which may hold any bytes: files here are never decoded.
_STATE, _SESSION, _USER_TICKS, _SYSTEM_TICKS, _STARTED = 0, 3, 11, 12, 19


@dataclass(frozen=True, slots=True)
class Member:
    """One process of a session at one moment."""

    pid: int
    session: int
    cpu_ns: int
    # With the pid it names one process for ever.
    started_ticks: int


def members(sessions: Collection[int]) -> dict[int, list[Member]]:
    """The living processes of these sessions. Reads all of /proc: not for an event loop."""
    found: dict[int, list[Member]] = {session: [] for session in sessions}
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            member = _member(int(entry))
            if member is not None and member.session in found:
                found[member.session].append(member)
    return found


def _member(pid: int) -> Member | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None  # it ended meanwhile
    fields = stat.rpartition(b")")[2].split()
    if fields[_STATE] in (b"Z", b"X"):
        return None
    ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
    cpu_ns = ticks * 1_000_000_000 // _TICKS_PER_SECOND
    return Member(pid, int(fields[_SESSION]), cpu_ns, int(fields[_STARTED]))


def anonymous_bytes(pids: Sequence[int]) -> int:
    """Memory that no file backs. What processes share is counted for each of them."""
    return sum(_lines(pid, "status", (b"RssAnon", b"RssShmem")) for pid in pids)


def own_anonymous_bytes(pids: Sequence[int]) -> int:
    """The same with what is shared counted once; takes milliseconds for each process."""
    return sum(_lines(pid, "smaps_rollup", (b"Pss_Anon", b"Pss_Shmem")) for pid in pids)


def _lines(pid: int, name: str, wanted: Collection[bytes]) -> int:
    try:
        content = (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return 0  # it ended meanwhile
    lines = (line.partition(b":") for line in content.split(b"\n"))
    return sum(int(value.split()[0]) for key, _, value in lines if key in wanted) << 10


def used_ns(before: Mapping[int, Member], now: Sequence[Member]) -> int:
    """CPU time between two looks; of a process that came since, all that it used."""
    total = 0
    for member in now:
        earlier = before.get(member.pid)
        same = earlier is not None and earlier.started_ticks == member.started_ticks
        total += member.cpu_ns - (earlier.cpu_ns if earlier is not None and same else 0)
    return total


def end_session(session: int) -> int:
    """Kill all that is left of a session; tells how many that were. Waits: not for a loop."""
    ended: set[int] = set()
    for _ in range(_END_ROUNDS):
        left = members([session])[session]
        if not left:
            break
        ended.update(member.pid for member in left if _kill(member))
        time.sleep(_END_PAUSE_S)
    return len(ended)


def _kill(member: Member) -> bool:
    """Kill this very process: its number may be another's by now."""
    try:
        handle = os.pidfd_open(member.pid)
    except OSError:
        return False
    try:
        found = _member(member.pid)
        if found is None or found.started_ticks != member.started_ticks:
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def pin(pid: int, cpus: Collection[int]) -> None:
    """Keep a process, all its threads and all it will start on these CPUs.

    Threads that come while this looks inherit from one that is pinned already, or are seen when it
    looks again.
    """
    pinned: set[int] = set()
    while new := set(_threads(pid)) - pinned:
        for thread in new:
            try:
                os.sched_setaffinity(thread, cpus)
            except ProcessLookupError:
                pass  # it ended meanwhile
        pinned |= new


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROC / str(pid) / "task")]
    except OSError:
        return []
