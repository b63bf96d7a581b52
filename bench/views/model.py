"""What every table must contain, kept in DuckDB beside the server that is measured."""

import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import isclose
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from bench.views.definitions import View
from bench.views.tables import SEED, TABLES, Columns, Ids, draw_rows, sizes

Row: TypeAlias = tuple[object, ...]

LOAD_ROWS = 100_000
# How many rows are tried when one is looked for that shows in a view.
CANDIDATES = 64
TOLERANCE = 1e-11
SHOWN_DIFFERENCES = 10


class WrongAnswer(Exception):
    """A view did not show what it must: there is nothing left to measure."""


class Model:
    """All tables, the ids that live in each, and the source of chance for what changes."""

    def __init__(self, scale: float) -> None:
        self.connection = duckdb.connect()
        self.draw = np.random.default_rng(SEED)
        self.live: dict[str, Ids] = {}
        self._next: dict[str, int] = {}
        # What DuckDB itself has taken so far to replace rows, handed to it as Arrow.
        self.replacing_ms = 0.0
        for name, count in sizes(scale).items():
            self.connection.execute(TABLES[name].create)
            self.live[name] = np.arange(count, dtype=np.int64)
            self._next[name] = count
            for start in range(0, count, LOAD_ROWS):
                ids = self.live[name][start : start + LOAD_ROWS]
                self._insert(name, draw_rows(name, ids, self.live, self.draw))

    def close(self) -> None:
        """Lets go of the memory."""
        self.connection.close()

    def count(self, tables: Sequence[str]) -> int:
        """Rows in all of them."""
        return sum(len(self.live[table]) for table in tables)

    def new_ids(self, table: str, count: int) -> Ids:
        """Ids that no row has had."""
        first = self._next[table]
        self._next[table] = first + count
        return np.arange(first, first + count, dtype=np.int64)

    def replace(self, table: str, gone: Ids, rows: Columns) -> None:
        """Takes rows out by id and puts others in."""
        started = time.perf_counter()
        if len(gone):
            self.connection.register("gone", pa.table({"id": gone}))
            self.connection.execute(f"DELETE FROM {table} WHERE id IN (SELECT id FROM gone)")
            self.connection.unregister("gone")
        self._insert(table, rows)
        self.replacing_ms += (time.perf_counter() - started) * 1_000
        left = np.setdiff1d(self.live[table], gone, assume_unique=True)
        self.live[table] = np.concatenate([left, rows["id"].astype(np.int64)])

    def _insert(self, table: str, rows: Columns) -> None:
        self._offer(table, rows)
        self.connection.execute(f"INSERT INTO {table} SELECT * FROM incoming")
        self.connection.execute("DROP VIEW incoming")
        self.connection.unregister("drawn")

    def _offer(self, table: str, rows: Columns) -> None:
        """Drawn rows under the name `incoming`, typed as the table is."""
        self.connection.register("drawn", pa.table({n: pa.array(v) for n, v in rows.items()}))
        columns = ", ".join(
            # Drawn as cents.
            f"CAST({n} AS decimal(14,2)) * 0.01::decimal(3,2)" if kind.startswith("numeric")
            else f"CAST({n} AS {kind})"
            for n, kind in TABLES[table].columns.items()
        )  # fmt: skip
        names = ", ".join(TABLES[table].columns)
        self.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW incoming({names}) AS SELECT {columns} FROM drawn"
        )

    def literals(self, table: str, rows: Columns) -> list[str]:
        """Each row as a parenthesised list of SQL literals."""
        self._offer(table, rows)
        texts = self._texts(table, "incoming")
        self.connection.execute("DROP VIEW incoming")
        self.connection.unregister("drawn")
        return texts

    def stored_literals(self, table: str) -> Iterator[list[str]]:
        """All rows of a table as literals, many at a time."""
        for start in range(0, self._next[table], LOAD_ROWS):
            rows = f"(SELECT * FROM {table} WHERE id >= {start} AND id < {start + LOAD_ROWS})"
            yield self._texts(table, rows)

    def _texts(self, table: str, source: str) -> list[str]:
        def literal(name: str, kind: str) -> str:
            if kind.startswith("numeric"):
                return f"CAST({name} AS decimal(12,2))::text"
            return f"'''' || {name} || ''''" if kind in ("text", "date") else f"{name}::text"

        parts = " || ', ' || ".join(literal(n, k) for n, k in TABLES[table].columns.items())
        query = f"SELECT '(' || {parts} || ')' AS literal FROM {source} q ORDER BY id"
        return [str(row[0]) for row in self.connection.execute(query).fetchall()]

    def focus(self, view: View) -> Row:
        """A row that shows in the view: its id, the id that it refers to, the view's key."""
        while True:
            ids = self.draw.choice(self.live[view.changed[0]], CANDIDATES)
            found = self.connection.execute(
                view.focus.format(ids=", ".join(map(str, ids.tolist())))
            ).fetchall()
            if found:
                return found[0]

    def row(self, table: str, row_id: int) -> dict[str, object]:
        """A stored row, in the form that rows are drawn in."""
        columns = ", ".join(
            f"CAST({n} * 100 AS bigint) AS {n}" if kind.startswith("numeric") else n
            for n, kind in TABLES[table].columns.items()
        )
        cursor = self.connection.execute(f"SELECT {columns} FROM {table} WHERE id = ?", [row_id])
        found = cursor.fetchall()
        assert len(found) == 1, f"{table} has {len(found)} rows {row_id}"
        return dict(zip(TABLES[table].columns, found[0], strict=True))

    def expected(self, view: View, key: Row) -> list[Row]:
        """What the view must show for one key."""
        return self.connection.execute(view.narrow_query, list(key)).fetchall()

    def everything(self, view: View) -> list[Row]:
        """What the view must contain."""
        return self.connection.execute(view.query).fetchall()


def require_same(found: Sequence[Row], expected: Sequence[Row], label: str) -> None:
    """Ends the benchmark with what differs."""
    # Keys come first in every view, so both sides get the same order.
    ours = sorted((tuple(map(_plain, row)) for row in found), key=repr)
    theirs = sorted((tuple(map(_plain, row)) for row in expected), key=repr)
    if len(ours) == len(theirs) and all(map(_same, ours, theirs)):
        return
    lines = [f"{label}: {len(ours)} rows, {len(theirs)} expected"]
    differing = [(a, b) for a, b in zip(ours, theirs, strict=False) if not _same(a, b)]
    for a, b in differing[:SHOWN_DIFFERENCES]:
        lines += [f"  shown    {a}", f"  expected {b}"]
    lines += [f"  not expected {row}" for row in ours[len(theirs) :][:SHOWN_DIFFERENCES]]
    lines += [f"  missing {row}" for row in theirs[len(ours) :][:SHOWN_DIFFERENCES]]
    raise WrongAnswer("\n".join(lines))


def _plain(value: object) -> object:
    """A whole number is one whatever its type."""
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return value


def _same(ours: Row, theirs: Row) -> bool:
    return len(ours) == len(theirs) and all(map(_equal, ours, theirs))


def _equal(ours: object, theirs: object) -> bool:
    """Exact, but for averages, which DuckDB gives as floats."""
    if isinstance(theirs, float) and isinstance(ours, int | float | Decimal):
        return isclose(float(ours), theirs, rel_tol=TOLERANCE)
    return ours == theirs
