"""Which shards a process wants to be told of, for all others to see.

Most changes concern few processes, and being told costs one that has nothing to do with them as
much as the change cost who made it. So each process leaves marks beside its bell (doorbell.py): one
for each shard that somebody in it waits for, or a single one for all.

Whoever waits marks first and looks second, and whoever changes commits first and reads the marks
second. So a change that was not told, because the mark was not there yet, is seen by the look.
"""

import os
import zlib
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from evertide.vocab.ids import ShardId

_BETWEEN: Final = "@"
# The mark for all shards.
_ALL: Final = ""
# Who waits for more shards than this is told of all: every change reads all marks.
_MOST_MARKS: Final = 8


class Attention:
    """The marks of one process, which change with what is waited for in it."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        # How many want each shard; None: all of them.
        self._wanted: Counter[ShardId | None] = Counter()
        self._marks: set[str] = set()
        self._shown = False

    def show(self) -> None:
        """From now on others see it."""
        self._shown = True
        self._settle()

    def hide(self) -> None:
        """Be told of nothing any more."""
        self._shown = False
        self._settle()

    def want(self, shard_id: ShardId | None) -> None:
        """Be told of this shard too; None: of all."""
        self._wanted[shard_id] += 1
        if self._wanted[shard_id] == 1:
            self._settle()

    def unwant(self, shard_id: ShardId | None) -> None:
        """One of those who wanted it does so no longer."""
        self._wanted[shard_id] -= 1
        if not self._wanted[shard_id]:
            del self._wanted[shard_id]
            self._settle()

    def _due(self) -> set[str]:
        if not self._shown:
            return set()
        if None in self._wanted or len(self._wanted) > _MOST_MARKS:
            return {_ALL}
        return {_mark(shard_id) for shard_id in self._wanted if shard_id is not None}

    def _settle(self) -> None:
        """Put marks that are due before others go. Without room, the slow poll has to do."""
        due = self._due()
        for mark in due - self._marks:
            with suppress(OSError):
                os.symlink(self._name, self._path(mark))
                self._marks.add(mark)
        for mark in self._marks - due:
            with suppress(OSError):
                os.unlink(self._path(mark))
        self._marks &= due

    def _path(self, mark: str) -> Path:
        return self._directory / f"{self._name}{_BETWEEN}{mark}"


def attentive(names: Iterable[str], shard_ids: Collection[ShardId] | None) -> set[str]:
    """Whom to tell of these shards, or, if None, of anything, by the names in the directory."""
    marks = None if shard_ids is None else {_ALL, *map(_mark, shard_ids)}
    found: set[str] = set()
    for name in names:
        bell, between, mark = name.partition(_BETWEEN)
        if between and (marks is None or mark in marks):
            found.add(bell)
    return found


def clear_marks(directory: Path, name: str) -> None:
    """Remove what a process has left that is gone."""
    for mark in directory.glob(f"{name}{_BETWEEN}*"):
        with suppress(OSError):
            mark.unlink()


def _mark(shard_id: ShardId) -> str:
    """Short, as a name of a file; two shards with one mark are told of together."""
    return f"{zlib.crc32(shard_id.encode()):08x}"
