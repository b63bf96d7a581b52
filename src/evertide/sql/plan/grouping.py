"""GROUP BY and aggregates: from rows to groups.

Expressions of a grouped SELECT are planned over the row before grouping, with aggregates deferred.
Here they are carried over to the grouped row: a part that equals a grouping key becomes that key's
column, an aggregate its column, and a column that is left over is the user's mistake.
"""

from collections.abc import Callable, Mapping, Sequence

from evertide.expr.functions.row import Accumulator
from evertide.expr.relation import AggregateCall, Reduce
from evertide.expr.relation_walk import rewrite_arguments
from evertide.expr.scalar import ColumnRef, Literal, OuterColumn, Scalar
from evertide.sql.plan.builder import RelationBuilder
from evertide.sql.plan.deferred import FIRST_PLACE, Deferred, SubqueryUse, fill_places
from evertide.sql.plan.rewrite import replace_parts
from evertide.sql.plan.single_row import with_default_row
from evertide.sql.plan.standing import Standing
from evertide.sql.plan.subquery import attach, attach_all, with_operand, with_row_around
from evertide.sql.resolve import position_of
from evertide.vocab.errors import GroupingError


def group(
    builder: RelationBuilder,
    keys: Sequence[Scalar] | None,
    early: Deferred,
    late: Deferred,
) -> Standing:
    """The grouped relation, and how expressions planned before are carried over to it.

    `keys` None: no GROUP BY, so there is one group even of no rows. `early` holds what keys and
    aggregate arguments need from the row before grouping, `late` what all else needs.
    """
    fill = fill_places(attach_all(early, builder))
    grouped_by = [fill(key) for key in keys or ()]
    calls = [value for value in late.values if isinstance(value, AggregateCall)]
    grouped = _reduce(builder, grouped_by, [_filled(call, fill) for call in calls], keys is None)
    settled: dict[int, Scalar] = {}
    carry = _carrier(grouped_by, late, settled)

    def around(column: OuterColumn) -> Scalar:
        return grouped.lifted(_grouped_column(column, grouped_by, late))

    def attach_use(use: SubqueryUse) -> Scalar:
        return attach(with_row_around(with_operand(use, carry), around), grouped)

    for place, value in enumerate(late.values):
        if isinstance(value, AggregateCall):
            position = len(grouped_by) + calls.index(value)
            settled[place] = ColumnRef(position, value.type)
    standing = Standing(grouped, carry, attach_use, settled)
    standing.attach_first(late)
    return standing


def _filled(call: AggregateCall, fill: Callable[[Scalar], Scalar]) -> AggregateCall:
    return rewrite_arguments(call, fill)


def _grouped_column(column: OuterColumn, keys: Sequence[Scalar], late: Deferred) -> Scalar:
    """Where a column that a subquery looks at is among the keys."""
    for position, key in enumerate(keys):
        if isinstance(key, ColumnRef) and key.index == column.index:
            return ColumnRef(position, key.type)
    reference = late.reference_from_subquery(column.index)
    name = "?" if reference is None else reference.name
    raise GroupingError(
        f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function',
        detail="A subquery names it.",
        position=None if reference is None else position_of(reference.at),
    )


def _reduce(
    builder: RelationBuilder,
    keys: Sequence[Scalar],
    calls: Sequence[AggregateCall],
    default_row: bool,
) -> RelationBuilder:
    relation = Reduce(builder.relation, tuple(keys), tuple(calls))
    nullable = [builder.may_be_null(key) for key in keys]
    nullable += [call.function.accumulator is not Accumulator.COUNT for call in calls]
    if not default_row:
        return RelationBuilder(relation, nullable)
    return RelationBuilder(with_default_row(relation, [_of_nothing(c) for c in calls]), nullable)


def _of_nothing(call: AggregateCall) -> Literal:
    """What an aggregate gives over no rows."""
    if call.function.finish_rows is not None:
        return Literal(call.function.finish_rows(()), call.type)
    counts = call.function.accumulator is Accumulator.COUNT
    return Literal(0 if counts else None, call.type)


def _carrier(
    keys: Sequence[Scalar], late: Deferred, settled: Mapping[int, Scalar]
) -> Callable[[Scalar], Scalar]:
    positions = {key: ColumnRef(index, key.type) for index, key in reversed([*enumerate(keys)])}

    def carried(part: Scalar) -> Scalar | None:
        found = positions.get(part)
        if found is not None:
            return found
        if not isinstance(part, ColumnRef):
            return None
        if part.index >= FIRST_PLACE:
            return settled[part.index - FIRST_PLACE]
        raise _ungrouped(part, late)

    return lambda scalar: replace_parts(scalar, carried)


def _ungrouped(column: ColumnRef, late: Deferred) -> GroupingError:
    reference = late.reference_of(column)
    name = "?" if reference is None else reference.name
    return GroupingError(
        f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function',
        position=None if reference is None else position_of(reference.at),
    )
