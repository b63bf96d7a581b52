"""What `make setup` installs is what constraints.txt says, with nothing left to the day's mood."""

import json
import re
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
NODE = ROOT / "tests" / "wire" / "node"

# Not chosen by us: the venv's own installer, and this package.
UNPINNED = {"evertide", "pip", "setuptools"}


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_environment_matches_the_constraints() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    pinned = {normalized(name): version for name, version in pins.items()}
    installed = {normalized(found.name): found.version for found in distributions()}
    ours = {name: version for name, version in installed.items() if name not in UNPINNED}
    assert ours.items() <= pinned.items(), ours.items() - pinned.items()


def test_the_node_packages_match_their_pins() -> None:
    pins = json.loads((NODE / "package.json").read_text())["dependencies"]
    manifests = (NODE / "node_modules").glob("**/package.json")
    installed = {path.parent.name: json.loads(path.read_text()) for path in manifests}
    versions = {name: found["version"] for name, found in installed.items() if "version" in found}
    assert versions == pins
