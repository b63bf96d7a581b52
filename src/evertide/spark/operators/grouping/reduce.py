"""GROUP BY and DISTINCT: per (group, timestamp), what the group showed and what it shows now."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from evertide.dataflow.delta_plan import ReduceNode
from evertide.expr.columnar.batch import Entry
from evertide.expr.row_key import identity_function
from evertide.persist.coding.keys import row_key_encoder
from evertide.spark.accumulate import State
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.operators.delta import Delta, ErrorEntry, Room, Tick
from evertide.spark.operators.grouping.group import Group, Output, first_error, group_shape
from evertide.spark.operators.grouping.group_cache import GroupCache
from evertide.spark.operators.grouping.members import Members
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back

# (timestamp, diff, key, arguments of accumulators, member)
Change: TypeAlias = tuple[int, int, Row, Sequence[Datum], Row]


class _Changed(NamedTuple):
    """A group after the tick, and what made it so."""

    group: Group
    members: Members
    changes: list[Change]


class ReduceOperator:
    """Groups by encoded key, in memory; the values that some aggregates look at, arranged."""

    def __init__(self, node: ReduceNode, room: Room) -> None:
        self.shape = group_shape(node)
        self.groups: dict[bytes, Group] = {}
        self.members: Arrangement | None = None
        if self.shape.has_members:
            width = tuple(range(len(self.shape.key_types)))
            self.members = room.arrangement("members", self.shape.members.types, width, MIN_TS)
        self._input = node.input
        self._nothing = Members(self.shape.members)
        self._output_identity = identity_function(node.types)
        self._cache: GroupCache[Members] = GroupCache()
        self._pending: dict[bytes, _Changed] = {}

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        return () if self.members is None else (self.members,)

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self._input]
        if not len(delta):
            return delta
        changes, failed = self._changes(delta.rows)
        members = self._old_members(list(changes))
        rows: list[Entry] = []
        errors: list[ErrorEntry] = [*delta.errors, *failed]
        for key, changed in changes.items():
            self._change_group(key, changed, members.get(key, self._nothing), rows, errors)
        return Delta(rows, errors)

    def _changes(
        self, entries: Sequence[Entry]
    ) -> tuple[dict[bytes, list[Change]], list[ErrorEntry]]:
        """Rows by group. A row whose key or argument fails is an error instead of a member."""
        shape = self.shape
        keys, arguments, member_arguments = shape.keys, shape.arguments, shape.member_arguments
        encode = row_key_encoder(shape.key_types)
        changes: dict[bytes, list[Change]] = {}
        failed: list[ErrorEntry] = []
        for row, ts, diff in entries:
            try:
                key = tuple([evaluate(row) for evaluate in keys])
                values = [evaluate(row) for evaluate in arguments]
                seen = tuple([evaluate(row) for evaluate in member_arguments])
            except SqlError:
                failed.append((first_error(self.shape.in_query_order, row), ts, diff))
                continue
            change = (ts, diff, key, values, key + seen)
            encoded = encode(key)
            if encoded in changes:
                changes[encoded].append(change)
            else:
                changes[encoded] = [change]
        return changes, failed

    def _old_members(self, keys: Sequence[bytes]) -> dict[bytes, Members]:
        """The members of these groups before the tick, to be changed along with it."""
        if self.members is None:
            return {}
        return self._cache.take_or_make(keys, self.members, partial(Members, self.shape.members))

    def _change_group(
        self,
        key: bytes,
        changes: list[Change],
        members: Members,
        rows: list[Entry],
        errors: list[ErrorEntry],
    ) -> None:
        """Go through the tick's timestamps in order; each one's change of output is emitted."""
        shape = self.shape
        group = self.groups.get(key)
        if group is None:
            group = shape.new_group(changes[0][2])
        before = shape.output(group, members)
        if changes[0][0] != changes[-1][0] or len(changes) > 2:
            changes.sort(key=itemgetter(0))
        for ts, batch in groupby(changes, key=itemgetter(0)):
            group = self._changed(group, members, list(batch))
            after = shape.output(group, members)
            if not self._same(before, after):
                _emit(before, ts, -1, rows, errors)
                _emit(after, ts, 1, rows, errors)
            before = after
        self._pending[key] = _Changed(group, members, changes)

    def _changed(self, group: Group, members: Members, changes: list[Change]) -> Group:
        """The group after these changes; `members` is changed in place, it belongs to this tick."""
        shape = self.shape
        count, states, looks = group.net_rows, list(group.states), group.looks
        for _, diff, key, values, member in changes:
            count += diff
            for position, value in enumerate(values):
                if value is not None:
                    states[position] = shape.adders[position].add(states[position], value, diff)
            if looks is not None:
                looks = shape.changed_looks(looks, key, diff)
            if shape.has_members:
                members.change(member, diff)
        if looks is not None:
            looks = {name: look for name, look in looks.items() if look[1]}
            return Group(shape.shown_key(looks, group.key), count, tuple(states), looks)
        return Group(group.key, count, tuple(states), None)

    def _same(self, before: Output | None, after: Output | None) -> bool:
        if before is None or after is None or self._output_identity is None:
            return before == after
        if before.error is not None or after.error is not None:
            return before.error == after.error
        return self._output_identity(before.row) == self._output_identity(after.row)

    def load_groups(self, groups: Iterable[tuple[Row, int, tuple[State, ...]]]) -> None:
        """Groups computed elsewhere: key, net rows, states. A group may come once per look."""
        encode = row_key_encoder(self.shape.key_types)
        for key, net_rows, states in groups:
            encoded = encode(key)
            known = self.groups.get(encoded) or self.shape.new_group(key)
            self.groups[encoded] = self.shape.with_part(known, key, net_rows, states)

    def commit(self, upper: Timestamp) -> None:
        for key, (group, _, _) in self._pending.items():
            if self.shape.is_empty(group):
                self.groups.pop(key, None)
            else:
                self.groups[key] = group
        if self.members is not None:
            self.members.insert_keyed(
                {
                    key: [(member, ts, diff) for ts, diff, _, _, member in changed.changes]
                    for key, changed in self._pending.items()
                }
            )
            self.members.advance_since(step_back(upper))
            for key, changed in self._pending.items():
                self._cache.put(key, changed.members)
        self.abort()

    def abort(self) -> None:
        """Members that were changed are no longer in the cache: they were taken out of it."""
        self._pending = {}


def _emit(
    output: Output | None, ts: int, diff: int, rows: list[Entry], errors: list[ErrorEntry]
) -> None:
    if output is None:
        return
    if output.error is None:
        rows.append((output.row, ts, diff))
    else:
        errors.append((output.error, ts, diff))
