"""The relation that a SELECT's output expressions stand on, with what they waited for attached.

Window functions come last: they see the rows that grouping and HAVING leave. What is computed from
them, an operand of IN for example, comes after them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evertide.expr.functions.row import Accumulator, AggregateFunction
from evertide.expr.functions.rows_in_step import in_step
from evertide.expr.functions.window import RESULTS
from evertide.expr.relation import (
    AggregateCall,
    ArgumentOrder,
    FlatMap,
    OrderKey,
    Window,
    WindowCall,
)
from evertide.expr.relation_walk import rewrite_window_call
from evertide.expr.scalar import And, Case, ColumnRef, IsNull, Literal, Scalar
from evertide.sql.plan.builder import RelationBuilder
from evertide.sql.plan.deferred import (
    FIRST_PLACE,
    Deferred,
    DeferredValue,
    QuantifiedUse,
    RowQuantifiedUse,
    RowsUse,
    SubqueryUse,
    WindowUse,
    fill_places,
)
from evertide.sql.plan.known_rows import KnownRows
from evertide.sql.plan.record import made_row
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.plan.subquery import attach, with_operand


@dataclass(frozen=True, slots=True)
class Standing:
    """`carry` brings scalars over the row before to this relation, `attach` joins a subquery to it.

    `settled` has the values, by their numbers among the deferred ones, that are there already.
    """

    builder: RelationBuilder
    carry: Callable[[Scalar], Scalar]
    attach: Callable[[SubqueryUse], Scalar]
    settled: dict[int, Scalar]

    def attach_first(self, late: Deferred) -> None:
        """Attach the subqueries that need no window or table function, in order."""
        waiting: set[int] = set()
        for place, value in enumerate(late.values):
            if isinstance(value, WindowUse | RowsUse) or _needs(value, waiting):
                waiting.add(place)
            elif not isinstance(value, AggregateCall):
                self.settled[place] = self.attach(value)

    def attach_rest(self, late: Deferred, known_rows: KnownRows) -> None:
        """Attach window functions, what is made from them, and last the table functions."""
        self._attach_windows(late)
        for place, value in enumerate(late.values):
            if place not in self.settled and not isinstance(value, RowsUse):
                assert not isinstance(value, AggregateCall | WindowUse), "those are there"
                self.settled[place] = self.attach(value)
        self._attach_rows(late, known_rows)

    def _attach_rows(self, late: Deferred, known_rows: KnownRows) -> None:
        """Table functions go in step: a row for each of the longest's, others' values NULL."""
        uses = {place: use for place, use in enumerate(late.values) if isinstance(use, RowsUse)}
        if not uses:
            return
        builder = self.builder
        function = in_step([use.function for use in uses.values()])
        arguments = tuple(self.carry(one) for use in uses.values() for one in use.arguments)
        first = builder.arity
        known = known_rows.of(function, arguments)
        if known is None:
            builder.relation = FlatMap(builder.relation, function, arguments)
            builder.nullable += [True] * len(function.columns)
        else:
            builder.product(known, [True] * len(known.types))
        for place, use in uses.items():
            columns = [
                ColumnRef(first + i, sql_type)
                for i, (_, sql_type) in enumerate(use.function.columns)
            ]
            one = len(columns) == 1
            self.settled[place] = columns[0] if one else _row_of(columns, use)
            first += len(columns)

    def _attach_windows(self, late: Deferred) -> None:
        """Attach the window functions, one node for those of one window."""
        windows: dict[tuple[Sequence[Scalar], Sequence[ArgumentOrder]], dict[int, WindowCall]] = {}
        for place, value in enumerate(late.values):
            if isinstance(value, WindowUse):
                windows.setdefault((value.partition, value.order), {})[place] = value.call
        for (partition, order), calls in windows.items():
            self._add_window(partition, order, calls)

    def _add_window(
        self,
        partition: Sequence[Scalar],
        order: Sequence[ArgumentOrder],
        calls: Mapping[int, WindowCall],
    ) -> None:
        """Arguments and keys become columns. One that is the same for all rows is no key, but where
        a frame counts from it."""
        builder = self.builder
        carried = [rewrite_window_call(call, self.carry) for call in calls.values()]
        keys = [self.carry(key) for key in partition]
        ordered = [(self.carry(one.key), one) for one in order]
        wanted = dict.fromkeys(
            [*keys, *(key for key, _ in ordered), *(a for call in carried for a in call.arguments)]
        )
        counted_from = {key for key, _ in ordered if any(c.frame.has_distance for c in carried)}
        scalars = [s for s in wanted if not isinstance(s, Literal) or s in counted_from]
        columns = dict(zip(scalars, builder.map(scalars), strict=True))

        def column(scalar: Scalar) -> Scalar:
            return (
                scalar if isinstance(scalar, Literal) else ColumnRef(columns[scalar], scalar.type)
            )

        group = tuple(dict.fromkeys(columns[key] for key in keys if key in columns))
        order_keys = tuple(
            OrderKey(columns[key], one.descending, one.nulls_first)
            for key, one in ordered
            if key in columns
        )
        first = builder.arity
        given = tuple(rewrite_window_call(call, column) for call in carried)
        builder.relation = Window(builder.relation, group, order_keys, given)
        builder.nullable += [_may_be_null(call) for call in given]
        for number, (place, call) in enumerate(zip(calls, given, strict=True)):
            self.settled[place] = ColumnRef(first + number, call.type)


def ungrouped(builder: RelationBuilder, late: Deferred) -> Standing:
    """The relation as it is: without grouping, expressions stand where they were planned."""
    settled: dict[int, Scalar] = {}
    carry = fill_places(settled)

    def attach_use(use: SubqueryUse) -> Scalar:
        return attach(with_operand(use, carry), builder)

    standing = Standing(builder, carry, attach_use, settled)
    standing.attach_first(late)
    return standing


def _row_of(columns: Sequence[ColumnRef], use: RowsUse) -> Scalar:
    """The columns as one row; NULL where another function in step has more rows."""
    blank = And(tuple(IsNull(column) for column in columns))
    return Case(((blank, Literal(None, use.type)),), made_row(use.type, columns), use.type)


def _needs(value: DeferredValue, waiting: set[int]) -> bool:
    """Whether it is computed from a value that is waiting."""
    match value:
        case QuantifiedUse(operand=operand):
            operands: Sequence[Scalar] = (operand,)
        case RowQuantifiedUse():
            operands = value.operands
        case _:
            return False
    places = {FIRST_PLACE + place for place in waiting}
    parts = [part for operand in operands for part in walk_parts(operand)]
    return any(isinstance(part, ColumnRef) and part.index in places for part in parts)


def _may_be_null(call: WindowCall) -> bool:
    if isinstance(call.function, AggregateFunction):
        return call.function.accumulator is not Accumulator.COUNT
    return call.function not in RESULTS or bool(call.arguments)
