"""Real faults for real servers: disks that are full, and fsyncs that fail.

A full disk is a small tmpfs filled with ballast. A failing fsync is one that this process, asked by
the kernel each time (tests/support/fsync_gate.py), answers with EIO instead of letting it happen.
"""

import errno
import fcntl
import functools
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec

import pytest

P = ParamSpec("P")

# struct seccomp_notif, struct seccomp_notif_resp and their ioctls.
NOTIFICATION = struct.Struct("QIIiIQ6Q")
RESPONSE = struct.Struct("QqiI")
RECEIVE, SEND = 0xC0502100, 0xC0182101
CONTINUE = 1

UNSHARE = ("unshare", "--map-root-user", "--mount")
# Mounted and gone again.
MOUNT = ("sh", "-c", 'd=$(mktemp -d) && mount -t tmpfs tmpfs "$d" && umount "$d"; e=$?; '
         'rmdir "$d"; exit $e')  # fmt: skip


@contextmanager
def small_disk(directory: Path, megabytes: int) -> Iterator[Path]:
    """A file system of this size, as long as the block lasts."""
    directory.mkdir(parents=True)
    options = f"size={megabytes}m,mode=700"
    _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory))
    try:
        yield directory
    finally:
        # Lazily: a server that is being killed may still have files open.
        _run("umount", "--lazy", str(directory))


@contextmanager
def full(directory: Path) -> Iterator[None]:
    """No byte more fits onto the file system of this directory, as long as the block lasts."""
    ballast = directory / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        block = b"\0" * 65_536
        while block:
            try:
                file.write(block)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                block = block[: len(block) // 2]
    try:
        yield
    finally:
        ballast.unlink()


def mounting(test: Callable[P, None]) -> Callable[P, None]:
    """A test that mounts; where that is not allowed, it runs in a namespace where it is."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        if _works(*MOUNT):
            test(*args, **kwargs)
            return
        if not _works(*UNSHARE, *MOUNT):
            pytest.skip("this host lets nobody mount, not even in a namespace of one's own")
        node = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
        # A root of this host may own the directory that pytest would take.
        with tempfile.TemporaryDirectory(prefix="evertide-") as directory:
            command = [
                *UNSHARE, sys.executable, "-m", "pytest", node,
                "--basetemp", f"{directory}/base", "-p", "no:cacheprovider", "-p", "no:xdist",
            ]  # fmt: skip
            ended = subprocess.run(command, check=False, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout[-4000:]

    return run


@functools.cache
def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


class FsyncGate:
    """Decides how the fsyncs of a server end; `prefix` goes before the server's command."""

    def __init__(self) -> None:
        # Not in pytest's directory: the path of a Unix socket may be 107 bytes long at most.
        self._directory = tempfile.TemporaryDirectory(prefix="evertide-gate-", dir="/tmp")
        self._path = Path(self._directory.name) / "socket"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self._path))
        self._socket.listen()
        self._fails: Callable[[str], bool] = lambda _: False
        self.failed: list[str] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def prefix(self) -> list[str]:
        program = Path(__file__).with_name("fsync_gate.py")
        return [sys.executable, str(program), str(self._path)]

    @contextmanager
    def failing(self, fails: Callable[[str], bool]) -> Iterator[list[str]]:
        """Fsyncs of files whose path is said to fail end with EIO; gives the paths that did."""
        self.failed = []
        self._fails = fails
        try:
            yield self.failed
        finally:
            self._fails = lambda _: False

    def close(self) -> None:
        """Take no more servers."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        self._directory.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            with connection:
                _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
            threading.Thread(target=self._answer_all, args=(descriptors[0],), daemon=True).start()

    def _answer_all(self, listener: int) -> None:
        """Until the last process behind this filter has ended."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while all(not event & select.POLLHUP for _, event in poll.poll()):
            received = bytearray(NOTIFICATION.size)
            try:
                fcntl.ioctl(listener, RECEIVE, received)
                number, pid, _, _, _, _, descriptor, *_ = NOTIFICATION.unpack(received)
                fcntl.ioctl(listener, SEND, self._response(number, pid, descriptor))
            except FileNotFoundError:
                pass  # whoever asked was killed meanwhile
        os.close(listener)

    def _response(self, number: int, pid: int, descriptor: int) -> bytes:
        path = os.readlink(f"/proc/{pid}/fd/{descriptor}")
        if not self._fails(path):
            return RESPONSE.pack(number, 0, 0, CONTINUE)
        self.failed.append(path)
        return RESPONSE.pack(number, 0, -errno.EIO, 0)
