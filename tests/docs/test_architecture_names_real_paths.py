"""Goal: ARCHITECTURE.md leads to files that exist, and stays short enough to be read."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_every_path_exists() -> None:
    paths = re.findall(r"`(src/evertide/[^`]+)`", TEXT)
    assert len(paths) > 30, "the walks name the files they go through"
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_room_is_described() -> None:
    rooms = {path.name for path in (ROOT / "src/evertide").iterdir() if path.is_dir()}
    described = set(re.findall(r"^\| `src/evertide/(\w+)` \|", TEXT, re.M))
    assert described == rooms - {"__pycache__"}


def test_it_stays_within_two_pages() -> None:
    assert len(TEXT.splitlines()) <= 110
