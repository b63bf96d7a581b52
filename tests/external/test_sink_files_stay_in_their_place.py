"""Goal: a sink writes one file of its own below the directory of sinks, and nothing else: whatever
lies there already, and whatever links lead out.

Method: files, links, pipes and marks of others are put where a sink wants to write.
"""

import os
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path

import pytest

from evertide.external.sink_file import Locked, SinkFile, SinkFileError

MINE = "sink u7 of here"


def opened(directory: Path, path: str = "out.json", owner: str = MINE) -> SinkFile:
    file = SinkFile(str(directory), path, owner)
    try:
        file.open()
    except BaseException:
        file.close()
        raise
    return file


def test_a_new_file_is_private_and_in_its_directory(tmp_path: Path) -> None:
    opened(tmp_path / "sinks", "a/b/out.json").close()
    made = tmp_path / "sinks" / "a" / "b" / "out.json"
    assert made.stat().st_mode & 0o077 == 0
    assert made.parent.stat().st_mode & 0o077 == 0


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text("precious")
    with pytest.raises(SinkFileError, match="exists already"):
        opened(tmp_path)
    assert (tmp_path / "out.json").read_text() == "precious"


def test_a_file_of_another_sink_is_left_alone(tmp_path: Path) -> None:
    opened(tmp_path, owner="sink u1 of here").close()
    with pytest.raises(SinkFileError, match="belongs to sink u1 of here"):
        opened(tmp_path)


def test_after_the_other_s_file_was_removed_the_name_is_free(tmp_path: Path) -> None:
    opened(tmp_path, owner="sink u1 of here").close()
    (tmp_path / "out.json").unlink()
    opened(tmp_path).close()
    opened(tmp_path).close()


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, sinks = tmp_path / "outside", tmp_path / "sinks"
    outside.mkdir()
    sinks.mkdir()
    (sinks / "away").symlink_to(outside)
    with pytest.raises(OSError, match="away"):
        opened(sinks, "away/out.json")
    (sinks / "out.json").symlink_to(outside / "target")
    with pytest.raises(SinkFileError, match="exists already"):
        opened(sinks)
    (sinks / ".more.json.sink").symlink_to(outside / "mark")
    with pytest.raises(OSError, match="symbolic links"):
        opened(sinks, "more.json")
    assert list(outside.iterdir()) == []


def test_a_link_that_took_the_file_s_place_is_not_followed(tmp_path: Path) -> None:
    sinks = tmp_path / "sinks"
    opened(sinks).close()
    (sinks / "out.json").unlink()
    (tmp_path / "target").write_text("precious")
    (sinks / "out.json").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        opened(sinks)
    assert (tmp_path / "target").read_text() == "precious"


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "out.json").unlink()
    os.mkfifo(tmp_path / "out.json")
    with pytest.raises(SinkFileError, match="no ordinary file"):
        opened(tmp_path)


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(Locked):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


def test_a_removed_file_is_told(tmp_path: Path) -> None:
    file = opened(tmp_path)
    file.check()
    (tmp_path / "out.json").unlink()
    with pytest.raises(SinkFileError, match="was removed"):
        file.check()
    file.close()
    with pytest.raises(SinkFileError, match="was removed"):
        opened(tmp_path)


@pytest.mark.parametrize("there", [False, True], ids=["before the file", "after the file"])
def test_a_beginning_that_was_cut_off_is_made_again(tmp_path: Path, there: bool) -> None:
    (tmp_path / ".out.json.sink").write_text(f"{MINE} begins")
    if there:
        (tmp_path / "out.json").touch()
    opened(tmp_path).close()
    assert (tmp_path / ".out.json.sink").read_text() == MINE


class Power:
    """What a crash of the machine may leave of a new file and its mark, at every moment."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory = directory
        # What is certain to be there: names, and what the mark says.
        self._safe: tuple[frozenset[str], str] = (frozenset(), "")
        self.left: set[tuple[frozenset[str], str]] = set()
        for name in ("open", "pwrite", "ftruncate", "fsync"):
            self._watch(name, monkeypatch)

    def _watch(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        real = getattr(os, name)

        def watched(*arguments: object, **options: object) -> object:
            self._note()
            done = real(*arguments, **options)
            if name == "fsync":
                self._keep(os.readlink(f"/proc/self/fd/{arguments[0]}"))
            self._note()
            return done

        monkeypatch.setattr(f"evertide.external.sink_file.os.{name}", watched)

    def _now(self) -> tuple[frozenset[str], str]:
        names = frozenset(path.name for path in self._directory.iterdir())
        mark = self._directory / ".out.json.sink"
        return names, mark.read_bytes().decode() if mark.exists() else ""

    def _keep(self, what: str) -> None:
        names, said = self._now()
        if what == str(self._directory):
            self._safe = (names, self._safe[1])
        elif what.endswith(".sink"):
            self._safe = (self._safe[0], said)

    def _note(self) -> None:
        """Any of the names that are not safe yet may be there, and either mark."""
        names, said = self._now()
        unsafe = names - self._safe[0]
        for some in _subsets(unsafe):
            self.left.update((self._safe[0] | some, text) for text in (said, self._safe[1]))


def _subsets(names: frozenset[str]) -> Iterator[frozenset[str]]:
    counts = range(len(names) + 1)
    return (frozenset(s) for s in chain.from_iterable(combinations(names, n) for n in counts))


@pytest.mark.parametrize("before", ["", "sink u1000 of somewhere else, with a long name"])
def test_whenever_a_beginning_is_cut_off_the_sink_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    sinks = tmp_path / "sinks"
    sinks.mkdir()
    if before:
        (sinks / ".out.json.sink").write_text(before)
    with monkeypatch.context() as patched:
        power = Power(sinks, patched)
        opened(sinks).close()
    assert len(power.left) > 4
    for number, (names, said) in enumerate(sorted(power.left, key=str)):
        again = tmp_path / str(number)
        again.mkdir()
        for name in names:
            (again / name).write_text(said if name.startswith(".") else "")
        opened(again).close()
        assert (again / ".out.json.sink").read_text() == MINE, (names, said)
