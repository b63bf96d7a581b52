"""A real server for tests: its own processes, data directory and ports, ended by pid."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import psycopg

READY_SECONDS = 60
NONE: Mapping[str, str] = MappingProxyType({})
# So much of a server's log is shown beside a test that failed.
LAST_LINES = 80

T = TypeVar("T")


@dataclass
class Server:
    """One `evertide serve` and where it answers."""

    data: Path
    process: subprocess.Popen[bytes]
    log: Path
    sql: list[str] = field(default_factory=list)
    http: list[str] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)

    def connect(self, adapter: int = 0, **options: object) -> "psycopg.Connection[tuple]":
        """A psycopg connection in autocommit mode."""
        host, port = self.sql[adapter].rsplit(":", 1)
        settings = {"user": "materialize", "dbname": "materialize", "autocommit": True} | options
        return psycopg.connect(host=host, port=int(port), **settings)  # type: ignore[arg-type]

    def dsn(self, adapter: int = 0) -> str:
        """For clients that take a URL."""
        return f"postgresql://materialize@{self.sql[adapter]}/materialize"

    def descendants(self) -> list[int]:
        """Every process of the tree below the supervisor, and itself."""
        return [self.process.pid, *descendants_of(self.process.pid)]

    def pids_of(self, program: str) -> list[int]:
        """Children that run `evertide.cli.<program>`.

        A process that is about to start another one (a JVM, say) has a child with its own command
        line for a moment: only the process itself counts.
        """
        found: list[int] = []
        for pid in descendants_of(self.process.pid):
            command = command_line(pid)
            if f"evertide.cli.{program}" in command and _parent(pid) not in found:
                found.append(pid)
        return found

    def kill_all(self) -> None:
        """SIGKILL to the whole tree at once, as a power cut would."""
        for pid in self.descendants():
            _kill(pid, signal.SIGKILL)
        self.process.wait(30)
        self.close()

    def close(self) -> None:
        """Let go of the pipe to a server that has ended."""
        if self.process.stdout is not None:
            self.process.stdout.close()

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")

    def last_words(self) -> str:
        """The end of its log, without what Java says about where it was."""
        lines = [line for line in self.log_text().splitlines() if not line.startswith("\tat ")]
        return "\n".join(lines[-LAST_LINES:])


def descendants_of(pid: int) -> list[int]:
    """All processes below one, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            parent = _parent(int(entry.name))
            if parent is not None:
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    queue = list(children.get(pid, []))
    while queue:
        found.append(queue[0])
        queue.extend(children.get(queue.pop(0), []))
    return found


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rsplit(b")", 1)[1].split()[1])


def command_line(pid: int) -> str:
    """What a process was started as; nothing once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _kill(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0] != b"Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def start_server(
    data: Path,
    flags: Sequence[str] = (),
    *,
    wait: bool = True,
    prefix: Sequence[str] = (),
    surroundings: Mapping[str, str] = NONE,
) -> Server:
    """Start it on free ports, by the program `prefix`; returns once it says that it is ready.

    `surroundings`: variables that it has beside this process's.
    """
    data.mkdir(parents=True, exist_ok=True)
    log = data.parent / f"{data.name}.{time.monotonic_ns()}.log"
    command = [
        *prefix, sys.executable, "-m", "evertide.cli.main", "serve", "--data", str(data),
        "--sql-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0",
        "--internal-sql-addr", "127.0.0.1:0", *flags,
    ]  # fmt: skip
    with log.open("wb") as errors:
        environ = {**os.environ, **surroundings}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environ)
    server = Server(data, process, log)
    if wait:
        _wait_ready(server)
    return server


def _wait_ready(server: Server) -> None:
    assert server.process.stdout is not None
    readable, _, _ = select.select([server.process.stdout], [], [], READY_SECONDS)
    line = server.process.stdout.readline().decode() if readable else ""
    if not line.startswith("evertide ready"):
        server.kill_all()
        raise AssertionError(f"the server did not get ready: {line!r}\n{server.log_text()[-4000:]}")
    fields = dict(part.split("=", 1) for part in line.split()[2:])
    server.sql = fields["sql"].split(",")
    server.http = fields["http"].split(",")
    server.internal = fields["internal"].split(",")


@contextmanager
def running_server(
    data: Path, flags: Sequence[str] = (), *, surroundings: Mapping[str, str] = NONE
) -> Iterator[Server]:
    """A server for one test; whatever happens, nothing of it is left."""
    server = start_server(data, flags, surroundings=surroundings)
    try:
        yield server
    except BaseException:
        print(f"{server.log}:\n{server.last_words()}")
        raise
    finally:
        pids = server.descendants()
        try:
            server.stop()
        except subprocess.TimeoutExpired:
            pass
        for pid in pids:
            _kill(pid, signal.SIGKILL)
        server.close()


def eventually(check: Callable[[], T], *, seconds: float = 60, pause: float = 0.05) -> T:
    """Call `check` until it returns something true; the last answer fails the test."""
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"still {answer!r} after {seconds} s"
        time.sleep(pause)
