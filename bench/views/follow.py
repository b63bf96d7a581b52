"""How long a view takes to show a batch of changes, and how many changes a second it can take."""

import datetime
import time
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TypeAlias

import psycopg

from bench.views.changes import Batch, draw_batch
from bench.views.definitions import View
from bench.views.model import Model, require_same

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"

# A run ends after this long even if it has not had all its repetitions.
RUN_SECONDS = 15.0
SUSTAINED_BATCH = 1_000
# Small batches are drawn so many at a time, before the clock runs. Drawing one keeps a core busy
# for longer than all that is measured, and leaves nothing of the server in its caches.
AHEAD = 20
AHEAD_LIMIT = 1_000
# Between batches: as a client that does something else meanwhile.
PAUSE_SECONDS = 0.01

TICKS = """
SELECT t.started_at, t.duration_ms FROM mz_internal.mz_tick_records t
JOIN mz_catalog.mz_materialized_views v ON v.id = t.object_id
WHERE v.name = %s AND t.started_at >= %s AND t.rows_in > 0"""


@dataclass
class Timings:
    """Milliseconds by batch: until acknowledged, from there until shown, both, and the ticks; and
    what DuckDB took to make the same changes."""

    writes: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    both: list[float] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)
    replacing: list[float] = field(default_factory=list)


def takes_blocks(connection: Connection) -> bool:
    """Whether a DELETE may stand in a transaction block; if not, statements commit one by one."""
    connection.execute("CREATE TABLE block_probe (id int)")
    try:
        connection.execute("BEGIN")
        connection.execute("DELETE FROM block_probe WHERE id IN (1, 2)")
        return True
    except psycopg.errors.ActiveSqlTransaction:
        return False
    finally:
        connection.execute("ROLLBACK")
        connection.execute("DROP TABLE block_probe")


@dataclass
class Follower:
    """One view under changes, over one connection."""

    connection: Connection
    model: Model
    view: View
    blocks: bool
    inserts: bool
    # Batches drawn so far: one-row changes take turns by it.
    drawn: int = 0

    def batch(self, size: int) -> Batch:
        """The next one; its changes are in the model already."""
        self.drawn += 1
        return draw_batch(self.model, self.view, size, self.drawn, inserts=self.inserts)

    def hand_over(self, batch: Batch) -> None:
        """Returns when the server has acknowledged all of it."""
        for text in batch.texts(self.blocks):
            self.connection.execute(text, prepare=False)

    def require_shown(self, batch: Batch) -> None:
        """Asks for the key and ends the benchmark if the answer is not the model's."""
        found = self.connection.execute(self.view.narrow, batch.key).fetchall()
        require_same(found, batch.after, f"{self.view.name} at {batch.key}")

    def run(self, size: int, repetitions: int) -> Timings:
        """Writes and reads in turn; a batch whose key stays as it was is sent but not counted."""
        timings = Timings()
        spans: list[tuple[float, float]] = []
        deadline = time.monotonic() + RUN_SECONDS
        drawn: list[Batch] = []
        while len(timings.both) < repetitions and (not timings.both or time.monotonic() < deadline):
            if not drawn:
                drawn = [self.batch(size) for _ in range(AHEAD if size < AHEAD_LIMIT else 1)][::-1]
            batch = drawn.pop()
            time.sleep(PAUSE_SECONDS)
            wall = time.time()
            started = time.perf_counter()
            self.hand_over(batch)
            written = time.perf_counter()
            found = self.connection.execute(self.view.narrow, batch.key).fetchall()
            ended = time.perf_counter()
            require_same(found, batch.after, f"{self.view.name} at {batch.key}, {size} changes")
            if batch.shows:
                spans.append((wall, wall + ended - started))
                timings.writes.append((written - started) * 1_000)
                timings.waits.append((ended - written) * 1_000)
                timings.both.append((ended - started) * 1_000)
                timings.replacing.append(batch.replacing_ms)
        for batch in reversed(drawn):
            self.hand_over(batch)  # the model has them
        timings.ticks = self._ticks(spans)
        return timings

    def _ticks(self, spans: list[tuple[float, float]]) -> list[float]:
        """Milliseconds that the view's ticks took, by batch; one batch may take several.

        Those that began after a batch was shown are of another one, which is not counted.
        """
        began = [start for start, _ in spans]
        since = datetime.datetime.fromtimestamp(began[0], datetime.UTC)
        sums = [0.0] * len(spans)
        for started_at, duration_ms in self.connection.execute(
            TICKS, (self.view.name, since)
        ).fetchall():
            assert isinstance(started_at, datetime.datetime)
            index = max(0, bisect_right(began, started_at.timestamp()) - 1)
            if started_at.timestamp() <= spans[index][1]:
                sums[index] += float(str(duration_ms))
        return sums

    def sustained(self, batches: int) -> float:
        """Changes per second, batch after batch, until a read shows the last of them."""
        drawn = [self.batch(SUSTAINED_BATCH) for _ in range(batches)]
        started = time.perf_counter()
        for batch in drawn:
            self.hand_over(batch)
        self.require_shown(drawn[-1])
        return batches * SUSTAINED_BATCH / (time.perf_counter() - started)

    def hydrate(self) -> float:
        """Seconds from CREATE until the view answers. The last one made is kept."""
        name = self.view.name
        key = self.model.focus(self.view)[2:]
        self.connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {name}")
        started = time.perf_counter()
        self.connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {self.view.query}")
        found = self.connection.execute(self.view.narrow, key).fetchall()
        elapsed = time.perf_counter() - started
        require_same(found, self.model.expected(self.view, key), f"{name} at {key}, new")
        return elapsed

    def require_all(self) -> None:
        """The whole view against the model."""
        found = self.connection.execute(f"SELECT * FROM {self.view.name}").fetchall()
        require_same(found, self.model.everything(self.view), f"the whole of {self.view.name}")
