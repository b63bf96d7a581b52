"""GROUP BY, exactly: Spark adds up integers, Python does what is not an integer.

Two groupings. The first adds up multiplicities and sums per group *and* whatever else tells members
apart that must not be mixed: buckets of exact sums, values that an aggregate must see, looks of
keys that are equal in SQL. The second collects those per group. Where nothing tells members apart
the first one is enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evertide.dataflow.delta_plan import ReduceNode
from evertide.expr.functions.row import Accumulator
from evertide.expr.relation import AggregateCall
from evertide.expr.row_key import is_ambiguous
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_codec import scalar_key
from evertide.spark.render.keys import equality, identities, identity, regained
from evertide.spark.render.linear import render_scalars
from evertide.spark.render.text import (
    Rendered,
    TextBuilder,
    rows_only,
    select_list,
    with_errors,
)
from evertide.spark.udf.reduce import FinishFunction, SplitFunction, needs_values
from evertide.vocab.sql_type import RANGE_BASES, Kind

_BUCKETED = frozenset({Accumulator.SUM_FLOAT, Accumulator.SUM_NUMERIC})
_SUMS = _BUCKETED | {Accumulator.SUM_INT}
# Kinds that Spark does not order as SQL does, so that it may not pick their least value.
_UNORDERED = frozenset({Kind.JSONB, Kind.ARRAY, Kind.LIST, Kind.MAP, *RANGE_BASES})


@dataclass(frozen=True, slots=True)
class _Member:
    """What the members of a group look like: key columns, then each argument once."""

    node: ReduceNode
    relation: Rendered
    arguments: tuple[Scalar, ...]

    def column(self, call: AggregateCall) -> str:
        """The column that holds the aggregate's argument."""
        assert call.argument is not None, "count(*) has no argument"
        position = [*map(scalar_key, self.arguments)].index(scalar_key(call.argument))
        return f"c{self.width + position}"

    @property
    def width(self) -> int:
        return len(self.node.keys)

    @property
    def ambiguous(self) -> tuple[int, ...]:
        """Keys that may look different while they are equal."""
        return tuple(i for i, key in enumerate(self.node.keys) if is_ambiguous(key.type))

    @property
    def python(self) -> tuple[int, ...]:
        """Aggregates that Python finishes."""
        return tuple(
            i for i, call in enumerate(self.node.aggregates)
            if not _is_plain_count(call) and not self._picks(call)
        )  # fmt: skip

    def native(self, call: AggregateCall) -> bool:
        """Whether Spark finishes this aggregate by itself."""
        return _is_plain_count(call) or self._picks(call)

    def _picks(self, call: AggregateCall) -> bool:
        """min and max of the only column that tells members apart: multiplicities are net then."""
        if call.function.name not in ("min", "max") or not needs_values(call):
            return False
        seen = {self.column(c) for c in self.node.aggregates if needs_values(c)}
        buckets = any(_is_bucketed(c) for c in self.node.aggregates)
        assert call.argument is not None
        sql_type = call.argument.type
        odd = is_ambiguous(sql_type) or sql_type.kind in _UNORDERED or call.type != sql_type
        return len(seen) == 1 and not buckets and not self.ambiguous and not odd


def render_reduce(builder: TextBuilder, source: Rendered, node: ReduceNode) -> Rendered:
    """One row per group that has rows; members that fail and groups that fail are errors."""
    members = render_members(builder, source, node)
    if members.fallible:
        members = builder.share(members)
    return with_errors(builder, render_groups(builder, members, node), [members])


def render_members(builder: TextBuilder, source: Rendered, node: ReduceNode) -> Rendered:
    """Rows as members of groups: their keys, then each argument of an aggregate once."""
    return render_scalars(builder, source, (*node.keys, *_arguments(node)))


def render_groups(builder: TextBuilder, members: Rendered, node: ReduceNode) -> Rendered:
    """The groups' rows, and the errors of groups whose aggregates fail."""
    member = _Member(node, members, _arguments(node))
    return _render_results(builder, member, _render_groups(builder, member))


