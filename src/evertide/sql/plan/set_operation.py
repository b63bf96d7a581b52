"""UNION, INTERSECT and EXCEPT."""

from collections.abc import Sequence
from functools import reduce
from typing import assert_never

from evertide.expr.relation import Distinct, Map, Relation, Threshold, Union
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.sql.plan.coercion import unify
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.difference import minus
from evertide.sql.plan.planned import PlannedQuery, fold_finishing, project
from evertide.sql.resolve import position_of
from evertide.sql.syntax.query import SetOperation
from evertide.vocab.errors import SqlSyntaxError
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import SqlType


def combine(
    operation: SetOperation, parts: Sequence[PlannedQuery], query: QueryContext
) -> PlannedQuery:
    """The parts as one; columns are called as in the first."""
    for body, part in zip(operation.inputs, parts, strict=True):
        if part.desc.arity != parts[0].desc.arity:
            raise SqlSyntaxError(
                f"each {operation.operator} query must have the same number of columns",
                position=position_of(part.at_of(0, body.at)),
            )
    relations, types = _matched(operation, parts, query)
    columns = [
        ColumnDesc(column.name, sql_type, any(part.desc.columns[i].nullable for part in parts))
        for i, (column, sql_type) in enumerate(zip(parts[0].desc.columns, types, strict=True))
    ]
    positions = tuple(range(len(columns)))
    return PlannedQuery(_combined(operation, relations), positions, RelationDesc(tuple(columns)))


def _matched(
    operation: SetOperation, parts: Sequence[PlannedQuery], query: QueryContext
) -> tuple[list[Relation], list[SqlType]]:
    """The parts with equal column types, and these."""
    bodies = operation.inputs
    rows = [[_output(part, i) for i in range(part.desc.arity)] for part in parts]
    types: list[SqlType] = []
    for i in range(parts[0].desc.arity):
        ats = [part.at_of(i, body.at) for part, body in zip(parts, bodies, strict=True)]
        unified, shared = unify([row[i] for row in rows], operation.operator, query, ats=ats)
        types.append(shared)
        for row, scalar in zip(rows, unified, strict=True):
            row[i] = scalar
    matched = [
        with_columns(fold_finishing(part), row) for part, row in zip(parts, rows, strict=True)
    ]
    return matched, types


def _output(part: PlannedQuery, column: int) -> Scalar:
    untyped = part.untyped.get(column)
    return untyped or ColumnRef(column, part.desc.columns[column].type)


def with_columns(relation: Relation, scalars: Sequence[Scalar]) -> Relation:
    """A relation of exactly these values, computed from another's rows."""
    added = [scalar for scalar in scalars if not isinstance(scalar, ColumnRef)]
    width = len(relation.types)
    places = iter(range(width, width + len(added)))
    columns = tuple(
        scalar.index if isinstance(scalar, ColumnRef) else next(places) for scalar in scalars
    )
    return project(Map(relation, tuple(added)) if added else relation, columns)


def _combined(operation: SetOperation, relations: list[Relation]) -> Relation:
    match operation.operator:
        case "UNION":
            union = Union(tuple(relations))
            return union if operation.all_ else Distinct(union)
        case "INTERSECT":
            return reduce(intersect_all, relations) if operation.all_ else _intersect(relations)
        case "EXCEPT":
            if not operation.all_:
                relations = [Distinct(relation) for relation in relations]
            return _except(relations[0], Union(tuple(relations[1:])))
        case _:
            assert_never(operation.operator)


def _except(left: Relation, right: Relation) -> Relation:
    """A chain of EXCEPTs takes away all its later inputs at once: the rows left are the same."""
    return Threshold(minus(left, right))


def _intersect(relations: list[Relation]) -> Relation:
    """Of n inputs, a row in all of them counts n, less the n - 1 that keep any other from one."""
    counted = Union(tuple(Distinct(relation) for relation in relations))
    every = Distinct(counted)
    return Threshold(minus(counted, Union((every,) * (len(relations) - 1))))


def intersect_all(left: Relation, right: Relation) -> Relation:
    """What is left of `left` without that part of it which `right` does not have."""
    return minus(left, _except(left, right))
