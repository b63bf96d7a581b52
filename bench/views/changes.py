"""Batches of mixed changes, as the model takes them and as statements for a server."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from bench.views.definitions import SECOND_SHARE, View
from bench.views.model import Model, Row
from bench.views.tables import TABLES, Columns, Ids, draw_rows

STATEMENT_ROWS = 5_000
# Of one-row changes to a view of two changing tables, every so many-th is to the second.
SECOND_EVERY = 5


@dataclass(frozen=True, slots=True)
class Batch:
    """Statements that commit together, and what one key of the view shows before and after."""

    statements: tuple[str, ...]
    size: int
    key: Row
    before: list[Row]
    after: list[Row]
    # What DuckDB took to make the same changes.
    replacing_ms: float = field(compare=False)

    def texts(self, blocks: bool) -> tuple[str, ...]:
        """What is sent, one after the other: a transaction block goes as one text."""
        if not blocks or len(self.statements) == 1:
            return self.statements
        return ("; ".join(["BEGIN", *self.statements, "COMMIT"]),)

    @property
    def shows(self) -> bool:
        """Whether the key tells that the batch has arrived."""
        return sorted(map(repr, self.before)) != sorted(map(repr, self.after))


@dataclass(frozen=True, slots=True)
class _TableChange:
    """Rows by id that go, and rows that come; an update is both."""

    table: str
    gone: Ids
    rows: Columns


def draw_batch(model: Model, view: View, size: int, number: int, *, inserts: bool) -> Batch:
    """The model has taken the changes when this returns.

    `inserts`: nothing is updated or deleted; else a third each.
    """
    row_id, second_id, *key = model.focus(view)
    before = model.expected(view, tuple(key))
    first = int(str(row_id))
    already = model.replacing_ms
    if size == 1 and not inserts:
        second = None if second_id is None else int(str(second_id))
        statements = _single(model, view, number, first, second)
    else:
        statements = _many(model, view, size, first, inserts=inserts)
    replacing = model.replacing_ms - already
    after = model.expected(view, tuple(key))
    return Batch(statements, size, tuple(key), before, after, replacing)


def _single(
    model: Model, view: View, number: int, first: int, second: int | None
) -> tuple[str, ...]:
    """INSERT, UPDATE and DELETE in turn."""
    none = np.empty(0, dtype=np.int64)
    table = view.changed[0]
    if second is not None and number % SECOND_EVERY == SECOND_EVERY - 1:
        return (_update(model, view.changed[1], second),)
    match number % 3:
        case 0:
            rows = _like(model, table, first)
            model.replace(table, none, rows)
            return tuple(_inserts(model, table, rows))
        case 1:
            return (_update(model, table, first),)
        case _:
            empty: Columns = dict.fromkeys(TABLES[table].columns, none)
            model.replace(table, np.array([first]), empty)
            return (f"DELETE FROM {table} WHERE id = {first}",)


def _update(model: Model, table: str, row_id: int) -> str:
    ids = np.array([row_id])
    rows = _updated(model, table, ids)
    columns = TABLES[table].columns
    # No drawn text has a comma.
    values = model.literals(table, rows)[0][1:-1].split(", ")
    model.replace(table, ids, rows)
    kept = {"id", *TABLES[table].kept}
    changed = [f"{n} = {v}" for n, v in zip(columns, values, strict=True) if n not in kept]
    return f"UPDATE {table} SET {', '.join(changed)} WHERE id = {row_id}"


def _many(model: Model, view: View, size: int, focus: int, *, inserts: bool) -> tuple[str, ...]:
    """Every DELETE first, so that an updated row is never there twice."""
    second = round(size * SECOND_SHARE) if len(view.changed) > 1 else 0
    changes = [_mixed(model, view.changed[0], size - second, focus, inserts=inserts)]
    if second:
        changes.append(_mixed(model, view.changed[1], second, None, inserts=inserts))
    statements: list[str] = []
    for change in changes:
        statements += _deletes(change.table, change.gone.tolist())
    for change in changes:
        statements += _inserts(model, change.table, change.rows)
    for change in changes:
        model.replace(change.table, change.gone, change.rows)
    return tuple(statements)


def _mixed(
    model: Model, table: str, size: int, focus: int | None, *, inserts: bool
) -> _TableChange:
    """The row in focus is updated; if nothing is, one like it comes."""
    updates, deletes = (0, 0) if inserts else ((size + 1) // 3, size // 3)
    picked = model.draw.choice(model.live[table], updates + deletes, replace=False)
    if focus is not None and updates:
        picked = np.concatenate([[focus], picked[picked != focus]])[: updates + deletes]
    updated = np.sort(picked[:updates])
    new_ids = model.new_ids(table, size - updates - deletes)
    parts = [draw_rows(table, new_ids, model.live, model.draw)]
    if inserts and focus is not None:
        parts = [
            draw_rows(table, new_ids[1:], model.live, model.draw),
            _like(model, table, focus, new_ids[:1]),
        ]
    if updates:
        parts.append(_updated(model, table, updated))
    names = TABLES[table].columns
    rows = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return _TableChange(table, picked, rows)


def _updated(model: Model, table: str, ids: Ids) -> Columns:
    """New values for rows that stay, but for the columns that an update leaves alone."""
    fresh = draw_rows(table, ids, model.live, model.draw)
    names = ", ".join(TABLES[table].kept)
    model.connection.register("chosen", pa.table({"id": ids}))
    query = f"SELECT {names} FROM {table} WHERE id IN (SELECT id FROM chosen) ORDER BY id"
    stored = model.connection.execute(query).fetchnumpy()
    model.connection.unregister("chosen")
    return {**fresh, **{name: np.asarray(values) for name, values in stored.items()}}


def _like(model: Model, table: str, row_id: int, ids: Ids | None = None) -> Columns:
    """A new row beside one that is there, with amounts above its own."""
    stored = model.row(table, row_id)
    more = int(model.draw.integers(1, 1_000))
    for name in ("amount", "price"):
        if name in stored:
            stored[name] = int(str(stored[name])) + more
    stored["id"] = int((model.new_ids(table, 1) if ids is None else ids)[0])
    return {name: _column(value) for name, value in stored.items()}


def _column(value: object) -> "np.ndarray[tuple[int], np.dtype[np.generic]]":
    if isinstance(value, int):
        return np.array([value], dtype=np.int64)
    if isinstance(value, str):
        return np.array([value], dtype=object)
    return np.array([value], dtype="datetime64[D]")


def _deletes(table: str, ids: Sequence[int]) -> Iterator[str]:
    for start in range(0, len(ids), STATEMENT_ROWS):
        keys = ", ".join(map(str, ids[start : start + STATEMENT_ROWS]))
        yield f"DELETE FROM {table} WHERE id IN ({keys})"


def _inserts(model: Model, table: str, rows: Columns) -> Iterator[str]:
    yield from inserts_of(table, model.literals(table, rows))


def inserts_of(table: str, literals: Sequence[str]) -> Iterator[str]:
    """Statements of literals, some thousand rows each."""
    for start in range(0, len(literals), STATEMENT_ROWS):
        rows = ", ".join(literals[start : start + STATEMENT_ROWS])
        yield f"INSERT INTO {table} VALUES {rows}"
