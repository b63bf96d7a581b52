"""WHERE: a filter, or a join where a term is a subquery that the row must match."""

from collections.abc import Sequence

from evertide.sql.plan.builder import RelationBuilder
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred, fill_places
from evertide.sql.plan.expression import bind_condition, plain_context
from evertide.sql.plan.expression_context import Clause, ExpressionContext
from evertide.sql.plan.planned import fold_finishing
from evertide.sql.plan.quantified import bind_members
from evertide.sql.plan.scope import Scope
from evertide.sql.plan.single_row import absence, presence
from evertide.sql.plan.subquery import attach_all, semi_join
from evertide.sql.syntax.expression import And, Exists, Expression, InSubquery, Not


def plan_where(
    where: Expression | None, scope: Scope, builder: RelationBuilder, query: QueryContext
) -> None:
    """Keep the rows for which the condition is true.

    A term of the outermost AND need not tell false from unknown, so IN and EXISTS are plain joins
    there. Everywhere else they must give a value, which costs more.
    """
    if where is None:
        return
    deferred = Deferred()
    context = plain_context(scope, query, Clause.WHERE, deferred)
    joins = [term for term in _terms(where) if _is_join(term)]
    predicates = [bind_condition(term, context) for term in _terms(where) if not _is_join(term)]
    fill = fill_places(attach_all(deferred, builder))
    builder.filter([fill(predicate) for predicate in predicates])
    for term in joins:
        _plan_join(term, context, builder)


def _terms(where: Expression) -> Sequence[Expression]:
    return where.terms if isinstance(where, And) else (where,)


def _is_join(term: Expression) -> bool:
    match term:
        case InSubquery(negated=False) | Exists() | Not(operand=Exists()):
            return True
        case _:
            return False


def _plan_join(term: Expression, context: ExpressionContext, builder: RelationBuilder) -> None:
    inner = context.query.within(context.scope, context.deferred)
    match term:
        case Exists(query=query):
            builder.apply(presence(fold_finishing(inner.plan_query(query, inner))), [])
        case Not(operand=Exists(query=query)):
            builder.apply(absence(fold_finishing(inner.plan_query(query, inner))), [])
        case InSubquery():
            _plan_semi_join(term, context, builder)
        case _:
            raise AssertionError("only the terms of _is_join come here")


def _plan_semi_join(term: InSubquery, context: ExpressionContext, builder: RelationBuilder) -> None:
    """The operand may hold subqueries of its own, which are attached first."""
    deferred = Deferred()
    own = plain_context(context.scope, context.query, context.clause, deferred)
    operands, members = bind_members(term, own)
    fill = fill_places(attach_all(deferred, builder))
    semi_join(builder, [fill(operand) for operand in operands], members)