def render_states(builder: TextBuilder, members: Rendered, node: ReduceNode) -> str:
    """A SELECT of what groups keep: c0.. the keys, n the net rows, a state per additive aggregate.

    A key that has several looks comes once per look. Aggregates that look at values have no state.
    """
    calls = tuple(call for call in node.aggregates if call.argument and not needs_values(call))
    summed = replace(node, aggregates=calls)
    member = _Member(summed, members, _arguments(node))
    keys = members.columns[: member.width]
    types = members.types[: member.width]
    looks = identities(types, keys)
    shown = [regained(sql_type, key) for sql_type, key in zip(types, keys, strict=True)]
    buckets = [f"s{i}.b" for i, call in enumerate(calls) if _is_bucketed(call)]
    partial = [part for i, call in enumerate(calls) for part in _first_state(i, call, member)]
    first = (
        f"SELECT {select_list(shown, _bucket_columns(member), ['sum(d) AS n'], partial)} "
        f"FROM {_split(builder, member)}{_group_by([*looks, *buckets])}"
    )
    collected = [
        part for i, call in enumerate(calls) for part in _collected(i, call, member, bool(buckets))
    ]
    if not buckets:
        return f"SELECT {select_list(keys, ['n'], collected)} FROM ({first}) WHERE n IS NOT NULL"
    columns = select_list(shown, ["sum(n) AS n"], collected)
    return f"SELECT {columns} FROM ({first}){_group_by(looks)} HAVING sum(n) IS NOT NULL"


def member_columns(node: ReduceNode) -> list[int]:
    """Columns of the members that a group must keep: the keys, and what aggregates look at."""
    arguments = [*map(scalar_key, _arguments(node))]
    seen = [c.argument for c in node.aggregates if c.argument is not None and needs_values(c)]
    positions = dict.fromkeys(arguments.index(scalar_key(argument)) for argument in seen)
    width = len(node.keys)
    return [*range(width), *(width + position for position in positions)]


def _arguments(node: ReduceNode) -> tuple[Scalar, ...]:
    """Told apart by their encoding: Python finds literals equal that are not the same."""
    arguments = [call.argument for call in node.aggregates if call.argument is not None]
    return tuple({scalar_key(argument): argument for argument in arguments}.values())


def _is_plain_count(call: AggregateCall) -> bool:
    function = call.function
    return (
        function.accumulator is Accumulator.COUNT and not call.distinct and function.finish is None
    )


def _is_sum(call: AggregateCall) -> bool:
    return not needs_values(call) and call.function.accumulator in _SUMS


def _is_bucketed(call: AggregateCall) -> bool:
    return not needs_values(call) and call.function.accumulator in _BUCKETED


def _render_groups(builder: TextBuilder, member: _Member) -> Rendered:
    """Both groupings: g0.. the keys, n the net rows, l the looks of ambiguous keys, a0.. states."""
    time = ["t"] * member.relation.timed
    keys = [equality(key.type, f"c{i}") for i, key in enumerate(member.node.keys)]
    apart = _apart(member)
    states = [_first_state(i, call, member) for i, call in enumerate(member.node.aggregates)]
    columns = [f"{key} AS g{i}" for i, key in enumerate(keys)]
    carried = [f"any_value({c}) AS {c}" for c in _carried(member)]
    partial = [part for state in states for part in state]
    first = (
        f"SELECT {select_list(time, columns, carried, _bucket_columns(member), ['sum(d) AS n'])}"
        f"{''.join(f', {part}' for part in partial)} FROM {_split(builder, member)}"
        f"{_group_by([*time, *keys, *apart])}"
    )
    names = [f"g{i}" for i in range(member.width)]
    collected = [_collected(i, call, member, bool(apart)) for i, call in
                 enumerate(member.node.aggregates)]  # fmt: skip
    looks = [_looks(member)] if member.ambiguous else []
    states2 = [part for state in collected for part in state]
    if not apart:
        select = f"SELECT {select_list(time, names, ['n'], states2)} FROM ({first}) WHERE n > 0"
    else:
        net = "sum(n) AS n"
        select = (
            f"SELECT {select_list(time, names, [net], looks, states2)} FROM ({first})"
            f"{_group_by([*time, *names])} HAVING sum(n) > 0"
        )
    return builder.add(select, member.relation, fallible=False)


def _group_by(columns: Sequence[str]) -> str:
    """Without columns there is one group, which must not appear if it has no rows: n is NULL."""
    return f" GROUP BY {', '.join(columns)}" if columns else ""


def _apart(member: _Member) -> list[str]:
    """What must not be mixed in the first grouping, beside the keys."""
    parts = [f"s{i}.b" for i, c in enumerate(member.node.aggregates) if _is_bucketed(c)]
    for column in _carried(member):
        sql_type = member.relation.types[int(column[1:])]
        parts += identity(sql_type, column)
    return list(dict.fromkeys(parts))


def _carried(member: _Member) -> list[str]:
    """Columns whose values the second grouping needs as they are.

    If keys are ambiguous these are all columns: which look of a key is shown depends on whether
    whole members are there, not just the key's look.
    """
    if member.ambiguous:
        return member.relation.columns
    return list(dict.fromkeys(member.column(c) for c in member.node.aggregates if needs_values(c)))


