"""JOIN: two sources to one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from evertide.expr.outer_columns import move_free
from evertide.expr.relation import Map, OuterJoin, Project, Relation, Threshold, Types, Union
from evertide.expr.scalar import And, Coalesce, Literal, Scalar
from evertide.expr.scalar_walk import shift_columns
from evertide.sql.plan.builder import conjuncts
from evertide.sql.plan.coercion import unify
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred, fill_places
from evertide.sql.plan.difference import minus
from evertide.sql.plan.expression import bind_condition, plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.function_call import call_operator
from evertide.sql.plan.planned import project
from evertide.sql.plan.scope import Scope, ScopeColumn, TableName
from evertide.sql.plan.single_row import looks_around
from evertide.sql.plan.source import Source, joined_scope, product
from evertide.sql.plan.subquery import attach_all
from evertide.sql.resolve import position_of
from evertide.sql.syntax.query import Join, JoinNatural, JoinOn, JoinUsing
from evertide.vocab.errors import (
    AmbiguousColumn,
    DuplicateAlias,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidColumnReference,
    UndefinedColumn,
    UndefinedFunction,
)


def plan_join(
    join: Join, left: Source, right: Source, query: QueryContext, *, lateral: bool
) -> Source:
    """The join of two planned sources; `lateral`: right is written one row further in."""
    if lateral:
        if looks_around(right.relation):
            return _join_lateral(join, left, right, query)
        right = Source(move_free(right.relation, -1), right.scope)
    match join.constraint:
        case None:
            return product(left, right, at=join.at)
        case JoinOn():
            return _join_on(join, join.constraint, left, right, query)
        case JoinUsing(columns=names, alias=alias):
            return _join_using(join, names, alias, left, right, query)
        case JoinNatural():
            return _join_using(join, _shared_names(left, right), None, left, right, query)
        case _:
            assert_never(join.constraint)


def _shared_names(left: Source, right: Source) -> tuple[str, ...]:
    """The columns NATURAL JOIN means, in left's order."""
    in_right = {column.name for column in right.scope.starred}
    shared = [column.name for column in left.scope.starred if column.name in in_right]
    return tuple(dict.fromkeys(shared))


def _join_on(
    join: Join, constraint: JoinOn, left: Source, right: Source, query: QueryContext
) -> Source:
    scope = joined_scope(left, right, at=join.at)
    deferred = Deferred()
    context = plain_context(scope, query, Clause.ON, deferred)
    on = bind_condition(constraint.condition, context)
    if join.kind == "INNER":
        return _inner(left, right, on, deferred, scope, at=join.at)
    if deferred.values:
        matched = _matched(product(left, right, at=join.at), on, deferred)
        return _padded(join, left, right, matched)
    return _outer(join, left, right, on)


def _matched(pairs: Source, on: Scalar, deferred: Deferred) -> Relation:
    """Pairs for which `on` holds, where it has subqueries; nothing but the pairs' own columns."""
    builder = pairs.builder()
    fill = fill_places(attach_all(deferred, builder))
    builder.filter([fill(on)])
    return project(builder.relation, tuple(range(len(pairs.relation.types))))


def _join_lateral(join: Join, left: Source, right: Source, query: QueryContext) -> Source:
    """A join whose right side looks at left's row."""
    if join.kind in ("RIGHT", "FULL"):
        raise InvalidColumnReference(
            f"the right side of a {join.kind} JOIN cannot refer to its left side",
            detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
            position=position_of(join.at),
        )
    pairs = product(left, right, at=join.at, lateral=True)
    if join.constraint is None:
        return pairs
    if not isinstance(join.constraint, JoinOn):
        raise FeatureNotSupported(
            "USING and NATURAL with LATERAL are not supported",
            hint="Write the condition with ON.",
            position=position_of(join.at),
        )
    deferred = Deferred()
    context = plain_context(pairs.scope, query, Clause.ON, deferred)
    matched = _matched(pairs, bind_condition(join.constraint.condition, context), deferred)
    if join.kind == "INNER":
        return Source(matched, pairs.scope)
    return _padded(join, left, right, matched)


def _padded(join: Join, left: Source, right: Source, matched: Relation) -> Source:
    """An outer join from its matched pairs.

    A row with a match is among the pairs at least as often as in its own side, so taking those
    away leaves the rows without, as often as they are there.
    """
    width = len(left.relation.types)
    branches: list[Relation] = [matched]
    if join.kind in ("LEFT", "FULL"):
        mine = Project(matched, tuple(range(width)))
        alone: Relation = Threshold(minus(left.relation, mine))
        branches.append(Map(alone, _nulls(right.relation.types)))
    if join.kind in ("RIGHT", "FULL"):
        types, nulls = right.relation.types, _nulls(left.relation.types)
        mine = Project(matched, tuple(range(width, width + len(types))))
        padded = Map(Threshold(minus(right.relation, mine)), nulls)
        order = (*range(len(types), len(types) + width), *range(len(types)))
        branches.append(Project(padded, order))
    scope = joined_scope(
        left,
        right,
        at=join.at,
        blank_left=join.kind in ("RIGHT", "FULL"),
        blank_right=join.kind in ("LEFT", "FULL"),
    )
    return Source(Union(tuple(branches)), scope)


