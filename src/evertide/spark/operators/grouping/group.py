"""What a GROUP BY keeps of one group, and what it shows of it."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from evertide.dataflow.delta_plan import ReduceNode
from evertide.expr.aggregate import evaluate_aggregate, finish_count, least_error
from evertide.expr.compile import Evaluate, compile_scalar
from evertide.expr.functions.row import Accumulator
from evertide.expr.relation import AggregateCall, Types
from evertide.expr.row_key import RowKey, identity_function, is_ambiguous, least
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_codec import scalar_key
from evertide.spark.accumulate import Additive, State, add_states, additive, is_additive
from evertide.spark.operators.grouping.members import DistinctSum, Members, MemberShape
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError, encode_error

# How often each look of a group's key is there.
Looks: TypeAlias = Mapping[Hashable, tuple[Row, int]]
Slot: TypeAlias = "Callable[[Group, Members], Datum]"

_EXTREMES: Final = ("min", "max")


class Group(NamedTuple):
    """Net rows, a state per additive aggregate; the key as shown and, where equal keys can look
    different, all its looks. A value: changes make a new one.
    """

    key: Row
    net_rows: int
    states: tuple[State, ...]
    looks: Looks | None


class Output(NamedTuple):
    """A group's row, or the error it is in instead."""

    row: Row
    error: str | None


@dataclass(frozen=True, slots=True)
class GroupShape:
    """A ReduceNode taken apart once.

    A row of the input gives a key, arguments for the accumulators, and, if some aggregate must look
    at values, a member: the key's columns and those values.
    """

    key_types: Types
    keys: tuple[Evaluate, ...]
    arguments: tuple[Evaluate, ...]
    adders: tuple[Additive, ...]
    members: MemberShape
    member_arguments: tuple[Evaluate, ...]
    slots: tuple[Slot, ...]
    # Keys, then arguments as the query names them: the first that fails gives a row's error.
    in_query_order: tuple[Evaluate, ...]
    key_identity: RowKey | None
    ambiguous: bool

    @property
    def has_members(self) -> bool:
        """Whether values are kept."""
        return bool(self.member_arguments)

    def new_group(self, key: Row) -> Group:
        """A group without rows."""
        looks: Looks | None = {} if self.ambiguous else None
        return Group(key, 0, tuple([adder.zero for adder in self.adders]), looks)

    def is_empty(self, group: Group) -> bool:
        """Whether nothing needs to be remembered of it."""
        return not group.net_rows and all(
            state == adder.zero for state, adder in zip(group.states, self.adders, strict=True)
        )

    def changed_looks(self, looks: Looks, key: Row, diff: int) -> Looks:
        """One look more or less."""
        identity = key if self.key_identity is None else self.key_identity(key)
        count = looks[identity][1] + diff if identity in looks else diff
        return {**looks, identity: (key, count)}

    def with_part(self, group: Group, key: Row, rows: int, states: tuple[State, ...]) -> Group:
        """The group together with another part of it, whose key may look different."""
        looks = None if group.looks is None else self.changed_looks(group.looks, key, rows)
        shown = group.key if looks is None else self.shown_key(looks, key)
        added = [add_states(a, b) for a, b in zip(group.states, states, strict=True)]
        return Group(shown, group.net_rows + rows, tuple(added), looks)

    def shown_key(self, looks: Looks, key: Row) -> Row:
        """The least of the looks that are there."""
        there = [row for row, count in looks.values() if count > 0]
        return least(self.key_types, there) if there else key

    def output(self, group: Group, members: Members) -> Output | None:
        """What the group shows; None if it has no rows."""
        if group.net_rows <= 0:
            return None
        try:
            return Output(group.key + tuple([slot(group, members) for slot in self.slots]), None)
        except SqlError:
            return Output((), self._least_error(group, members))

    def _least_error(self, group: Group, members: Members) -> str:
        failures: list[SqlError] = []
        for slot in self.slots:
            try:
                slot(group, members)
            except SqlError as error:
                failures.append(error)
        return encode_error(least_error(failures))


def first_error(in_query_order: Iterable[Evaluate], row: Row) -> str:
    """The error of the first key or argument that fails, in the order the query names them."""
    for evaluate in in_query_order:
        try:
            evaluate(row)
        except SqlError as error:
            return encode_error(error)
    raise AssertionError("one of them failed a moment ago")


def group_shape(node: ReduceNode) -> GroupShape:
    """Where each aggregate finds what it needs. Equal arguments are evaluated and kept once."""
    key_types = tuple(key.type for key in node.keys)
    summed = [call for call in node.aggregates if call.argument is not None and is_additive(call)]
    seen: dict[bytes, Scalar] = {}
    for call in node.aggregates:
        if call.argument is not None and not is_additive(call):
            seen.setdefault(scalar_key(call.argument), call.argument)
    columns = {key: len(key_types) + number for number, key in enumerate(seen)}
    slots: list[Slot] = []
    for call in node.aggregates:
        if call.argument is None:
            slots.append(_count_slot(call))
        elif is_additive(call):
            position = next(i for i, other in enumerate(summed) if other is call)
            slots.append(_additive_slot(position, additive(call)))
        else:
            slots.append(_member_slot(call, columns[scalar_key(call.argument)]))
    keys = tuple(compile_scalar(key) for key in node.keys)
    every = [call.argument for call in node.aggregates if call.argument is not None]
    return GroupShape(
        key_types,
        keys,
        tuple(compile_scalar(call.argument) for call in summed if call.argument is not None),
        tuple(additive(call) for call in summed),
        MemberShape.of(key_types + tuple(scalar.type for scalar in seen.values())),
        tuple(compile_scalar(scalar) for scalar in seen.values()),
        tuple(slots),
        keys + tuple(map(compile_scalar, every)),
        identity_function(key_types),
        any(map(is_ambiguous, key_types)),
    )


def _count_slot(call: AggregateCall) -> Slot:
    function = call.function
    return lambda group, _members: finish_count(function, group.net_rows)


def _additive_slot(position: int, adder: Additive) -> Slot:
    finish = adder.finish
    return lambda group, _members: finish(group.states[position])


def _member_slot(call: AggregateCall, column: int) -> Slot:
    """min and max need the first or last value, sums of different values a sum; others all."""
    function = call.function
    if function.name in _EXTREMES and function.finish_rows is not None:
        finish, last = function.finish_rows, function.name == "max"
        distinct = call.distinct
        return lambda _group, members: finish(members.extreme(column, last=last, distinct=distinct))
    if function.accumulator is not Accumulator.ROWS:
        adder = additive(replace(call, distinct=False))
        distinct_sum = DistinctSum(column, adder)
        return lambda _group, members: adder.finish(members.distinct_state(distinct_sum))
    return lambda group, members: evaluate_aggregate(call, group.net_rows, members.values(column))
