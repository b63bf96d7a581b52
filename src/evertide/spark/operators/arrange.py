"""Arrangements that joins look into, and the one that an index answers from."""

from collections.abc import Sequence

from evertide.dataflow.delta_plan import ArrangeNode
from evertide.expr.relation import Types
from evertide.expr.row_key import column_encoder
from evertide.spark.arrangement import Arrangement, BelowSince
from evertide.spark.layer import add_up
from evertide.spark.operators.delta import Delta, ErrorEntry, Room, Tick
from evertide.spark.runs import Entry
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back
from evertide.vocab.update import Update


class ArrangeOperator:
    """Keeps its input by key; passes the delta on."""

    def __init__(self, node: ArrangeNode, room: Room) -> None:
        self._node = node
        self._kept = room.arrangement("rows", node.types, node.key, MIN_TS)
        self._pending: dict[bytes, list[Entry]] = {}

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        return (self._kept,)

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self._node.input]
        key_of, pending, columns = self._kept.key_of, self._pending, self._node.key
        for entry in delta.rows:
            row = entry[0]
            if self._node.drop_null_keys and None in [row[column] for column in columns]:
                continue
            key = key_of(row)
            if key in pending:
                pending[key].append(entry)
            else:
                pending[key] = [entry]
        return delta

    def probe(self, keys: Sequence[bytes], *, new: bool) -> dict[bytes, Sequence[Entry]]:
        """Entries of these keys before this tick, or after it."""
        found = self._kept.probe(keys)
        pending = self._pending
        if new and pending:
            for key in keys:
                if key in pending:
                    found[key] = [*found[key], *pending[key]] if key in found else pending[key]
        return found

    def commit(self, upper: Timestamp) -> None:
        """Joins look at the state before a tick as a whole, so its times need not be told apart."""
        self._kept.insert_keyed(self._pending)
        self._kept.advance_since(step_back(upper))
        self._pending = {}

    def abort(self) -> None:
        self._pending = {}


class OutputIndex:
    """A dataflow's output by the key of its index, with as much history as reads may ask for."""

    def __init__(self, types: Types, key: tuple[int, ...], room: Room, since: Timestamp) -> None:
        self.rows = room.arrangement("index", types, key, since)
        self.errors: list[ErrorEntry] = []
        self._key_of = column_encoder(tuple(types[i] for i in key), tuple(range(len(key))))
        self._pending: dict[bytes, list[Entry]] = {}
        self._pending_errors: list[ErrorEntry] = []

    def prepare(self, updates: Sequence[Update]) -> None:
        """Get ready to take in a tick's output; replaces what was prepared before."""
        key_of = self.rows.key_of
        self._pending, self._pending_errors = {}, []
        for row, ts, diff, error in updates:
            if error is None:
                self._pending.setdefault(key_of(row), []).append((row, ts, diff))
            else:
                self._pending_errors.append((error, ts, diff))

    def commit(self) -> None:
        """Take it in."""
        self.rows.insert_keyed(self._pending)
        self.errors += self._pending_errors

    def advance_since(self, since: Timestamp) -> None:
        """Nobody will read before `since` again."""
        self.rows.advance_since(since)
        entries = [((error,), ts, diff) for error, ts, diff in self.errors]
        left = add_up(entries, since, None)
        self.errors = [(str(row[0]), ts, diff) for row, ts, diff in left]

    def peek(
        self, keys: Sequence[Row] | None, as_of: Timestamp
    ) -> tuple[list[tuple[Row, int]], list[tuple[str, int]]]:
        """Rows with one of the keys, or all; and the errors, whatever the keys; or BelowSince."""
        if as_of < self.rows.since:
            raise BelowSince(as_of, self.rows.since)
        then = [((error,), ts, diff) for error, ts, diff in self.errors if ts <= as_of]
        errors = [(str(row[0]), count) for row, _, count in add_up(then, as_of, None)]
        if keys is None:
            return self.rows.scan(as_of), errors
        found = self.rows.probe(list({self._key_of(key) for key in keys}))
        return [row for entries in found.values() for row in self.rows.at(entries, as_of)], errors
