"""GROUP BY and DISTINCT by columns: what each group touched by a tick showed, and shows now.

A group's state is one row of an arrangement: its key, how many rows it has, what its sums need,
what it shows, and the error it is in. A tick takes the rows of the groups it touches out and puts
the new ones in, so state lies where all state lies: in memory while it is new, else in mapped runs.

Keys whose equal values can look different (0.0 and -0.0) are grouped row by row, in reduce.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evertide.dataflow.delta_plan import ReduceNode
from evertide.expr.aggregate import least_error
from evertide.expr.columnar.batch import (
    Batch,
    add_up,
    concat_batches,
    different_rows,
    empty_batch,
    from_rows,
)
from evertide.expr.columnar.codes import identity_codes
from evertide.expr.columnar.column import (
    Column,
    Ints,
    Mask,
    Numbers,
    aligned,
    all_null,
    concat,
    from_datums,
    to_datums,
)
from evertide.expr.columnar.hashes import hash_keys
from evertide.expr.relation import Types
from evertide.expr.row_key import is_ambiguous
from evertide.spark.accumulate import State
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.operators.delta import Delta, ErrorEntry, Room, Tick
from evertide.spark.operators.grouping.group_values import Changes, Follower, present
from evertide.spark.operators.grouping.reduce_rows import Few, RowReduce
from evertide.spark.operators.grouping.reduce_slots import (
    CountSlot,
    Evaluated,
    ReduceShape,
    SumSlot,
    reduce_shape,
)
from evertide.spark.operators.grouping.sums import Failures
from evertide.spark.operators.grouping.tick_members import TickMembers
from evertide.vocab.datum import Row
from evertide.vocab.errors import encode_error
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back, step_forward


def can_reduce_columns(node: ReduceNode) -> bool:
    """Whether equal keys always look the same."""
    return not any(is_ambiguous(key.type) for key in node.keys)


class ReduceColumns:
    """The operator. Between ticks it keeps arrangements only."""

    def __init__(self, node: ReduceNode, types: Types, room: Room, *, never_negative: bool) -> None:
        self.shape = reduce_shape(node, types, room, never_negative=never_negative)
        self._input = node.input
        width = tuple(range(len(self.shape.key_types)))
        self.groups = room.arrangement("groups", self.shape.state_types, width, MIN_TS)
        self.members: Arrangement | None = None
        if self.shape.keeps_members:
            self.members = room.arrangement("members", self.shape.member_types, width, MIN_TS)
        self._by_rows = RowReduce(self.shape, self.groups, self.members)
        self._pending: list[Batch] = []
        self._pending_members: Batch | None = None
        self._few: Few | None = None

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        members = () if self.members is None else (self.members,)
        return (self.groups, *members, *(d.kept for d in self.shape.distinct))

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self._input]
        if not len(delta):
            return delta
        if self._by_rows.is_quicker(len(delta)):
            self._few = self._by_rows.reduce(delta.rows)
            return Delta(self._few.rows, [*delta.errors, *self._few.errors])
        given, failed = self.shape.evaluate(delta)
        errors = [*delta.errors, *failed]
        if not len(given.times):
            return Delta((), errors)
        touched = self._touched(given)
        batch, more = touched.follow()
        self._pending = touched.state_changes()
        self._pending_members = self.shape.members_of(given) if self.members is not None else None
        return Delta(errors=errors + more, batch=batch)

    def _touched(self, given: Evaluated) -> "_Touched":
        groups, firsts = numbered(given.keys, len(given.times))
        keys = [key.take(firsts) for key in given.keys]
        hashes = hash_keys(self.shape.key_types, keys, len(firsts))
        old = self._old(keys, hashes)
        members = TickMembers(self.members, self.shape, keys, hashes, given, groups)
        return _Touched(self.shape, old, members)

    def _old(self, keys: Sequence[Column], hashes: Ints) -> "_Old":
        """The groups' rows before the tick; a row that came and went is there both ways."""
        where, found = self.groups.find(keys, hashes)
        left = add_up(found.at(where))
        assert (left.diffs == 1).all(), "a group has one row of state"
        places = np.full(len(hashes), -1)
        places[left.times] = np.arange(len(left))
        return _Old(left, places)

    def load(
        self, groups: Sequence[tuple[Row, int, tuple[State, ...]]], members: Batch | None
    ) -> None:
        """State computed elsewhere: keys, net rows and sums, and the values of all groups."""
        shape = self.shape
        if members is None:
            members = empty_batch(shape.member_types)
        if not groups and not len(members):
            return
        known = from_rows(shape.key_types, [key for key, _, _ in groups])
        given = shape.evaluated_members(members)
        keys = [concat([a, b]) for a, b in zip(known, given.keys, strict=True)]
        numbers, firsts = numbered(keys, len(groups) + len(members))
        keys = [key.take(firsts) for key in keys]
        places = np.full(len(firsts), -1)
        places[numbers[: len(groups)]] = np.arange(len(groups))
        rows = Numbers(np.array([count for _, count, _ in groups], np.int64))
        sums = shape.loaded_sums([states for _, _, states in groups])
        nothing = [all_null(t, len(groups)) for t in shape.state_types[-len(shape.slots) - 1 :]]
        ones = np.ones(len(groups), np.int64)
        old = Batch(shape.state_types, (*known, rows, *sums, *nothing), ones, ones)
        mine = numbers[len(groups) :]
        hashes = hash_keys(shape.key_types, keys, len(firsts))
        values = TickMembers(self.members, shape, keys, hashes, given, mine)
        touched = _Touched(shape, _Old(old, places), values)
        state = touched.with_values()
        self._by_rows.forget()
        self.groups.insert_columns(self._layer(state.take(shape.is_kept(state))))
        if self.members is not None and len(members):
            self.members.insert_columns(self._layer(members))
        for distinct in shape.distinct:
            distinct.commit(step_forward(MIN_TS))

    def _layer(self, batch: Batch) -> ColumnLayer:
        keys = batch.columns[: len(self.shape.key_types)]
        return ColumnLayer.of(hash_keys(self.shape.key_types, keys, len(batch)), batch)

    def commit(self, upper: Timestamp) -> None:
        at = step_back(upper)
        if self._few is not None:
            self._commit_few(self._few)
        if self._pending:
            self._by_rows.forget()
            changes = concat_batches(self.shape.state_types, self._pending)
            if len(changes):
                self.groups.insert_columns(self._layer(changes.at(np.full(len(changes), at))))
        self.groups.advance_since(at)
        if self.members is not None:
            if self._pending_members is not None and len(self._pending_members):
                self.members.insert_columns(self._layer(self._pending_members))
            self.members.advance_since(at)
        for distinct in self.shape.distinct:
            distinct.commit(upper)
        self.abort()

    def _commit_few(self, few: Few) -> None:
        self._by_rows.take_in()
        self.groups.insert_keyed(few.groups)
        if self.members is not None:
            self.members.insert_keyed(few.members)
        for distinct, counted in zip(self.shape.distinct, few.distinct, strict=True):
            distinct.kept.insert_keyed(counted.changes())

    def abort(self) -> None:
        self._few = None
        self._by_rows.abort()
        self._pending = []
        self._pending_members = None
        for distinct in self.shape.distinct:
            distinct.abort()


