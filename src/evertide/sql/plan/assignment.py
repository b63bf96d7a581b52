"""Values given to columns, and defaults that will be."""

from evertide.expr.functions.cast import CastContext
from evertide.expr.scalar import Parameter, Scalar
from evertide.sql.plan.coercion import can_coerce, coerce
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.place import start_of
from evertide.sql.plan.scope import Scope
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Expression
from evertide.vocab.errors import DatatypeMismatch, FeatureNotSupported
from evertide.vocab.relation_desc import ColumnDesc


def assign(scalar: Scalar, column: ColumnDesc, query: QueryContext, *, at: int) -> Scalar:
    """The value as the column holds it."""
    if isinstance(scalar, Parameter):
        scalar = query.parameters.fit(scalar, column.type)
    if not can_coerce(scalar.type, column.type, CastContext.ASSIGNMENT):
        raise DatatypeMismatch(
            f'column "{column.name}" is of type {column.type} but expression is of type'
            f" {scalar.type}",
            hint="You will need to rewrite or cast the expression.",
            position=position_of(at),
        )
    return coerce(scalar, column.type, CastContext.ASSIGNMENT, query, at=at)


def check_default(node: Expression, column: ColumnDesc, query: QueryContext) -> None:
    """A default is computed for each row on its own: it sees no columns and no tables."""
    deferred = Deferred()
    context = plain_context(Scope(), query, Clause.DEFAULT, deferred)
    assign(context.bind(node), column, query, at=start_of(node))
    if deferred.values:
        raise FeatureNotSupported(
            "cannot use subquery in DEFAULT expression", position=position_of(node.at)
        )
