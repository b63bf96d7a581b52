"""What recomputing a view costs: Spark over Parquet, PostgreSQL's REFRESH, DuckDB.

DuckDB has the rows as they are now, the others those of the beginning; there are as many.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import psycopg

from bench.figure import Runs, milliseconds
from bench.place import Helper, Place, running_helper
from bench.views.changes import draw_batch
from bench.views.definitions import VIEWS, View
from bench.views.model import Model, WrongAnswer
from bench.views.tables import TABLES

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"

SPARK = "Spark recomputes"
POSTGRES = "PostgreSQL REFRESH"
DUCKDB = "DuckDB recomputes"
DUCKDB_TEXT = "DuckDB, 10,000 as text"

# Per run; each is also done as often before the first.
TIMES = {SPARK: 3, POSTGRES: 3, DUCKDB: 7}
# At a larger scale, where each takes seconds and what comes first matters little.
ONCE = dict.fromkeys(TIMES, 1)
COPY_CHUNK = 1 << 20
TEXT_CHANGES = 10_000

# What a user would index.
INDEXES = (
    "CREATE INDEX ON lineitem (id)", "CREATE INDEX ON lineitem (order_id)",
    "CREATE INDEX ON orders (id)", "CREATE INDEX ON orders (customer)",
    "CREATE INDEX ON customer (id)", "CREATE INDEX ON bids (id)", "CREATE INDEX ON bids (auction)",
    "CREATE INDEX ON auctions (id)",
)  # fmt: skip


@dataclass
class Baselines:
    """The three others, with the same tables."""

    helper: Helper
    postgres: Connection
    model: Model
    # Rows of each view over the rows of the beginning.
    counts: Mapping[str, int]
    times: Mapping[str, int]

    def prepare(self, view: View) -> None:
        """Makes PostgreSQL's view and warms everything up."""
        self.postgres.execute(f"CREATE MATERIALIZED VIEW {view.name} AS {view.query}")
        rows, _ = self._spark(view, 0)
        if rows != self.counts[view.name]:
            raise WrongAnswer(
                f"Spark has {rows} rows of {view.name}, DuckDB {self.counts[view.name]}"
            )
        if self.times is not ONCE:
            self.run(view)

    def run(self, view: View) -> dict[str, list[float]]:
        """Milliseconds by name, for one run."""
        refresh = f"REFRESH MATERIALIZED VIEW {view.name}"
        return {
            SPARK: self._spark(view, self.times[SPARK])[1],
            POSTGRES: [
                milliseconds(lambda: self.postgres.execute(refresh))
                for _ in range(self.times[POSTGRES])
            ],
            DUCKDB: [milliseconds(lambda: self._duckdb(view)) for _ in range(self.times[DUCKDB])],
            DUCKDB_TEXT: [self._duckdb_text(view)],
        }

    def _duckdb(self, view: View) -> None:
        self.model.connection.sql(view.query).to_arrow_table()

    def _duckdb_text(self, view: View) -> float:
        """The statements that Evertide gets, then the query; both are undone."""
        model, live = self.model, dict(self.model.live)
        model.connection.execute("BEGIN")
        batch = draw_batch(model, view, TEXT_CHANGES, 1, inserts=False)
        model.connection.execute("ROLLBACK")
        model.live = live

        def take() -> None:
            for statement in ("BEGIN", *batch.statements):
                model.connection.execute(statement)
            self._duckdb(view)

        taken = milliseconds(take)
        model.connection.execute("ROLLBACK")
        return taken

    def _spark(self, view: View, count: int) -> tuple[int, list[float]]:
        question = json.dumps([view.spark_query or view.query, count])
        rows, timings = json.loads(self.helper.ask(question))
        return int(rows), [float(timing) for timing in timings]


def fastest(baselines: dict[str, Runs]) -> str:
    """The name of the one with the smallest median."""
    return min(baselines, key=lambda name: baselines[name].median)


@contextmanager
def running_baselines(place: Place, model: Model, name: str) -> Iterator[Baselines]:
    """All three with the model's rows of now; `name` tells scales apart."""
    directory = place.directory / f"baselines-{name}"
    directory.mkdir()
    for table in TABLES:
        model.connection.execute(
            f"COPY (SELECT * FROM {table} ORDER BY id) TO '{directory / table}.parquet'"
        )
    postgres = place.connect_postgres()
    schema = f"views_{name.lower()}"
    postgres.execute(f"CREATE SCHEMA {schema}")
    postgres.execute(f"SET search_path = {schema}")
    _fill_postgres(postgres, model, directory)
    counts = {view.name: len(model.everything(view)) for view in VIEWS.values()}
    with running_helper("views.spark_recompute", str(directory)) as helper:
        helper.answer()
        yield Baselines(helper, postgres, model, counts, TIMES if name == "S" else ONCE)
    postgres.execute(f"DROP SCHEMA {schema} CASCADE")


def _fill_postgres(postgres: Connection, model: Model, directory: Path) -> None:
    for table in TABLES.values():
        file = directory / f"{table.name}.csv"
        model.connection.execute(f"COPY {table.name} TO '{file}' (FORMAT csv, HEADER false)")
        postgres.execute(table.create)
        with (
            postgres.cursor().copy(f"COPY {table.name} FROM STDIN (FORMAT csv)") as copy,
            file.open("rb") as rows,
        ):
            while chunk := rows.read(COPY_CHUNK):
                copy.write(chunk)
        file.unlink()
    for statement in INDEXES:
        postgres.execute(statement)
    postgres.execute("ANALYZE")
