"""A client that follows a subscription while the test does something else."""

import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.support.server import Server, eventually

Told = tuple[Any, ...]


class Subscriber:
    """Reads in a thread what the server sends; `rows` grows as it does."""

    def __init__(self, connection: "psycopg.Connection[tuple]", text: str) -> None:
        self.rows: list[Told] = []
        self.error: psycopg.Error | None = None
        self._connection = connection
        self._text = text
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            for row in self._connection.cursor().stream(self._text):
                self.rows.append(row)
        except psycopg.Error as error:
            self.error = error

    def wait_for(self, count: int) -> list[Told]:
        """The first rows, once there are so many."""
        eventually(lambda: len(self.rows) >= count or self.error)
        assert len(self.rows) >= count, f"it ended with {self.error!r}"
        return self.rows[:count]

    def wait_beyond(self, ts: int) -> None:
        """Until progress says that all up to this timestamp was told."""
        try:
            eventually(lambda: self._progress() > ts or self.error is not None)
        except AssertionError as error:
            told = f"{len(self.rows)} rows of {self._text}, complete to {self._progress()}"
            raise AssertionError(f"{told}, not beyond {ts}") from error
        assert self.error is None, repr(self.error)

    def _progress(self) -> int:
        return next((int(row[0]) for row in reversed(self.rows) if row[1] is True), 0)

    def wait_ended(self) -> psycopg.Error | None:
        """What it ended with, once it has."""
        self._thread.join(60)
        assert not self._thread.is_alive(), f"it goes on after {self.rows}"
        return self.error

    def stop(self) -> None:
        if self._thread.is_alive():
            self._connection.cancel_safe()
        self._thread.join(60)
        assert not self._thread.is_alive()


@contextmanager
def subscribed(server: Server, text: str, schema: str = "public") -> Iterator[Subscriber]:
    """A subscription on a connection of its own, ended at last."""
    with server.connect() as connection:
        connection.execute(f"SET search_path = {schema}")
        subscriber = Subscriber(connection, text)
        try:
            yield subscriber
        finally:
            subscriber.stop()


def held_at(rows: Sequence[Told], ts: int, *, progress: bool = False) -> Counter[Told]:
    """What the rows told so far add up to at a timestamp."""
    first = 2 if progress else 1
    total: Counter[Told] = Counter()
    for row in rows:
        if row[0] <= ts and not (progress and row[1]):
            total[row[first + 1 :]] += row[first]
    return Counter({row: count for row, count in total.items() if count})


def metric(server: Server, name: str) -> float:
    """One number that an adapter shows."""
    with urllib.request.urlopen(f"http://{server.http[0]}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))
