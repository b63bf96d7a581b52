"""Goal: whichever writer is killed, when and how often, every acknowledged write is there, once.

Method: a shell script feeds psql sessions with inserts, transactions over two tables and updates,
kills adapters, a replica or the whole tree with kill -9 fifty times, and compares what the server
holds in the end with what the sessions were told.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgres import PSQL

SCRIPT = Path(__file__).with_name("kill_writers.sh")
KILLS = 50
SEED = 20261115


@pytest.mark.timeout(600)
def test_fifty_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    script = subprocess.Popen(
        ["bash", str(SCRIPT), str(tmp_path), str(KILLS), str(SEED)],
        env={**os.environ, "PYTHON": sys.executable, "PSQL": str(PSQL)},
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = script.communicate()
    except BaseException:
        os.killpg(script.pid, signal.SIGKILL)
        raise
    print(output)
    assert script.returncode == 0, output
    summary = dict(part.split("=") for part in output.splitlines()[-1].split())
    assert int(summary["kills"]) == KILLS
    assert int(summary["acknowledged"]) > 10 * KILLS
