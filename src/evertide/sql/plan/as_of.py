"""AS OF: the timestamp a query asks to read at."""

from evertide.expr.compile import compile_scalar
from evertide.expr.functions.cast import CastContext
from evertide.expr.relation import Relation
from evertide.expr.relation_walk import in_order_of_use, scalars_of
from evertide.expr.scalar import ColumnRef, Parameter, Scalar, SessionCall
from evertide.expr.temporal import MZ_NOW
from evertide.sql.plan.coercion import coerce
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.plan.scope import Scope
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Expression
from evertide.vocab.errors import CannotCoerce, DataException, FeatureNotSupported, SqlError
from evertide.vocab.sql_type import MZ_TIMESTAMP
from evertide.vocab.timestamp import Timestamp


def refuse_session_calls(relation: Relation, at: int) -> None:
    """What is asked of the session is what it is now, whatever time a query reads at."""
    for node in in_order_of_use(relation):
        for scalar in scalars_of(node):
            if any(isinstance(p, SessionCall) and p != MZ_NOW for p in walk_parts(scalar)):
                raise FeatureNotSupported(
                    "unmaterializable function (except `mz_now`) in an AS OF query not yet"
                    " supported",
                    position=position_of(at),
                )


def plan_timestamp(node: Expression, query: QueryContext) -> Timestamp:
    """The constant that AS OF or UP TO gives."""
    scalar = plain_context(Scope(), query, Clause.AS_OF, Deferred()).bind(node)
    not_castable = DataException(
        "AS OF or UP TO should be castable to a (non-null) mz_timestamp value",
        position=position_of(node.at),
    )
    try:
        coerced = _coerced(scalar, query, node.at)
        parts = list(walk_parts(coerced))
        if any(isinstance(part, SessionCall) for part in parts):
            raise FeatureNotSupported(
                "calling an unmaterializable function in AS OF or UP TO not yet supported",
                position=position_of(node.at),
            )
        if any(isinstance(part, Parameter | ColumnRef) for part in parts):
            raise FeatureNotSupported("AS OF must be a constant", position=position_of(node.at))
        value = compile_scalar(coerced)(())
    except (CannotCoerce, FeatureNotSupported):
        raise
    except SqlError as error:
        raise not_castable from error
    if not isinstance(value, int):
        raise not_castable
    return Timestamp(value)


def _coerced(scalar: Scalar, query: QueryContext, at: int) -> Scalar:
    try:
        return coerce(scalar, MZ_TIMESTAMP, CastContext.EXPLICIT, query, at=at)
    except CannotCoerce as error:
        raise CannotCoerce(
            f"AS OF or UP TO does not support casting from {scalar.type} to mz_timestamp",
            position=position_of(at),
        ) from error
