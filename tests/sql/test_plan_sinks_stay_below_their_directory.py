"""Goal: no path that a user writes leads a sink out of the directory that the operator allowed.

Method: paths of every kind; what is refused is refused at its place in the statement, and what is
accepted is a plain path below the directory.
"""

import random
from pathlib import PurePosixPath

import pytest

from evertide.sql.plan.external.sink import sink_path
from evertide.vocab.errors import FeatureNotSupported, InsufficientPrivilege, SqlError

ROOT = "/srv/data/sinks"


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("a.json", "a.json"),
        ("a/b/c", "a/b/c"),
        ("a//b", "a/b"),
        ("./a", "a"),
        ("/srv/data/sinks/a/b", "a/b"),
        ("with blank 'and' ü", "with blank 'and' ü"),
    ],
)
def test_paths_below_are_stored_plainly(written: str, stored: str) -> None:
    assert sink_path(written, ROOT, 0) == stored


@pytest.mark.parametrize(
    "written",
    ["..", "../a", "a/../../b", "a/..", "/", "/etc/passwd", "/srv/data/sinks2/a", "/srv/data",
     "/srv/data/sinks/../x"],
)  # fmt: skip
def test_paths_outside_are_refused_as_not_allowed(written: str) -> None:
    with pytest.raises(InsufficientPrivilege, match="outside the directory") as refused:
        sink_path(written, ROOT, 30)
    assert refused.value.position == 31


@pytest.mark.parametrize(
    "written",
    ["", ".", "a/", "/srv/data/sinks", ".a", "a/.b", "a\0b", "a\nb", "x" * 201, "a/" * 600 + "b"],
)
def test_names_of_no_file_are_refused(written: str) -> None:
    with pytest.raises(SqlError) as refused:
        sink_path(written, ROOT, 4)
    assert refused.value.code == "22023"
    assert refused.value.position == 5


def test_without_a_directory_there_are_no_sinks() -> None:
    with pytest.raises(FeatureNotSupported, match="no directory"):
        sink_path("a", None, 0)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_accepted_lies_below(seed: int) -> None:
    rng = random.Random(seed)
    accepted = 0
    for _ in range(500):
        parts = [
            rng.choice(["a", "b.c", "..", ".", "", "/", "srv", "data", "sinks"]) for _ in "12345"
        ]
        written = "/".join(parts[: rng.randint(1, 5)])
        if rng.random() < 0.3:
            written = f"{ROOT}/{written}"
        try:
            path = PurePosixPath(sink_path(written, ROOT, 0))
        except SqlError:
            continue
        accepted += 1
        assert not path.is_absolute()
        assert path.parts
        assert not any(part.startswith(".") for part in path.parts)
    assert accepted > 10