def numbered(keys: Sequence[Column], length: int) -> tuple[Ints, Ints]:
    """For each row the number of its group, and where each group is first."""
    codes = [code for key in keys for code in identity_codes(key)]
    if not codes:
        return np.zeros(length, np.int64), np.zeros(1, np.int64)
    return different_rows(codes)


@dataclass(frozen=True, slots=True)
class _Old:
    """Rows of state, and for each group of the tick where its row is; -1: it has none."""

    batch: Batch
    places: Ints

    def columns(self, start: int, stop: int) -> list[Column]:
        """Some columns, a row for each group; zeros and NULLs where there was none."""
        return [aligned(column, self.places) for column in self.batch.columns[start:stop]]


class _Touched:
    """The groups that a tick touches, on their way through its timestamps."""

    def __init__(
        self,
        shape: ReduceShape,
        old: _Old,
        members: TickMembers,
    ) -> None:
        self._shape = shape
        self._keys = members.keys
        self._old = old
        self._members = members
        rows = old.columns(len(self._keys), len(self._keys) + 1)[0]
        assert isinstance(rows, Numbers), "a number of rows is a number"
        self._rows: Ints = np.array(rows.values)
        self._followers = self._follow_slots()
        self._after = _Shown(shape, [old.batch], old.places.copy())

    def _follow_slots(self) -> list[Follower]:
        shape = self._shape
        followers: list[Follower] = []
        position = len(self._keys) + 1
        results = position + len(shape.sum_types)
        for number, slot in enumerate(shape.slots):
            columns = self._old.columns(position, position + len(slot.types))
            (shown,) = self._old.columns(results + number, results + number + 1)
            followers.append(slot.follow(self._keys, columns, shown, self._rows))
            position += len(slot.types)
        return followers

    def follow(self) -> tuple[Batch, list[ErrorEntry]]:
        """Go through the tick's timestamps in order; gives what changes in what is shown."""
        given = self._members.given
        times = _different(given.times)
        for ts in times:
            at = None if len(times) == 1 else given.times == ts
            self._change(at)
            groups = self._members.groups if at is None else self._members.groups[at]
            touched = present(groups, len(self._rows))
            self._after.replace(touched, self._state(touched), ts)
        return self._after.changes()

    def _change(self, at: Mask | None) -> None:
        given, groups, diffs = self._members.given, self._members.groups, self._members.given.diffs
        columns: Sequence[Column] = given.arguments
        if at is not None:
            groups, diffs = groups[at], diffs[at]
            columns = [column.take(at) for column in columns]
        np.add.at(self._rows, groups, diffs)
        self._members.take_in(at)
        changes = Changes(groups, columns, diffs)
        touched = present(groups, len(self._rows))
        for follower in self._followers:
            follower.change(changes, self._members, touched)

    def _state(self, groups: Ints) -> Batch:
        """The rows of state of these groups as they are now."""
        failures = Failures()
        results = [follower.results(groups, failures) for follower in self._followers]
        sums = [column for follower in self._followers for column in follower.columns(groups)]
        errors: Column = from_datums(TEXT, [None] * len(groups))
        if failures.errors:
            found = failures.errors
            errors = from_datums(
                TEXT,
                [encode_error(least_error(found[g])) if g in found else None
                 for g in groups.tolist()],
            )  # fmt: skip
        keys = [key.take(groups) for key in self._keys]
        columns = (*keys, Numbers(self._rows[groups]), *sums, *results, errors)
        ones = np.ones(len(groups), np.int64)
        return Batch(self._shape.state_types, columns, ones, ones)

    def state_changes(self) -> list[Batch]:
        """What changes in the arrangement of groups."""
        after = self._after.state()
        kept = after.take(self._shape.is_kept(after))
        old = self._old.batch
        return [old.with_diffs(-old.diffs), kept]

    def with_values(self) -> Batch:
        """The rows of state of all groups, whose rows and sums are known and whose values come."""
        self._members.take_in(None)
        given = self._members.given
        changes = Changes(self._members.groups, given.arguments, given.diffs)
        everything = np.arange(len(self._rows))
        for slot, follower in zip(self._shape.slots, self._followers, strict=True):
            if not isinstance(slot, SumSlot | CountSlot):
                follower.change(changes, self._members, everything)
        return self._state(everything)