def _bucket_columns(member: _Member) -> list[str]:
    return [
        f"s{i}.b AS b{i}" for i, call in enumerate(member.node.aggregates) if _is_bucketed(call)
    ]


def _split(builder: TextBuilder, member: _Member) -> str:
    """The members, with the parts of what is summed by Python's rules beside them."""
    parts = [
        f"{builder.call(SplitFunction(call.function.accumulator), [member.column(call)])} AS s{i}"
        for i, call in enumerate(member.node.aggregates)
        if _is_bucketed(call)
    ]
    source = rows_only(member.relation)
    return f"(SELECT *, {', '.join(parts)} FROM {source})" if parts else source


def _first_state(number: int, call: AggregateCall, member: _Member) -> list[str]:
    """What the first grouping adds up for one aggregate."""
    if call.argument is None or needs_values(call):
        return []
    column = member.column(call)
    count = f"sum(IF({column} IS NULL, 0, d)) AS n{number}"
    if not _is_sum(call):
        return [count]
    if _is_bucketed(call):
        parts = [f"s{number}.x", f"s{number}.y", f"s{number}.z"]
    else:
        wide = f"CAST({column} AS bigint)"
        parts = [f"shiftright({wide}, 32)", f"({wide} & 4294967295L)", "0L"]
    sums = [
        f"sum(CAST({part} AS decimal(38,0)) * d) AS {name}{number}"
        for part, name in zip(parts, "xyz", strict=True)
    ]
    return [count, *sums]


def _collected(number: int, call: AggregateCall, member: _Member, regrouped: bool) -> list[str]:
    """The aggregate's state after both groupings, as columns a{number} and n{number}."""
    if call.argument is None:
        return []
    if needs_values(call):
        return [f"{_collected_values(call, member)} AS a{number}"]
    count = f"sum(n{number}) AS n{number}" if regrouped else f"n{number}"
    if not _is_sum(call):
        return [count]
    bucket = f"b{number}" if _is_bucketed(call) else "CAST(NULL AS int)"
    part = f"named_struct('b', {bucket}, 'x', x{number}, 'y', y{number}, 'z', z{number})"
    parts = f"collect_list({part})" if regrouped else f"array({part})"
    return [f"{parts} AS a{number}", count]


def _collected_values(call: AggregateCall, member: _Member) -> str:
    column = member.column(call)
    if member.native(call):
        return f"{call.function.name}(IF(n > 0, {column}, NULL))"
    value = f"named_struct('f0', {column}, 'n', n)"
    return f"collect_list(IF({column} IS NOT NULL, {value}, NULL))"


def _looks(member: _Member) -> str:
    fields = [f"'f{j}', c{i}" for j, i in enumerate(member.ambiguous)]
    look = f"named_struct({', '.join(fields)}, 'n', n)"
    return f"collect_list(IF(n > 0, {look}, NULL)) AS l"


def _render_results(builder: TextBuilder, member: _Member, grouped: Rendered) -> Rendered:
    node = member.node
    called = grouped.name
    python = member.python
    uses_python = bool(python or member.ambiguous)
    if uses_python:
        function = FinishFunction.of(node, member.ambiguous, python)
        call = builder.call(function, _finish_arguments(member))
        called = f"(SELECT *, {call} AS u FROM {grouped.name})"
    keys = [f"u.k{i}" if i in member.ambiguous else f"g{i}" for i in range(member.width)]
    results = [_result(i, call, member) for i, call in enumerate(node.aggregates)]
    columns = [f"{value} AS c{i}" for i, value in enumerate([*keys, *results])]
    time = ["t"] * grouped.timed
    if not python:
        select = f"SELECT {select_list(columns, time, ['1L AS d'])} FROM {called}"
        return builder.add(select, grouped, types=node.types, computed_once=uses_python)
    masked = [
        f"IF(u.e IS NULL, {value}, NULL) AS c{i}" for i, value in enumerate([*keys, *results])
    ]
    select = f"SELECT {select_list(masked, ['u.e AS e'], time, ['1L AS d'])} FROM {called}"
    return builder.add(select, grouped, types=node.types, fallible=True, computed_once=True)


def _finish_arguments(member: _Member) -> list[str]:
    arguments = ["n", *(["l"] if member.ambiguous else [])]
    for number in member.python:
        call = member.node.aggregates[number]
        if call.argument is None:
            continue
        if needs_values(call) or _is_sum(call):
            arguments.append(f"a{number}")
        if not needs_values(call):
            arguments.append(f"n{number}")
    return arguments


def _result(number: int, call: AggregateCall, member: _Member) -> str:
    if number in member.python:
        return f"u.v{number}"
    if needs_values(call):
        return f"a{number}"
    return "n" if call.argument is None else f"n{number}"
