"""A real PostgreSQL 16 for tests, from the binaries of the `pgserver` wheel.

The wheel's own Python side is not used: as root it adds a system user and widens the
permissions of every directory above its own. Here a root user lends the server to `nobody`.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Tests assert what is stored, not that it survives a power cut; CDC tests need logical WAL.
SETTINGS = {"listen_addresses": "", "fsync": "off", "wal_level": "logical", "timezone": "UTC"}


def _wheel_install() -> Path:
    spec = importlib.util.find_spec("pgserver")
    assert spec is not None, "pgserver is a dev dependency"
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall"


INSTALL = _wheel_install()
PSQL = INSTALL / "bin" / "psql"
PGBENCH = INSTALL / "bin" / "pgbench"


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root; None means to stay who we are."""
    return "nobody" if os.geteuid() == 0 else None


def _reachable_by_others(path: Path) -> bool:
    """Whether others may come to a program, and run it."""
    return all(part.stat().st_mode & 0o001 for part in [path, *path.parents])


def _install_for(user: str | None, directory: Path) -> Path:
    """The wheel's files, copied if the server's user could not reach them where they are.

    The copy keeps the layout of site-packages: programs look for libpq three folders up.
    """
    if user is None or _reachable_by_others(INSTALL / "bin" / "postgres"):
        return INSTALL
    site_packages = INSTALL.parents[1]
    for part in ("pgserver", "pgserver.libs"):
        shutil.copytree(site_packages / part, directory / "site" / part, symlinks=True)
    for path in (directory / "site").rglob("*"):
        if not path.is_symlink():
            os.chown(path, pwd.getpwnam(user).pw_uid, -1)
    return directory / "site" / "pgserver" / "pginstall"


def _private_directory(user: str | None) -> Path:
    """Short, because the path of a Unix socket may not exceed some hundred bytes.

    Not in TMPDIR, which may be long, or closed to the user that the server is lent to.
    """
    directory = Path(tempfile.mkdtemp(prefix="evertide-pg-", dir="/tmp"))
    if user is not None:
        os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
    return directory


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A server that a test may stop and start again."""

    directory: Path
    bin_dir: Path
    user: str | None
    durable: bool = False

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.directory}"

    def start(self) -> None:
        chosen = SETTINGS | ({"fsync": "on"} if self.durable else {})
        settings = [f"-c {name}='{value}'" for name, value in chosen.items()]
        options = " ".join([*settings, f"-k {self.directory}"])
        self.run("pg_ctl", "start", "-w", "-l", str(self.directory / "server.log"), "-o", options)

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is a crash, `fast` ends every session in an orderly way."""
        self.run("pg_ctl", "stop", "-w", "-m", mode)

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.bin_dir / program), "-D", str(self.directory / "data"), *arguments]
        # A file and not a pipe: the server would hold the pipe open after pg_ctl has ended.
        path = self.directory / "commands.log"
        with open(path, "ab") as log:
            ended = subprocess.run(
                command, user=self.user, cwd=self.directory, stdout=log, stderr=log
            )
        assert ended.returncode == 0, path.read_text()


@contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[str]:
    """A new, empty server as long as the block lasts; gives its connection string.

    `durable`: its commits reach the disk, which only measurements need.
    """
    with restartable_postgres(durable=durable) as server:
        yield server.dsn


@contextmanager
def restartable_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """The same as a server in the test's hands, which must leave it running."""
    user = _server_user()
    directory = _private_directory(user)
    try:
        server = PostgresServer(directory, _install_for(user, directory) / "bin", user, durable)
        server.run("initdb", "--auth=trust", "--encoding=utf8", "--username=postgres", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory)


def own_schema(dsn: str) -> str:
    """A URL for a place of one's own on a server that others use too."""
    return f"{dsn}&options=-csearch_path%3Dtest_{uuid.uuid4().hex}"
