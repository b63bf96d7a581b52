"""A GROUP BY taken apart once: its keys, its aggregates' arguments, and what is kept of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from evertide.dataflow.delta_plan import ReduceNode
from evertide.expr.columnar.batch import Batch, Entry, from_rows
from evertide.expr.columnar.column import (
    Column,
    Ints,
    Mask,
    Numbers,
    all_null,
    to_datums,
)
from evertide.expr.columnar.scalars import ByRows, ColumnFunction, compile_columns
from evertide.expr.compile import Evaluate, compile_scalar
from evertide.expr.functions.row import Accumulator
from evertide.expr.relation import AggregateCall, Types
from evertide.expr.row_key import is_ambiguous, is_naturally_ordered
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_codec import scalar_key
from evertide.persist.coding.encoding import is_storable
from evertide.persist.coding.keys import KeyEncoder, key_encoder
from evertide.spark.accumulate import Additive, State, additive, is_additive
from evertide.spark.operators.delta import Delta, ErrorEntry, Room
from evertide.spark.operators.grouping.group import first_error
from evertide.spark.operators.grouping.group_rows import (
    RowCount,
    RowExtreme,
    RowSlot,
    RowValues,
    distinct_slot,
    sum_slot,
)
from evertide.spark.operators.grouping.group_values import (
    DistinctValues,
    FollowedByValues,
    FollowedCount,
    FollowedExtreme,
    FollowedSum,
    Follower,
)
from evertide.spark.operators.grouping.sums import Sum, sum_of
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import MIN_TS

_EXTREMES: Final = ("min", "max")


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """Rows of a tick as their groups see them: keys, and the arguments of all aggregates."""

    keys: Sequence[Column]
    arguments: Sequence[Column]
    times: Ints
    diffs: Ints


class Slot(Protocol):
    """How one aggregate follows its groups."""

    @property
    def types(self) -> Types:
        """Of what it keeps beside what it shows."""
        ...

    @property
    def needs_members(self) -> bool:
        """Whether it looks at its groups' values."""
        ...

    @property
    def column(self) -> int | None:
        """Which argument it has."""
        ...

    def follow(
        self, keys: Sequence[Column], columns: Sequence[Column], shown: Column, rows: Ints
    ) -> Follower:
        """In the groups of a tick: their keys, what is kept, what they show, how many rows."""
        ...

    def row_slot(self, kept: Sequence[Datum], shown: Datum) -> RowSlot:
        """In one group: what is kept, what it shows."""
        ...


@dataclass(frozen=True, slots=True)
class CountSlot:
    """count(*)."""

    call: AggregateCall
    column: None = None
    types: Types = ()
    needs_members: bool = False

    def follow(
        self, _keys: Sequence[Column], _columns: Sequence[Column], _shown: Column, rows: Ints
    ) -> Follower:
        return FollowedCount(self.call, rows)

    def row_slot(self, _kept: Sequence[Datum], _shown: Datum) -> RowSlot:
        return RowCount(self.call.function.finish)


@dataclass(frozen=True, slots=True)
class SumSlot:
    """A sum, or a count of values."""

    sum: Sum
    column: int
    accumulator: Accumulator
    adder: Additive
    needs_members: bool = False

    @property
    def types(self) -> Types:
        return self.sum.types

    def follow(
        self, _keys: Sequence[Column], columns: Sequence[Column], _shown: Column, _rows: Ints
    ) -> Follower:
        return FollowedSum(self.sum.run(columns), self.column)

    def row_slot(self, kept: Sequence[Datum], _shown: Datum) -> RowSlot:
        return sum_slot(self.accumulator, self.adder, kept)


@dataclass(frozen=True, slots=True)
class DistinctSlot:
    """A sum or count of DISTINCT values; `number` counts those of the node."""

    values: DistinctValues
    number: int
    column: int
    accumulator: Accumulator
    adder: Additive
    needs_members: bool = False

    @property
    def types(self) -> Types:
        return self.values.sum.types

    def follow(
        self, keys: Sequence[Column], columns: Sequence[Column], _shown: Column, _rows: Ints
    ) -> Follower:
        return self.values.follow(keys, columns)

    def row_slot(self, kept: Sequence[Datum], _shown: Datum) -> RowSlot:
        return distinct_slot(self.number, sum_slot(self.accumulator, self.adder, kept))


