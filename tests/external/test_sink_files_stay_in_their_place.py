"""Goal: a sink writes one file of its own below the directory of sinks, and nothing else: whatever
lies there already, and whatever links lead out.

Method: files, links, pipes and marks of others are put where a sink wants to write.
"""

import os
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