def _different(times: Ints) -> list[int]:
    """In order; mostly there is one."""
    first = int(times[0])
    if (times == first).all():
        return [first]
    several: list[int] = np.unique(times).tolist()
    return several


class _Shown:
    """What groups show: rows of state, of which each group has one, or none."""

    def __init__(self, shape: ReduceShape, pool: list[Batch], places: Ints) -> None:
        self._shape = shape
        self._pool = pool
        self._places = places
        self._length = sum(map(len, pool))
        # (places in the pool, timestamp, diff)
        self._changes: list[tuple[Ints, int, int]] = []

    def replace(self, groups: Ints, state: Batch, ts: int) -> None:
        """These groups have these rows of state from this timestamp on."""
        before = self._places[groups]
        self._changes.append((before[before >= 0], ts, -1))
        places = np.arange(self._length, self._length + len(state))
        self._changes.append((places, ts, 1))
        self._places[groups] = places
        self._pool.append(state)
        self._length += len(state)

    def state(self) -> Batch:
        """The rows of all groups at the end."""
        return self._whole().take(self._places[self._places >= 0])

    def _whole(self) -> Batch:
        return concat_batches(self._shape.state_types, self._pool)

    def changes(self) -> tuple[Batch, list[ErrorEntry]]:
        """What came and went of what is shown: rows, and errors."""
        whole = self._whole()
        places = np.concatenate([places for places, _, _ in self._changes])
        sizes = [len(places) for places, _, _ in self._changes]
        times = np.array([ts for _, ts, _ in self._changes], np.int64).repeat(sizes)
        diffs = np.array([diff for _, _, diff in self._changes], np.int64).repeat(sizes)
        moved = Batch(whole.types, whole.take(places).columns, times, diffs)
        shape = self._shape
        moved = moved.take(shape.rows_of(moved) > 0)
        failing = ~moved.columns[-1].null_mask
        errors: list[ErrorEntry] = []
        if failing.any():
            failed = moved.take(failing)
            texts = [str(text) for text in to_datums(TEXT, failed.columns[-1])]
            errors = list(zip(texts, failed.times.tolist(), failed.diffs.tolist(), strict=True))
            moved = moved.take(~failing)
        return add_up(moved.pick(shape.shown_columns)), errors