@dataclass(frozen=True, slots=True)
class ExtremeSlot:
    """min or max."""

    call: AggregateCall
    column: int
    never_negative: bool
    last: bool
    # None: Python compares the values as SQL does.
    encode: KeyEncoder | None
    types: Types = ()
    needs_members: bool = True

    def follow(
        self, _keys: Sequence[Column], _columns: Sequence[Column], shown: Column, _rows: Ints
    ) -> Follower:
        return FollowedExtreme(
            self.call.type, shown, self.column, last=self.last, never_negative=self.never_negative
        )

    def row_slot(self, _kept: Sequence[Datum], shown: Datum) -> RowSlot:
        return RowExtreme(self.column, shown, self.last, self.never_negative, self.encode)


@dataclass(frozen=True, slots=True)
class ValuesSlot:
    """Any other aggregate."""

    call: AggregateCall
    column: int
    types: Types = ()
    needs_members: bool = True

    def follow(
        self, _keys: Sequence[Column], _columns: Sequence[Column], _shown: Column, rows: Ints
    ) -> Follower:
        return FollowedByValues(self.call, self.column, rows)

    def row_slot(self, _kept: Sequence[Datum], _shown: Datum) -> RowSlot:
        return RowValues(self.call, self.column)


@dataclass(frozen=True, slots=True, eq=False)
class ReduceShape:
    """`members` are the arguments, by number, that some aggregate looks at as values."""

    keys: tuple[Scalar, ...]
    arguments: tuple[Scalar, ...]
    # Keys, then arguments as the query names them: the first that fails gives a row's error.
    in_query_order: tuple[Evaluate, ...]
    # Keys, then different arguments.
    row_functions: tuple[Evaluate, ...]
    compiled: tuple[ColumnFunction, ...] | None
    slots: tuple[Slot, ...]
    members: tuple[int, ...]
    input_types: Types
    output_types: Types

    @property
    def key_types(self) -> Types:
        return tuple(key.type for key in self.keys)

    @property
    def keeps_members(self) -> bool:
        """Whether groups' values are kept, by group."""
        return any(slot.needs_members for slot in self.slots)

    @property
    def member_types(self) -> Types:
        """Keys, and the values that are looked at."""
        return self.key_types + tuple(self.arguments[i].type for i in self.members)

    @property
    def distinct(self) -> list[DistinctValues]:
        """What counts DISTINCT values."""
        return [slot.values for slot in self.slots if isinstance(slot, DistinctSlot)]

    @property
    def slot_columns(self) -> list[int | None]:
        """Which argument each aggregate has."""
        return [slot.column for slot in self.slots]

    def new_row(self, key: Row) -> Row:
        """The state of a group that has no rows."""
        nothing = (None,) * (len(self.sum_types) + len(self.slots) + 1)
        return (*key, 0, *nothing)

    @property
    def sum_types(self) -> Types:
        """Of all that slots keep."""
        return tuple(sql_type for slot in self.slots for sql_type in slot.types)

    @property
    def state_types(self) -> Types:
        """A group's row: keys, rows, sums, results, error."""
        results = self.output_types[len(self.keys) :]
        return (*self.key_types, INT8, *self.sum_types, *results, TEXT)

    @property
    def shown_columns(self) -> list[int]:
        """Of a group's row what its output shows."""
        width = len(self.keys)
        first = width + 1 + len(self.sum_types)
        return [*range(width), *range(first, first + len(self.slots))]

    def rows_of(self, state: Batch) -> Ints:
        """How many rows each group has."""
        rows = state.columns[len(self.keys)]
        assert isinstance(rows, Numbers), "a number of rows is a number"
        counted: Ints = rows.values
        return counted

    def is_kept(self, state: Batch) -> Mask:
        """Whether anything needs to be remembered of a group."""
        kept: Mask = self.rows_of(state) != 0
        if kept.all():
            return kept
        first = len(self.keys) + 1
        for sql_type, column in zip(self.sum_types, state.columns[first:], strict=False):
            if isinstance(column, Numbers):
                kept = kept | (column.values != 0)
            else:
                there = [d is not None and d not in (0, b"\x00") for d in
                         to_datums(sql_type, column)]  # fmt: skip
                kept = kept | np.array(there, np.bool_)
        return kept

    def members_of(self, given: Evaluated) -> Batch:
        """The values that are kept, by group."""
        columns = (*given.keys, *(given.arguments[i] for i in self.members))
        return Batch(self.member_types, columns, given.times, given.diffs)

    def evaluated_members(self, members: Batch) -> Evaluated:
        """The inverse; arguments that nobody looks at as values are NULL."""
        width = len(self.keys)
        arguments = [
            members.columns[width + self.members.index(i)]
            if i in self.members
            else all_null(scalar.type, len(members))
            for i, scalar in enumerate(self.arguments)
        ]
        return Evaluated(members.columns[:width], arguments, members.times, members.diffs)

    def loaded_sums(self, states: Sequence[tuple[State, ...]]) -> list[Column]:
        """Sums computed elsewhere, a tuple for each group; those over DISTINCT start at zero."""
        columns: list[Column] = []
        position = 0
        for slot in self.slots:
            if isinstance(slot, SumSlot):
                columns += slot.sum.columns_of([state[position] for state in states])
                position += 1
            else:
                columns += [all_null(sql_type, len(states)) for sql_type in slot.types]
        return columns

    def evaluate(self, delta: Delta) -> tuple[Evaluated, list[ErrorEntry]]:
        """Keys and arguments of rows. A row of which one fails is an error instead of a member."""
        if self.compiled is not None:
            try:
                return self._by_columns(delta.batch(self.input_types)), []
            except ByRows:
                pass  # some value needs a closer look
        return self._by_rows(delta.rows)

    def _by_columns(self, batch: Batch) -> Evaluated:
        assert self.compiled is not None, "there is a kernel for every scalar"
        found = [compute(batch.columns, len(batch)) for compute in self.compiled]
        width = len(self.keys)
        return Evaluated(found[:width], found[width:], batch.times, batch.diffs)

    def _by_rows(self, entries: Sequence[Entry]) -> tuple[Evaluated, list[ErrorEntry]]:
        scalars = (*self.keys, *self.arguments)
        functions = self.row_functions
        rows: list[Row] = []
        times: list[int] = []
        diffs: list[int] = []
        failed: list[ErrorEntry] = []
        for row, ts, diff in entries:
            try:
                rows.append(tuple([function(row) for function in functions]))
            except SqlError:
                failed.append((first_error(self.in_query_order, row), ts, diff))
                continue
            times.append(ts)
            diffs.append(diff)
        types = tuple(scalar.type for scalar in scalars)
        found = from_rows(types, rows)
        width = len(self.keys)
        given = (np.array(times, np.int64), np.array(diffs, np.int64))
        return Evaluated(found[:width], found[width:], *given), failed


