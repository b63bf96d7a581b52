"""A server that is killed and started again on the same data."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.server import Server, eventually, start_server


class Site:
    """Where a server runs; which one that is changes."""

    def __init__(self, data: Path, flags: Sequence[str], prefix: Sequence[str]) -> None:
        self._data = data
        self._flags = flags
        self._prefix = prefix
        self.server = self._start()

    def _start(self) -> Server:
        return start_server(self._data, self._flags, prefix=self._prefix)

    def restart(self) -> None:
        """Kill all of it, as a power cut would, and start it again."""
        self.server.kill_all()
        self.server = self._start()

    def connect(self) -> "psycopg.Connection[tuple]":
        """What waits for longer than a test should take is an error."""
        return self.server.connect(options="-c statement_timeout=60s")

    def processes(self) -> list[int]:
        """Those that must outlive faults of the stores: adapters and replicas."""
        replicas = eventually(lambda: self.server.pids_of("replica"))
        return sorted(self.server.pids_of("adapter") + replicas)


@contextmanager
def running_site(
    data: Path, flags: Sequence[str] = (), prefix: Sequence[str] = ()
) -> Iterator[Site]:
    """A site for one test; whatever happens, nothing of it is left."""
    site = Site(data, flags, prefix)
    try:
        yield site
    finally:
        site.server.kill_all()
