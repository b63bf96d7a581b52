"""WITH MUTUALLY RECURSIVE: queries that see one another, and themselves."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from typing import TypeAlias

from evertide.expr.functions.cast import CastContext
from evertide.expr.recursion import MARK
from evertide.expr.relation import LetRec, LocalGet, RecursionLimit, Relation
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.sql.plan.coercion import can_coerce, coerce
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.data_type import resolve_type
from evertide.sql.plan.planned import NamedQuery, PlannedQuery, fold_finishing
from evertide.sql.plan.set_operation import with_columns
from evertide.sql.printer.query import with_ as text_of
from evertide.sql.resolve import position_of
from evertide.sql.syntax.query import CommonTable, Query, With
from evertide.vocab.errors import DatatypeMismatch, DuplicateAlias
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc

PlanQuery: TypeAlias = Callable[[Query, QueryContext], PlannedQuery]


class Bindings:
    """The queries of one list, whose types are told before any of them is planned."""

    def __init__(self, with_: With, context: QueryContext, plan_query: PlanQuery) -> None:
        self._with = with_
        seen: set[str] = set()
        for table in with_.tables:
            if table.name in seen:
                raise DuplicateAlias(
                    f'WITH query name "{table.name}" specified more than once',
                    position=position_of(table.at),
                )
            seen.add(table.name)
        descs = [_declared(table, context) for table in with_.tables]
        self._names = _unique_names(with_)
        named: dict[str, NamedQuery | None] = dict(context.named_queries)
        for table, name, desc in zip(with_.tables, self._names, descs, strict=True):
            named[table.name] = NamedQuery(LocalGet(name, desc.types), desc, len(context.outer))
        self.context = replace(context, named_queries=named)
        self._values = tuple(
            self._value(table, desc, plan_query(table.query, self.context))
            for table, desc in zip(with_.tables, descs, strict=True)
        )

    def around(self, planned: PlannedQuery) -> PlannedQuery:
        """The query that the list stands before, with the list."""
        given = self._with.limit
        limit = None
        if given is not None:
            limit = RecursionLimit(given.iterations, fails=given.action == "ERROR")
        return replace(planned, relation=LetRec(self._names, self._values, planned.relation, limit))

    def _value(self, table: CommonTable, desc: RelationDesc, planned: PlannedQuery) -> Relation:
        """A query as its declaration says: what could be stored in such columns may differ."""
        found = [_output(planned, column) for column in range(planned.desc.arity)]
        fits = len(found) == desc.arity and all(
            can_coerce(scalar.type, column.type, CastContext.ASSIGNMENT)
            for scalar, column in zip(found, desc.columns, strict=True)
        )
        if not fits:
            raise DatatypeMismatch(
                f'WITH MUTUALLY RECURSIVE query "{table.name}" declared types ({_listed(desc)}),'
                f" but query returns types ({_listed(planned.desc)})",
                position=position_of(table.at),
            )
        ats = [planned.at_of(column, table.query.at) for column in range(desc.arity)]
        scalars = [
            coerce(scalar, column.type, CastContext.ASSIGNMENT, self.context, at=at)
            for scalar, column, at in zip(found, desc.columns, ats, strict=True)
        ]
        return with_columns(fold_finishing(planned), scalars)


def _declared(table: CommonTable, query: QueryContext) -> RelationDesc:
    typed = zip(table.columns, table.types, strict=True)
    return RelationDesc(
        tuple(ColumnDesc(name, resolve_type(type_, query)) for name, type_ in typed)
    )


def _unique_names(with_: With) -> tuple[str, ...]:
    """Names that no list within this one has, nor one of a view: a text cannot hold itself."""
    digest = blake2b(text_of(with_).encode(), digest_size=8).hexdigest()
    return tuple(f"{table.name}{MARK}{digest}.{with_.at}" for table in with_.tables)


def _output(planned: PlannedQuery, column: int) -> Scalar:
    untyped = planned.untyped.get(column)
    return untyped or ColumnRef(column, planned.desc.columns[column].type)


def _listed(desc: RelationDesc) -> str:
    return ", ".join(str(sql_type) for sql_type in desc.types)
