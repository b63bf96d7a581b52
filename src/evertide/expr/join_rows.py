"""Joins of rows in memory, input after input, by hashes."""

from collections.abc import Hashable, Sequence

from evertide.expr.budget import Budget
from evertide.expr.group_rows import Counted
from evertide.expr.join_order import Extension, connected_order, inner_equivalences
from evertide.expr.relation import Join, Types
from evertide.expr.row_key import join_key, picker

# A join asks its budget about every so many rows.
_STEP_ROWS = 100_000


def join_rows(join: Join, sources: Sequence[list[Counted]], budget: Budget) -> list[Counted]:
    """The rows of a join, given those of its inputs."""
    arities = [len(relation.types) for relation in join.inputs]
    rows = list(sources)
    for number, columns in inner_equivalences(arities, join.equivalences):
        rows[number] = _all_equal(rows[number], join.inputs[number].types, columns)
    order = connected_order(arities, join.equivalences, 0)
    bound, bound_types = rows[0], join.inputs[0].types
    for extension in order.extensions:
        types = join.inputs[extension.relation].types
        bound = _extend(bound, bound_types, rows[extension.relation], types, extension, budget)
        bound_types += types
    if order.columns != tuple(range(len(order.columns))):
        pick = picker(order.columns)
        bound = [(pick(row), count) for row, count in bound]
    return bound


def _all_equal(rows: list[Counted], types: Types, columns: tuple[int, ...]) -> list[Counted]:
    keys = [join_key(types, (column,)) for column in columns]
    return [
        counted
        for counted in rows
        if len({key(counted[0]) for key in keys}) == 1 and counted[0][columns[0]] is not None
    ]


def _extend(
    bound: list[Counted],
    bound_types: Types,
    rows: list[Counted],
    types: Types,
    extension: Extension,
    budget: Budget,
) -> list[Counted]:
    """Look every bound row up, a few at a time, so that no step makes rows without end."""
    key = join_key(types, extension.key)
    table: dict[Hashable, list[Counted]] = {}
    for counted in rows:
        table.setdefault(key(counted[0]), []).append(counted)
    table.pop(None, None)
    probe = join_key(bound_types, extension.probe)
    joined: list[Counted] = []
    most = max((len(found) for found in table.values()), default=0)
    step = max(1, _STEP_ROWS // max(most, 1))
    for start in range(0, len(bound), step):
        made = len(joined)
        joined += [
            (row + other, count * times)
            for row, count in bound[start : start + step]
            for other, times in table.get(probe(row), ())
        ]
        budget.spend(len(joined) - made)
    width = len(bound_types)
    for left, right in extension.also_equal:
        joined = _all_equal(joined, bound_types + types, (left, width + right))
    return joined
