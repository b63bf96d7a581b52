"""Scalars that are known without a row are replaced by their values.

An expression that fails stays as it is: whether its error matters depends on there being a row.
So does one that takes long, unless that is asked for: see `heavy`.
"""

from evertide.expr.compile import compile_scalar
from evertide.expr.functions.row import Knowledge
from evertide.expr.heavy import is_heavy_call
from evertide.expr.scalar import And, Call, Case, Coalesce, IsNull, Literal, Or, Scalar
from evertide.expr.scalar_walk import is_fallible, rewrite
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import BOOL

TRUE = Literal(True, BOOL)
FALSE = Literal(False, BOOL)


def fold_scalar(scalar: Scalar) -> Scalar:
    """The same scalar, with everything in it that is known, and takes no time, worked out."""
    return rewrite(scalar, _folded)


def fold_heavy_scalar(scalar: Scalar) -> Scalar:
    """The same, however long it takes."""
    return rewrite(scalar, _folded_heavy)


def _folded_heavy(scalar: Scalar) -> Scalar:
    return _fold_call(scalar) if isinstance(scalar, Call) else _folded(scalar)


def _folded(scalar: Scalar) -> Scalar:
    match scalar:
        case Call():
            return scalar if is_heavy_call(scalar) else _fold_call(scalar)
        case And(arguments):
            return _fold_junction(arguments, decisive=False)
        case Or(arguments):
            return _fold_junction(arguments, decisive=True)
        case Case():
            return _fold_case(scalar)
        case Coalesce():
            return _fold_coalesce(scalar)
        case IsNull(Literal(value=value)):
            return _truth(value is None)
        case _:
            return scalar


def _truth(value: bool) -> Literal:
    return TRUE if value else FALSE


def _fold_call(call: Call) -> Scalar:
    literals = [argument for argument in call.arguments if isinstance(argument, Literal)]
    if len(literals) == len(call.arguments):
        if call.function.knowledge is Knowledge.CATALOG:
            return call
        try:
            return Literal(compile_scalar(call)(()), call.type)
        except SqlError:
            return call
    has_null = call.function.strict and any(literal.value is None for literal in literals)
    if has_null and not any(is_fallible(argument) for argument in call.arguments):
        return Literal(None, call.type)
    return call


def _fold_junction(arguments: tuple[Scalar, ...], *, decisive: bool) -> Scalar:
    """And in And is one And, also in which error is the least; neutral arguments go."""
    kind = Or if decisive else And
    kept: list[Scalar] = []
    for argument in arguments:
        kept += argument.arguments if isinstance(argument, kind) else (argument,)
    values: list[Datum] = [part.value for part in kept if isinstance(part, Literal)]
    if decisive in values:
        return _truth(decisive)
    neutral = _truth(not decisive)
    kept = [part for part in kept if part != neutral]
    match kept:
        case []:
            return neutral
        case [only]:
            return only
        case _:
            return kind(tuple(kept))


def _fold_case(case: Case) -> Scalar:
    branches: list[tuple[Scalar, Scalar]] = []
    otherwise = case.otherwise
    for condition, value in case.branches:
        if not isinstance(condition, Literal):
            branches.append((condition, value))
        elif condition.value is True:
            otherwise = value
            break
    if not branches and otherwise.type == case.type:
        return otherwise
    return Case(tuple(branches), otherwise, case.type)


def _fold_coalesce(coalesce: Coalesce) -> Scalar:
    kept: list[Scalar] = []
    for argument in coalesce.arguments:
        if not isinstance(argument, Literal):
            kept.append(argument)
        elif argument.value is not None:
            kept.append(argument)
            break
    match kept:
        case []:
            return Literal(None, coalesce.type)
        case [only] if only.type == coalesce.type:
            return only
        case _:
            return Coalesce(tuple(kept), coalesce.type)
