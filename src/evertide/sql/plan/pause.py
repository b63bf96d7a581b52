"""pg_sleep: a query that is answered only after a while.

How long must be known when it is planned: the statement waits once, whatever the number of rows,
and without keeping anyone else waiting.
"""

from typing import Final

from evertide.expr.compile import compile_scalar
from evertide.expr.float_text import float8_text
from evertide.expr.functions.cast import CastContext
from evertide.expr.scalar import ColumnRef, Literal, OuterColumn, Parameter, Scalar, SessionCall
from evertide.sql.plan.coercion import coerce
from evertide.sql.plan.expression_context import Clause, ExpressionContext
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import FunctionCall
from evertide.vocab.errors import FeatureNotSupported, InvalidParameterValue, UndefinedFunction
from evertide.vocab.sql_type import FLOAT8, TEXT

# The name that a pause has in a plan begins so.
PAUSE: Final = "pg_sleep("
PAUSES: Final = frozenset({"pg_sleep", "mz_sleep"})
# Longer ones are no times: what was meant is something else.
_LONGEST_S: Final = 2.0**64
_OPEN = (Parameter, SessionCall, ColumnRef, OuterColumn)


def bind_pause(name: str, node: FunctionCall, context: ExpressionContext) -> Scalar:
    """The pause, of whose value nothing is known but that it is empty."""
    position = position_of(node.at)
    if len(node.args) != 1:
        raise UndefinedFunction(f'function "{name}" needs a number of seconds', position=position)
    if context.clause is not Clause.SELECT:
        raise FeatureNotSupported(f"{name} is supported in SELECT lists only", position=position)
    bound = context.bind(node.args[0])
    seconds = coerce(bound, FLOAT8, CastContext.ASSIGNMENT, context.query, at=node.at)
    if any(isinstance(part, _OPEN) for part in walk_parts(seconds)):
        raise FeatureNotSupported(f"{name} needs a constant", position=position)
    found = compile_scalar(seconds)(())
    if found is None:
        return Literal(None, TEXT)
    assert isinstance(found, float), "it was converted"
    # PostgreSQL does not wait at all where it should wait for less than nothing.
    is_refused = found < 0 and name == "mz_sleep"
    if is_refused or not abs(found) < _LONGEST_S:
        told = f"cannot sleep for {float8_text(found)} seconds"
        raise InvalidParameterValue(told, position=position)
    return SessionCall(f"{PAUSE}{max(found, 0.0)!r})", TEXT)


def is_pause(call: SessionCall) -> bool:
    """Whether the call makes its statement wait.

    >>> is_pause(SessionCall("pg_sleep(0.0)", TEXT)), is_pause(SessionCall("now", TEXT))
    (True, False)
    """
    return call.name.startswith(PAUSE)


def pause_seconds(call: SessionCall) -> float:
    """How long it does.

    >>> pause_seconds(SessionCall("pg_sleep(1.5)", TEXT))
    1.5
    """
    return float(call.name[len(PAUSE) : -1])
