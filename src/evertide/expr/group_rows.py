"""Rows put together in memory: those that are identical, GROUP BY, DISTINCT and multiplicities."""

from collections.abc import Hashable, Iterable
from operator import itemgetter
from typing import TypeAlias, cast

from evertide.expr.aggregate import evaluate_aggregate, least_error
from evertide.expr.compile import compile_scalar
from evertide.expr.relation import AggregateCall, OrderKey, Reduce, Types
from evertide.expr.row_key import first_of_equals, group_key, identity_function, in_order, least
from evertide.expr.scalar import Scalar
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError, encode_error

Counted: TypeAlias = tuple[Row, int]
# With an encoded error instead of a row.
CountedError: TypeAlias = tuple[str, int]


def consolidated(rows: Iterable[Counted], types: Types) -> list[Counted]:
    """Identical rows added up, zeros dropped; in order of first sight."""
    identity = identity_function(types)
    sums: dict[Hashable, int] = {}
    if identity is None:
        for row, count in rows:
            sums[row] = sums.get(row, 0) + count
        return [(cast(Row, row), count) for row, count in sums.items() if count]
    first: dict[Hashable, Row] = {}
    for row, count in rows:
        key = identity(row)
        sums[key] = sums.get(key, 0) + count
        first.setdefault(key, row)
    return [(first[key], count) for key, count in sums.items() if count]


def reduce_rows(reduce: Reduce, source: list[Counted]) -> tuple[list[Counted], list[CountedError]]:
    """Group, then aggregate. A row whose key or argument fails is an error instead of a member."""
    keys = [compile_scalar(key) for key in reduce.keys]
    arguments = [
        None if scalar is None else compile_scalar(scalar)
        for call in reduce.aggregates
        for scalar in _member_scalars(call)
    ]
    errors: list[CountedError] = []
    members: list[Counted] = []
    for row, count in source:
        try:
            found = [evaluate(row) for evaluate in keys]
            found += [None if evaluate is None else evaluate(row) for evaluate in arguments]
        except SqlError as error:
            errors.append((encode_error(error), count))
            continue
        members.append((tuple(found), count))
    rows: list[Counted] = []
    for group in _groups(members, _member_types(reduce), len(reduce.keys)):
        try:
            rows.append((_reduced_row(reduce, group), 1))
        except SqlError as error:
            errors.append((encode_error(error), 1))
    return rows, errors


def _member_types(reduce: Reduce) -> Types:
    """Keys, then arguments with their order; count(*) has a column too, always NULL."""
    return tuple(key.type for key in reduce.keys) + tuple(
        call.type if scalar is None else scalar.type
        for call in reduce.aggregates
        for scalar in _member_scalars(call)
    )


def _member_scalars(call: AggregateCall) -> tuple[Scalar | None, ...]:
    return (call.argument, *(order.key for order in call.order))


def _groups(members: list[Counted], types: Types, width: int) -> Iterable[list[Counted]]:
    """Members with equal first columns, consolidated; groups without rows are left out."""
    key = group_key(types, tuple(range(width)))
    groups: dict[Hashable, list[Counted]] = {}
    for member in consolidated(members, types):
        groups.setdefault(key(member[0]), []).append(member)
    return [group for group in groups.values() if sum(count for _, count in group) > 0]


def _reduced_row(reduce: Reduce, group: list[Counted]) -> Row:
    width = len(reduce.keys)
    key_types = reduce.types[:width]
    shown = least(key_types, (row[:width] for row, count in group if count > 0))
    results: list[Datum] = []
    failures: list[SqlError] = []
    column = width
    for call in reduce.aggregates:
        try:
            results.append(_aggregate(call, column, group))
        except SqlError as error:
            failures.append(error)
        column += 1 + len(call.order)
    if failures:
        raise least_error(failures)
    return shown + tuple(results)


def _aggregate(call: AggregateCall, column: int, group: list[Counted]) -> Datum:
    total = sum(count for _, count in group)
    if call.argument is None:
        return evaluate_aggregate(call, total, [])
    if call.order:
        return _ordered_aggregate(call, column, group)
    given = [((row[column],), count) for row, count in group if row[column] is not None]
    values = consolidated(given, (call.argument.type,))
    return evaluate_aggregate(call, total, [(row[0], count) for row, count in values])


def _ordered_aggregate(call: AggregateCall, column: int, group: list[Counted]) -> Datum:
    """Over the arguments in the order asked for; equal keys by the argument itself.

    With DISTINCT, what the order names are arguments: so equal ones stand side by side.
    """
    assert call.function.finish_rows is not None, f"{call.function} does not depend on order"
    assert call.argument is not None
    width = 1 + len(call.order)
    types = (call.argument.type, *(order.key.type for order in call.order))
    given = [(row[column : column + width], n) for row, n in group if row[column] is not None]
    keys = tuple(
        OrderKey(number, order.descending, order.nulls_first)
        for number, order in enumerate(call.order, 1)
    )
    sorted_rows = in_order(consolidated(given, types), itemgetter(0), types, keys)
    values = [row[0] for row, n in sorted_rows for _ in range(n)]
    if call.distinct:
        values = first_of_equals(call.argument.type, values)
    return call.function.finish_rows(values)


def distinct_rows(source: list[Counted], types: Types) -> list[Counted]:
    """Of rows equal in SQL one, with the least representation."""
    groups = _groups(source, types, len(types))
    return [(least(types, (row for row, count in group if count > 0)), 1) for group in groups]


def positive_rows(source: list[Counted], types: Types) -> list[Counted]:
    """The positive part of each group of rows equal in SQL."""
    groups = _groups(source, types, len(types))
    return [counted for group in groups for counted in positive_part(group, types)]


def positive_part(group: list[Counted], types: Types) -> list[Counted]:
    """Of rows equal in SQL, as many as there are in all; least representations first.

    Nearly always a group is one row and this is that row if its multiplicity is positive.
    """
    left = sum(count for _, count in group)
    kept: list[Counted] = []
    positive = [counted for counted in group if counted[1] > 0]
    if len(positive) > 1:
        positive = in_order(positive, itemgetter(0), types, ())
    for row, count in positive:
        if left <= 0:
            break
        kept.append((row, min(count, left)))
        left -= count
    return kept