def reduce_shape(
    node: ReduceNode, input_types: Types, room: Room, *, never_negative: bool
) -> ReduceShape:
    """What a node's operator needs to know. Equal arguments are evaluated and kept once."""
    named = [call.argument for call in node.aggregates if call.argument is not None]
    seen: dict[bytes, Scalar] = {}
    for scalar in named:
        seen.setdefault(scalar_key(scalar), scalar)
    numbers = {key: number for number, key in enumerate(seen)}
    key_types = tuple(key.type for key in node.keys)
    slots: list[Slot] = []
    members: list[int] = []
    for call in node.aggregates:
        if call.argument is None:
            slots.append(CountSlot(call))
            continue
        column = numbers[scalar_key(call.argument)]
        if is_additive(call):
            slots.append(SumSlot(sum_of(call), column, call.function.accumulator, additive(call)))
            continue
        if column not in members:
            members.append(column)
        slots.append(_value_slot(call, column, key_types, room, slots, never_negative))
    arguments = tuple(seen.values())
    compiled = [compile_columns(scalar, input_types) for scalar in (*node.keys, *arguments)]
    every = [function for function in compiled if function is not None]
    return ReduceShape(
        node.keys,
        arguments,
        tuple(map(compile_scalar, (*node.keys, *named))),
        tuple(map(compile_scalar, (*node.keys, *arguments))),
        tuple(every) if len(every) == len(compiled) else None,
        tuple(slots),
        tuple(members),
        input_types,
        node.types,
    )


def _value_slot(
    call: AggregateCall,
    column: int,
    key_types: Types,
    room: Room,
    before: Sequence[Slot],
    never_negative: bool,
) -> Slot:
    """For an aggregate that must know values; what can look different is looked at each time."""
    assert call.argument is not None, "count(*) looks at no values"
    argument = call.argument.type
    if is_ambiguous(argument) or not is_storable(argument):
        return ValuesSlot(call, column)
    if call.function.name in _EXTREMES and call.type == argument:
        encode = None if is_naturally_ordered(argument) else key_encoder(argument)
        last = call.function.name == "max"
        return ExtremeSlot(call, column, never_negative, last, encode)
    if is_additive_distinct(call):
        types = (*key_types, argument)
        number = sum(isinstance(slot, DistinctSlot) for slot in before)
        kept = room.arrangement(f"distinct{number}", types, tuple(range(len(types))), MIN_TS)
        values = DistinctValues(call, key_types, column, kept)
        adder = additive(replace(call, distinct=False))
        return DistinctSlot(values, number, column, call.function.accumulator, adder)
    return ValuesSlot(call, column)


def is_additive_distinct(call: AggregateCall) -> bool:
    """Whether it is a sum over DISTINCT values."""
    return call.distinct and call.function.accumulator is not Accumulator.ROWS
