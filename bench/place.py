"""What figures share: a directory, the sizes, and servers that start when first asked for."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psycopg

from tests.support.postgres import running_postgres
from tests.support.server import Server, descendants_of, eventually, running_server

QUICK_DIVISOR = 10
# How long a helper gets to end once its input is closed.
END_SECONDS = 20
LOG_CHARACTERS = 8_000


@dataclass
class Place:
    """One run of the benchmark. Whatever it starts ends with `stack`."""

    directory: Path
    quick: bool
    stack: ExitStack = field(repr=False)

    def scaled(self, full: int, least: int = 1) -> int:
        """A size or a count: a tenth of it when quick."""
        return max(least, full // QUICK_DIVISOR) if self.quick else full

    @cached_property
    def server(self) -> Server:
        """A server whose resident task is up, so that Spark's start disturbs no figure."""
        server = self.stack.enter_context(running_server(self.directory / "data"))
        self.stack.push(lambda kind, *_: _show_log(server) if kind is not None else None)
        with server.connect() as connection:
            wait_until_resident(connection)
        return server

    @cached_property
    def postgres(self) -> str:
        """The connection string of a real PostgreSQL whose commits reach the disk."""
        return self.stack.enter_context(running_postgres(durable=True))

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        """To Evertide; every statement is prepared the first time it is run."""
        connection = self.stack.enter_context(self.server.connect())
        connection.prepare_threshold = 0
        return connection

    def connect_postgres(self) -> "psycopg.Connection[tuple[object, ...]]":
        """The same client, to PostgreSQL."""
        connection = self.stack.enter_context(psycopg.connect(self.postgres, autocommit=True))
        connection.prepare_threshold = 0
        return connection


def _show_log(server: Server) -> None:
    """What the server said, when a figure failed: its directory is about to go."""
    print(server.log_text()[-LOG_CHARACTERS:], file=sys.stderr)


def wait_until_resident(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Returns once ticks of a view run on the resident task; leaves nothing behind."""
    connection.execute("CREATE TABLE probe (a int)")
    connection.execute("CREATE MATERIALIZED VIEW probes AS SELECT count(*) AS n FROM probe")

    def resident() -> bool:
        connection.execute("INSERT INTO probe VALUES (1)")
        query = "SELECT count(*) FROM mz_internal.mz_tick_records WHERE executor = 'resident'"
        row = connection.execute(query).fetchone()
        return row is not None and row[0] != 0

    eventually(resident, seconds=120, pause=0.2)
    connection.execute("DROP TABLE probe CASCADE")


class Helper:
    """A program of this package in a process of its own: a line in, a line out."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.pid = process.pid

    def ask(self, line: str) -> str:
        """Its answer to one line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"helper ended: {self._process.args!r}"
        return line.strip()


@contextmanager
def running_helper(program: str, *arguments: str) -> Iterator[Helper]:
    """Runs `python -m bench.<program>`; it ends when its input does, or is ended by pid."""
    command = [sys.executable, "-m", f"bench.{program}", *arguments]
    process = subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield Helper(process)
    finally:
        pids = [process.pid, *descendants_of(process.pid)]
        assert process.stdin is not None
        process.stdin.close()
        deadline = time.monotonic() + END_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in pids:
            _kill(pid)
        process.wait()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended by itself
