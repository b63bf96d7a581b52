"""What several workers' run tells while it goes on: a line per finished file.

Thousands of dots tell nobody how far a run is, and a log without a terminal shows them only once a
line of them is full.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

import pytest

Status: TypeAlias = tuple[str, str, object]


class Progress:
    """Counts what comes in, by file."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self._write_line = write_line
        self._started_s = time.monotonic()
        self._left: Counter[str] = Counter()
        self._ended: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._took_s: defaultdict[str, float] = defaultdict(float)
        self._files = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Every worker has the same tests."""
        if not self._files:
            self._left.update(map(file_of, ids))
            self._files = len(self._left)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Status, Status]:
        """As the summary counts it, without the letter and the word that would be written now."""
        category, _, _ = yield
        return category, "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = file_of(report.nodeid)
        self._took_s[file] += report.duration
        if report.failed:
            self._tell(f"FAILED {report.nodeid} ({report.when})")
        if report.failed or report.skipped or report.when == "call":
            self._ended[file][report.outcome] += 1
        if report.when == "teardown":
            self._left[file] -= 1
            if not self._left[file]:
                del self._left[file]
                counts = ", ".join(f"{n} {outcome}" for outcome, n in self._ended[file].items())
                self._tell(f"{file} {counts} in {self._took_s[file]:.1f} s")

    def _tell(self, text: str) -> None:
        minutes = (time.monotonic() - self._started_s) / 60
        done = self._files - len(self._left)
        self._write_line(f"{minutes:4.1f} min {done:4}/{self._files} {text}")


def begin(config: pytest.Config) -> None:
    """Where several workers run, and nobody asked for more or less to be told."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and config.getoption("dist", "no") != "no" and terminal.verbosity == 0:
        config.pluginmanager.register(Progress(terminal.write_line))


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]
