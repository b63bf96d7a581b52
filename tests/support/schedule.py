"""Which worker runs what, when several run the tests: whole files, in the order they were sorted.

A file's servers are started once, by whoever runs the file. What files of a folder share (one Spark
application, one server) is started by each worker that comes to the folder, so a worker stays where
it is while something is left to do there, and else goes where nobody is.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Folders whose files share something costly, by what it is.
SHARED = {"spark": "spark", "views": "views", "wire": "server", "golden": "server"}


def shared_by(file: str) -> str | None:
    """What this file shares with others."""
    parts = PurePosixPath(file).parts
    return SHARED.get(parts[1]) if len(parts) > 2 else None


def next_file(left: Iterable[str], own: Iterable[str], others: Iterable[str]) -> str:
    """The one that a worker takes, by which files it and the others have had."""
    started, started_elsewhere = set(map(shared_by, own)), set(map(shared_by, others))

    def cost(file: str) -> int:
        shared = shared_by(file)
        if shared is None or shared in started:
            return 0
        return 2 if shared in started_elsewhere else 1

    return min(left, key=cost)


class WholeFiles(LoadScopeScheduling):
    """A worker is given a file when it has one test left.

    It begins a test once it knows the one after it, so this keeps nobody waiting, and nobody sits
    on a file while others have nothing to do.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _reschedule(self, node: WorkerController) -> None:
        if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = [
            file
            for other, files in self.assigned_work.items()
            if other is not node
            for file in files
        ]
        chosen = next_file(self.workqueue, self.assigned_work[node], others)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WholeFiles:
    """A hook of the conftest that imports it."""
    return WholeFiles(config, log)
