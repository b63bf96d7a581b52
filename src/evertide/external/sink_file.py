"""The file of a sink: found without leaving the directory of sinks, owned by one sink, and written
by one process at a time.

Beside the file lies a hidden one that says whose it is. Its lock is held by the process that
writes, and is let go by the kernel however that ends. Nothing here is asynchronous: callers use a
thread.
"""

import fcntl
import os
import stat
from pathlib import PurePosixPath
from typing import Final

from evertide.external.lines import timestamp_of
from evertide.vocab.timestamp import Timestamp

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_BLOCK_BYTES: Final = 1 << 16


class SinkFileError(Exception):
    """The file is not, or not any more, one that this sink may write."""


class Locked(Exception):
    """Another process writes the file."""


class SinkFile:
    """Not opened yet. Once `open` was called, whatever came of it, `close` must be."""

    def __init__(self, directory: str, path: str, owner: str) -> None:
        self._directory = directory
        self._path = path
        self._owner = owner
        self._files: list[int] = []
        self._file = -1
        # Up to here the file is right; what follows was written, but nobody knows how far.
        self._end = 0
        self._unproven = b""

    def open(self) -> None:
        """Open and lock; raises Locked, SinkFileError or OSError."""
        parent, name = self._parent(self._directory)
        self._file = self._own(parent, name, self._owner)

    def close(self) -> None:
        """Let others write it."""
        while self._files:
            os.close(self._files.pop())

    def _parent(self, directory: str) -> tuple[int, str]:
        """The directory that the file is in, made if it is missing. No symbolic link below the
        directory of sinks is followed, so that no path leads out of it."""
        os.makedirs(directory, mode=0o700, exist_ok=True)
        parent = self._keep(os.open(directory, _DIRECTORY))
        *between, name = PurePosixPath(self._path).parts
        for part in between:
            try:
                os.mkdir(part, 0o700, dir_fd=parent)
                os.fsync(parent)
            except FileExistsError:
                pass
            parent = self._keep(os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent))
        return parent, name

    def _keep(self, file: int) -> int:
        self._files.append(file)
        return file

    def _own(self, parent: int, name: str, owner: str) -> int:
        """The file, after it is known that it is this sink's or that there is none yet."""
        mark = self._keep(os.open(f".{name}.sink", _FILE | os.O_CREAT, 0o600, dir_fd=parent))
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(f"another process writes file '{self._path}'") from None
        said = os.pread(mark, 4_096, 0).decode(errors="replace")
        begins = f"{owner} begins"
        if said == owner:
            return self._opened(parent, name, _FILE)
        if said != begins and _exists(parent, name):
            whose = f" and belongs to {said}" if said else ""
            raise SinkFileError(f"file '{self._path}' exists already{whose}")
        # Said first, and again by whoever finds it said, perhaps not safely: a file that is found
        # after this can only be the one made below.
        _say(mark, begins)
        os.fsync(parent)
        made = self._opened(parent, name, _FILE | os.O_CREAT)
        os.fsync(parent)
        _say(mark, owner)
        return made

    def _opened(self, parent: int, name: str, flags: int) -> int:
        try:
            file = self._keep(os.open(name, flags, 0o600, dir_fd=parent))
        except FileNotFoundError:
            raise SinkFileError(f"file '{self._path}' was removed") from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise SinkFileError(f"file '{self._path}' is no ordinary file")
        return file

    def check(self) -> None:
        """Raises if the file was removed meanwhile: nobody would find what is written."""
        if os.fstat(self._file).st_nlink == 0:
            raise SinkFileError(f"file '{self._path}' was removed")

    def go_on_at(self, from_ts: Timestamp) -> None:
        """Everything before this timestamp is in the file; what follows there is looked at again,
        as it is written."""
        start = self._start_of(from_ts)
        self._unproven = os.pread(self._file, os.fstat(self._file).st_size - start, start)
        self._end = start

    def _start_of(self, from_ts: Timestamp) -> int:
        """Where the first line of this timestamp or a later one begins. The last line may be torn;
        it is late enough in any case."""
        size = os.fstat(self._file).st_size
        start, tail, wanted = size, b"", _BLOCK_BYTES
        while start > 0:
            block, wanted = min(wanted, start), wanted * 2
            start -= block
            tail = os.pread(self._file, block, start) + tail
            first = 0 if start == 0 else tail.find(b"\n") + 1
            found = self._first_at(tail[first:], from_ts) if first or start == 0 else 0
            if found > 0:
                return start + first + found
        return 0

    def _first_at(self, lines: bytes, from_ts: Timestamp) -> int:
        """Behind the last whole line before the timestamp; 0: there is none among these."""
        behind = at = 0
        while (end := lines.find(b"\n", at)) >= 0:
            ts = timestamp_of(lines[at:end])
            if ts is None:
                raise SinkFileError(f"file '{self._path}' holds a line that no sink wrote")
            if ts >= from_ts:
                break
            behind = at = end + 1
        return behind

    def write(self, lines: bytes) -> None:
        """These lines come next. A torn one is cut off; those that are there already are written
        again in place: the kernel gives up what it failed to make safe, and still shows it."""
        same = _same_lines(lines, self._unproven)
        if same == len(lines):
            self._unproven = self._unproven[same:]
        else:
            self._cut(self._end + same)
        at, left = self._end, memoryview(lines)
        while left:
            written = os.pwrite(self._file, left, at)
            at, left = at + written, left[written:]
        self._end = at

    @property
    def in_doubt(self) -> bool:
        """Whether there is more in the file than was written or found to be right."""
        return bool(self._unproven)

    def end_here(self) -> None:
        """No more lines are known now: what else is in the file is cut off."""
        if self._unproven:
            self._cut(self._end)

    def make_safe(self) -> None:
        """Whatever happens to the machine, what was written is in the file."""
        os.fsync(self._file)

    def _cut(self, size: int) -> None:
        self._unproven = b""
        if os.fstat(self._file).st_size > size:
            os.ftruncate(self._file, size)


def _say(mark: int, text: str) -> None:
    """Never is the mark empty meanwhile. Whose a file is begins what says that it is begun, so the
    one becomes the other at once, by the cut."""
    said = text.encode()
    os.pwrite(mark, said, 0)
    os.ftruncate(mark, len(said))
    os.fsync(mark)


def _exists(parent: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    return True


def _same_lines(lines: bytes, there: bytes) -> int:
    """How many bytes of whole lines both begin with."""
    if there.startswith(lines):
        return len(lines)
    low, high = 0, min(len(lines), len(there))
    while low < high:
        middle = (low + high + 1) // 2
        if lines[low:middle] == there[low:middle]:
            low = middle
        else:
            high = middle - 1
    return lines.rfind(b"\n", 0, low) + 1