def _nulls(types: Types) -> tuple[Literal, ...]:
    return tuple(Literal(None, sql_type) for sql_type in types)


def _inner(
    left: Source, right: Source, on: Scalar, deferred: Deferred, scope: Scope, *, at: int
) -> Source:
    builder = product(left, right, at=at).builder()
    fill = fill_places(attach_all(deferred, builder))
    builder.filter([fill(on)])
    return Source(builder.relation, scope)


def _outer(join: Join, left: Source, right: Source, on: Scalar) -> Source:
    kind = join.kind.lower()
    relation = OuterJoin(kind, left.relation, right.relation, conjuncts(on))
    scope = joined_scope(
        left,
        right,
        at=join.at,
        blank_left=join.kind in ("RIGHT", "FULL"),
        blank_right=join.kind in ("LEFT", "FULL"),
    )
    return Source(relation, scope)


def _join_using(
    join: Join,
    names: Sequence[str],
    alias: str | None,
    left: Source,
    right: Source,
    query: QueryContext,
) -> Source:
    """Equal columns are shown once, before all others."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise DuplicateColumn(f'column name "{name}" appears more than once in USING clause')
    width = len(left.relation.types)
    pairs = [_pair(join, name, left, right) for name in names]
    sides = [(one.scalar, shift_columns(two.scalar, width)) for one, two in pairs]
    if not sides:  # NATURAL JOIN of relations that share nothing
        return product(left, right, at=join.at)
    terms = tuple(
        _equal(name, pair, query, join.at) for name, pair in zip(names, sides, strict=True)
    )
    on = terms[0] if len(terms) == 1 else And(terms)
    if join.kind == "INNER":
        joined = _inner(
            left, right, on, Deferred(), joined_scope(left, right, at=join.at), at=join.at
        )
    else:
        joined = _outer(join, left, right, on)
    shown = [_shown(join, pair, scalars, query) for pair, scalars in zip(pairs, sides, strict=True)]
    return Source(joined.relation, _using_scope(joined.scope, shown, alias))


def _equal(name: str, pair: tuple[Scalar, Scalar], query: QueryContext, at: int) -> Scalar:
    try:
        return call_operator("=", pair, query, at=at)
    except UndefinedFunction:
        raise UndefinedFunction(
            f'NATURAL/USING join column "{name}" types {pair[0].type} and {pair[1].type} cannot be'
            " matched",
            position=position_of(at),
        ) from None


def _pair(join: Join, name: str, left: Source, right: Source) -> tuple[ScopeColumn, ScopeColumn]:
    return _side(join, name, left, "left"), _side(join, name, right, "right")


def _side(join: Join, name: str, source: Source, side: str) -> ScopeColumn:
    position = position_of(join.at if join.constraint is None else join.constraint.at)
    found = [column for column in source.scope.starred if column.name == name]
    if not found:
        raise UndefinedColumn(
            f'column "{name}" specified in USING clause does not exist in {side} table',
            position=position,
        )
    if len(found) > 1:
        raise AmbiguousColumn(
            f'common column name "{name}" appears more than once in {side} table',
            position=position,
        )
    return found[0]


def _shown(
    join: Join,
    columns: tuple[ScopeColumn, ScopeColumn],
    scalars: tuple[Scalar, Scalar],
    query: QueryContext,
) -> ScopeColumn:
    """The column that stands for both: that of the side which is always there."""
    (left, right), shared = unify(scalars, "JOIN/USING", query, ats=(join.at, join.at))
    match join.kind:
        case "RIGHT":
            scalar, nullable = right, columns[1].nullable
        case "FULL":
            scalar = Coalesce((left, right), shared)
            nullable = columns[0].nullable or columns[1].nullable
        case _:
            scalar, nullable = left, columns[0].nullable
    return ScopeColumn(columns[0].name, scalar, nullable)


def _using_scope(scope: Scope, shown: Sequence[ScopeColumn], alias: str | None) -> Scope:
    names = {column.name for column in shown}
    rest = tuple(
        replace(column, merged=column.merged or column.name in names) for column in scope.columns
    )
    if alias is None:
        return Scope((*shown, *rest), scope.tables)
    if any(table.name == alias for table in scope.tables):
        raise DuplicateAlias(f'table name "{alias}" specified more than once')
    table = TableName(alias)
    again = tuple(replace(column, table=table, merged=True) for column in shown)
    return Scope((*shown, *rest, *again), (*scope.tables, table))
