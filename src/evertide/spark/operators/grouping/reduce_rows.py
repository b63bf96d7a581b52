"""GROUP BY of few changes: group by group, value by value, over the state of reduce_columns.py."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias, cast

from evertide.expr.columnar.batch import Entry
from evertide.expr.row_key import RowKey, identity_function
from evertide.expr.scalar import ColumnRef
from evertide.persist.coding.keys import key_list_encoder
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.counting import count_rows
from evertide.spark.operators.delta import (
    ErrorEntry,
    are_many,
    are_many_for,
    counted_by_identity,
)
from evertide.spark.operators.grouping.group import first_error
from evertide.spark.operators.grouping.group_rows import Counts, number_values
from evertide.spark.operators.grouping.live_group import Change, Layout, LiveGroup
from evertide.spark.operators.grouping.reduce_slots import ReduceShape
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError

# So many groups are at hand at least once they have been looked up, and twice as many at most.
_KNOWN_GROUPS: Final = 8_192

Evaluated: TypeAlias = dict[bytes, tuple[Row, list[Change]]]
# What a group shows: a row or an error; None: it has no rows.
Shown: TypeAlias = tuple[Row, str | None] | None


class Few(NamedTuple):
    """What a tick of few changes gives, and what it changes in each arrangement, by key."""

    rows: list[Entry]
    errors: list[ErrorEntry]
    groups: dict[bytes, list[Entry]]
    members: dict[bytes, list[Entry]]
    distinct: tuple[Counts, ...]


class KnownGroups:
    """Groups at hand: those used lately, and those of before, until there are many newer ones."""

    __slots__ = ("_earlier", "_lately")

    def __init__(self) -> None:
        self._lately: dict[bytes, LiveGroup] = {}
        self._earlier: dict[bytes, LiveGroup] = {}

    def take(self, encoded: bytes) -> LiveGroup | None:
        """The group, which is no longer at hand then."""
        group = self._lately.pop(encoded, None)
        return self._earlier.pop(encoded, None) if group is None else group

    def put(self, groups: Mapping[bytes, LiveGroup]) -> None:
        """Those of which there is something to know."""
        if len(self._lately) + len(groups) > _KNOWN_GROUPS:
            self._earlier, self._lately = self._lately, {}
        self._lately.update((k, g) for k, g in groups.items() if g.kept is not None)


class RowReduce:
    """Looks at arrangements, changes none; keeps groups at hand."""

    def __init__(
        self, shape: ReduceShape, groups: Arrangement, members: Arrangement | None
    ) -> None:
        self._shape = shape
        self._groups = groups
        self._layout = Layout.of(shape, members)
        self._evaluate = _evaluation(shape)
        self._identity = identity_function(shape.output_types)
        self._state_identity = identity_function(shape.state_types)
        self._known = KnownGroups()
        # Groups of the tick that is under way.
        self._touched: Mapping[bytes, LiveGroup] = {}

    def is_quicker(self, changes: int) -> bool:
        """Whether so many changes are better taken row by row than by columns.

        Columns cost by their number, whatever they hold; rows cost more where values are kept.
        """
        if self._layout.kept_members is not None:
            return not are_many(changes)
        return not are_many_for(changes, self._layout.state_columns)

    def reduce(self, entries: Sequence[Entry]) -> Few:
        """Go through the groups that are touched, and for each through the tick's timestamps."""
        changes, errors = self._by_group(entries)
        self._touched = touched = self._live(changes)
        self._look_up_members(changes)
        few = Few([], errors, {}, {}, self._distinct_counts(changes))
        one_time = len({ts for _, ts, _ in entries}) == 1
        for encoded, (_, changed) in changes.items():
            self._reduce_group(encoded, touched[encoded], changed, few, one_time=one_time)
        return few

    def _live(self, changes: Evaluated) -> dict[bytes, LiveGroup]:
        """These groups as they were before the tick; until it ends they are not at hand."""
        take = self._known.take
        newest = self._groups.levels.layer.groups
        live: dict[bytes, LiveGroup] = {}
        unknown: list[bytes] = []
        for encoded in changes:
            group = take(encoded)
            if group is None and (entries := newest.get(encoded)):
                # A row of state goes before the next one comes: what came last is what there is.
                last, _, diff = entries[-1]
                group = LiveGroup(self._layout, changes[encoded][0], last if diff > 0 else None)
            if group is None:
                unknown.append(encoded)
            else:
                live[encoded] = group
        if unknown:
            keys = [changes[encoded][0] for encoded in unknown]
            found = self._groups.probe(unknown, self._layout.parts_of(keys))
            for encoded, key in zip(unknown, keys, strict=True):
                row = _only_row(found.get(encoded, ()), self._state_identity)
                live[encoded] = LiveGroup(self._layout, key, row)
        return live

    def take_in(self) -> None:
        """The arrangements have this tick's changes now."""
        self._known.put(self._touched)
        self._touched = {}

    def abort(self) -> None:
        """Groups that were changed are not at hand."""
        self._touched = {}

    def forget(self) -> None:
        """The arrangements were changed otherwise."""
        self._known = KnownGroups()

    def _by_group(self, entries: Sequence[Entry]) -> tuple[Evaluated, list[ErrorEntry]]:
        """Keys that Python finds equal are, and are encoded once; different ones may be too."""
        evaluate, layout = self._evaluate, self._layout
        pick = layout.keys.pick
        parts: dict[Datum, list[Change]] = {}
        failed: list[ErrorEntry] = []
        for row, ts, diff in entries:
            try:
                seen = evaluate(row)
            except SqlError:
                failed.append((first_error(self._shape.in_query_order, row), ts, diff))
                continue
            part = pick(seen)
            group = parts.get(part)
            if group is None:
                parts[part] = [(ts, diff, seen)]
            else:
                group.append((ts, diff, seen))
        changes: Evaluated = {}
        for encoded, (part, group) in zip(
            layout.keys.encode_all(parts), parts.items(), strict=True
        ):
            known = changes.setdefault(encoded, (layout.key_of(part), group))
            if known[1] is not group:
                known[1].extend(group)
        return changes, failed

    def _look_up_members(self, changes: Evaluated) -> None:
        """The values of all groups whose aggregates will look at them, at once."""
        members = self._layout.kept_members
        if members is None:
            return
        touched = self._touched
        wanted = [e for e, (_, changed) in changes.items() if touched[e].may_look(changed)]
        if wanted:
            parts = self._layout.parts_of([changes[encoded][0] for encoded in wanted])
            found = members.probe(wanted, parts)
            for encoded in wanted:
                touched[encoded].found = found.get(encoded, ())

    def _distinct_counts(self, changes: Evaluated) -> tuple[Counts, ...]:
        """How often each value is there whose number will change; all are looked up at once."""
        counted: list[Counts] = []
        for distinct in self._shape.distinct:
            place = self._layout.width + distinct.column
            encode_all = key_list_encoder(distinct.kept.types[-1])
            groups = [
                (encoded, key, [seen[place] for _, _, seen in changed])
                for encoded, (key, changed) in changes.items()
            ]
            numbers, names, rows = number_values(groups, encode_all)
            counts = Counts(names, rows, count_rows(distinct.kept, names, rows))
            for encoded, of_group in zip(changes, numbers, strict=True):
                self._touched[encoded].counts.append((counts, of_group))
            counted.append(counts)
        return tuple(counted)

    def _reduce_group(
        self, encoded: bytes, group: LiveGroup, changes: list[Change], few: Few, *, one_time: bool
    ) -> None:
        before = group.kept
        row: Row = ()
        if one_time or len(changes) == 1:
            had_rows = group.rows > 0
            row = group.change(changes)
            if not (had_rows and group.rows > 0 and self._is_same(before, row)):
                self._emit(before, row, changes[0][0], few)
        else:
            changes.sort(key=itemgetter(0))
            for ts, batch in groupby(changes, key=itemgetter(0)):
                row = group.change(list(batch))
                self._emit(before, row, ts, few)
                before = row
        if self._layout.kept_members is not None:
            few.members[encoded] = group.changes
        few.groups[encoded] = group.finish(row)

    def _is_same(self, before: Row | None, after: Row) -> bool:
        """Whether the group shows the same: its rows do not show, if it has some."""
        if before is None or self._identity is not None:
            return False
        results = self._layout.results
        return before[results:] == after[results:]

    def _emit(self, before: Row | None, after: Row, ts: int, few: Few) -> None:
        """What the group showed goes, what it shows comes."""
        layout = self._layout
        width = layout.width
        if before is not None and before[-1] is after[-1] is None:
            rows, left = cast(int, before[width]), cast(int, after[width])
            if rows > 0 and left > 0:
                # Mostly one row takes the place of another.
                gone = before[:width] + before[layout.results : -1]
                come = after[:width] + after[layout.results : -1]
                if self._identity is not None or gone != come:
                    few.rows.extend(((gone, ts, -1), (come, ts, 1)))
                return
        shown, showing = self._shown(before), self._shown(after)
        if shown == showing and self._identity is None:
            return
        for output, diff in ((shown, -1), (showing, 1)):
            if output is None:
                continue
            row, error = output
            if error is not None:
                few.errors.append((error, ts, diff))
            else:
                few.rows.append((row, ts, diff))

    def _shown(self, state: Row | None) -> Shown:
        if state is None:
            return None
        width = self._layout.width
        if cast(int, state[width]) <= 0:
            return None
        if state[-1] is not None:
            return (), str(state[-1])
        return state[:width] + state[self._layout.results : -1], None


def _evaluation(shape: ReduceShape) -> Callable[[Row], Row]:
    """Keys and arguments of a row; raises SqlError."""
    scalars = (*shape.keys, *shape.arguments)
    columns = [scalar.index for scalar in scalars if isinstance(scalar, ColumnRef)]
    if len(columns) == len(scalars) > 1:
        return cast("Callable[[Row], Row]", itemgetter(*columns))
    functions = shape.row_functions
    return lambda row: tuple([function(row) for function in functions])


def _only_row(entries: Sequence[Entry], identity: RowKey | None) -> Row | None:
    """A group has one row of state; what came and went has been added up, or is there both ways."""
    if len(entries) == 1:
        return entries[0][0]
    if not entries:
        return None
    left = [row for row, count in counted_by_identity(entries, identity).values() if count]
    assert len(left) <= 1, "a group has one row of state"
    return left[0] if left else None
