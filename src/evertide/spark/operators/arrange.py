"""Arrangements that joins look into, and the one that an index answers from."""

from collections.abc import Sequence
from typing import TypeAlias

from evertide.dataflow.delta_plan import ArrangeNode
from evertide.dataflow.lookup import Lookup
from evertide.expr.columnar.batch import Batch, Entry
from evertide.expr.columnar.column import Column, Ints
from evertide.expr.columnar.hashes import hash_keys
from evertide.expr.relation import Types
from evertide.expr.row_key import column_encoder
from evertide.spark.arrangements.arrangement import Arrangement, BelowSince, contents_at
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.arrangements.key_order import KeyOrders, at
from evertide.spark.arrangements.layer import add_up
from evertide.spark.arrangements.sharing import Reader
from evertide.spark.operators.delta import Delta, ErrorEntry, Room, Tick, are_many
from evertide.spark.operators.keyed import ByKey, Keyed
from evertide.vocab.datum import Datum, Row
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back

# Rows of an index that are wanted: with one of these keys, or all.
Wanted: TypeAlias = Sequence[Row] | Lookup | None


class ArrangeOperator:
    """Keeps its input by key; passes the delta on.

    A tick's changes wait by key or by columns, as they came; who looks for them the other way gets
    them the other way.
    """

    def __init__(self, node: ArrangeNode, room: Room) -> None:
        self._node = node
        arrangement = room.arrangement("rows", node.types, node.key, MIN_TS)
        self.reader = Reader(arrangement, with_nulls=not node.drop_null_keys)
        self._keys = ByKey(node.types, node.key)
        self._pending: Keyed = {}
        self._columns: ColumnLayer | None = None

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        return (self.reader.arrangement,)

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self._node.input]
        if delta.is_wide:
            self._columns = self._layer(delta)
        else:
            drop_nulls = not self.reader.shared.with_nulls
            self._pending = delta.by_key(self._keys, drop_nulls=drop_nulls).keyed
        return delta

    def _by_key(self, entries: Sequence[Entry]) -> Keyed:
        return self._keys(entries, drop_nulls=not self.reader.shared.with_nulls).keyed

    def _layer(self, delta: Delta) -> ColumnLayer | None:
        drop_nulls = not self.reader.shared.with_nulls
        return delta.by_hash(self._node.types, self._node.key, drop_nulls=drop_nulls)

    def probe(
        self, keys: Sequence[bytes], parts: Sequence[Datum] | None = None, *, new: bool
    ) -> dict[bytes, Sequence[Entry]]:
        """Entries of these keys before this tick, or after it; `parts` as an arrangement has it."""
        found = self.reader.probe(keys, parts)
        if new and self._columns is not None:
            self._pending = self._pending or self._by_key(self._columns.all_entries())
        pending = self._pending
        if new and pending:
            for key in keys:
                if key in pending:
                    found[key] = [*found[key], *pending[key]] if key in found else pending[key]
        return found

    def find(self, keys: Sequence[Column], hashes: Ints, *, new: bool) -> tuple[Ints, Batch]:
        """The same by columns: for each entry found the position of its key, and the entries."""
        if new and self._columns is None and self._pending:
            entries = [entry for group in self._pending.values() for entry in group]
            self._columns = self._layer(Delta(entries))
        also = (self._columns,) if new and self._columns is not None else ()
        return self.reader.find(keys, hashes, also)

    def commit(self, upper: Timestamp) -> None:
        """Joins look at the state before a tick as a whole, so its times need not be told apart."""
        if self._columns is not None and are_many(self._columns.records):
            self.reader.add_columns(self._columns)
        elif self._columns is not None and not self._pending:
            self.reader.add_rows(self._by_key(self._columns.all_entries()))
        elif self._pending:
            self.reader.add_rows(self._pending)
        self.reader.advance(upper)
        self.reader.look_from(step_back(upper))
        self.abort()

    def abort(self) -> None:
        self._pending = {}
        self._columns = None


class OutputIndex:
    """A dataflow's output by the key of its index, with as much history as reads may ask for."""

    def __init__(self, types: Types, key: tuple[int, ...], room: Room, since: Timestamp) -> None:
        rows = room.arrangement("index", types, key, since)
        self.reader = Reader(rows, with_nulls=True, stays=True)
        self.errors: list[ErrorEntry] = []
        self._key_types = tuple(types[i] for i in key)
        self._key_of = column_encoder(self._key_types, tuple(range(len(key))))
        self._pending: dict[bytes, list[Entry]] = {}
        self._columns: ColumnLayer | None = None
        self._pending_errors: Sequence[ErrorEntry] = ()
        self._orders = KeyOrders(rows, room.directory)
        rows.notice = self._orders.note

    @property
    def rows(self) -> Arrangement:
        """What it answers from."""
        return self.reader.arrangement

    def prepare(self, output: Delta) -> None:
        """Get ready to take in a tick's output; replaces what was prepared before."""
        self._pending, self._columns = {}, None
        self._pending_errors = output.errors
        if output.is_wide:
            batch = output.batch(self.rows.types)
            keys = [batch.columns[i] for i in self.rows.key]
            hashes = hash_keys(self._key_types, keys, len(batch))
            self._columns = ColumnLayer.of(hashes, batch)
            return
        key_of = self.rows.key_of
        for entry in output.rows:
            self._pending.setdefault(key_of(entry[0]), []).append(entry)

    def commit(self, upper: Timestamp) -> None:
        """Take it in: everything below `upper` is here then."""
        if self._columns is not None:
            self.reader.add_columns(self._columns)
        self.reader.add_rows(self._pending)
        self.reader.advance(upper)
        self.errors += self._pending_errors
        self._orders.follow()

    def advance_since(self, since: Timestamp) -> None:
        """Nobody will read before `since` again."""
        self.reader.look_from(since)
        entries = [((error,), ts, diff) for error, ts, diff in self.errors]
        left = add_up(entries, since, None)
        self.errors = [(str(row[0]), ts, diff) for row, ts, diff in left]

    def peek(
        self, keys: Wanted, as_of: Timestamp
    ) -> tuple[list[tuple[Row, int]], list[tuple[str, int]]]:
        """Rows with one of the keys, or all; and the errors, whatever the keys; or BelowSince."""
        if as_of < self.rows.since:
            raise BelowSince(as_of, self.rows.since)
        then = [((error,), ts, diff) for error, ts, diff in self.errors if ts <= as_of]
        errors = [(str(row[0]), count) for row, _, count in add_up(then, as_of, None)]
        if keys is None:
            return self.rows.scan(as_of), errors
        if isinstance(keys, Lookup) and not keys.exact:
            return at(self._orders.find(keys), as_of), errors
        wanted = {s.lower for s in keys.spans} if isinstance(keys, Lookup) else self._encoded(keys)
        found = self.rows.probe(list(wanted))
        return [
            row for entries in found.values() for row in contents_at(self.rows, entries, as_of)
        ], errors

    def _encoded(self, keys: Sequence[Row]) -> set[bytes]:
        return {self._key_of(key) for key in keys}

    def close(self) -> None:
        """End what runs beside it."""
        self.rows.notice = None
        self._orders.close()
