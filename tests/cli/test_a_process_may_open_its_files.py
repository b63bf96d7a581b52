"""A limit of open files that is lower than it need be is raised, and one that is higher is left."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
from evertide.cli.open_files import allow_open_files
soft, hard = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
allow_open_files(400)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"), [(200, 1_000, 400), (200, 300, 300), (500, 1_000, 500)]
)
def test_the_limit_is_raised_as_far_as_it_may_be(soft: int, hard: int, wanted: int) -> None:
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(soft), str(hard)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert told.stdout.split() == [str(wanted), str(hard)]
