"""Calls of the function table: the row that is meant, and its arguments in the row's types."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from evertide.expr.dimensions import is_nested
from evertide.expr.functions.aggregate import packing
from evertide.expr.functions.array_dimensions import FLATTEN
from evertide.expr.functions.cast import CastContext
from evertide.expr.functions.each_element import each_element
from evertide.expr.functions.made import MADE_ONLY
from evertide.expr.functions.record import fields_of, is_record, row_key_of
from evertide.expr.functions.resolution import (
    Coercion,
    Resolution,
    resolve_aggregate,
    resolve_function,
    resolve_operator,
)
from evertide.expr.functions.row import AggregateFunction, ScalarFunction
from evertide.expr.functions.session import SESSION_CALLS
from evertide.expr.functions.table import find_aggregate, find_scalar
from evertide.expr.functions.type_groups import unmodified
from evertide.expr.scalar import And, Call, Literal, Or, Parameter, Scalar, SessionCall
from evertide.sql.plan.coercion import coerce, is_unknown, settle, with_position
from evertide.sql.plan.context import QueryContext
from evertide.sql.resolve import position_of
from evertide.vocab.errors import DatatypeMismatch, WrongObjectType
from evertide.vocab.sql_type import BOOL, BYTEA, JSONB, Kind, SqlType, array_of

_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "is_distinct_from"})
_SESSION_NAMES: Final = frozenset(name.partition("(")[0] for name in SESSION_CALLS)
# True of a count of rows up to one, an error beyond.
(AT_MOST_ONE_ROW,) = find_scalar("mz_at_most_one_row")
(_NOT,) = find_scalar("not")
# Resolution looks at every overload, and statements use the same few over and over.
_function = lru_cache(maxsize=4096)(resolve_function)
_operator = lru_cache(maxsize=4096)(resolve_operator)
_aggregate = lru_cache(maxsize=1024)(resolve_aggregate)


def negated(condition: Scalar) -> Scalar:
    """NOT of a boolean."""
    return Call(_NOT, (condition,), BOOL)


def call_function(
    name: str, arguments: Sequence[Scalar], query: QueryContext, *, at: int
) -> Scalar:
    """The function that these arguments mean, applied to them."""
    arguments = [_current(argument, query) for argument in arguments]
    with with_position(at):
        found = _function(name, _types(arguments))
    return _call(found, arguments, query, at=at)


def call_operator(
    name: str, arguments: Sequence[Scalar], query: QueryContext, *, at: int
) -> Scalar:
    """The operator that these operands mean, applied to them."""
    arguments = [_current(argument, query) for argument in arguments]
    if name in _COMPARISONS:
        arguments = _record_keys(arguments, at=at)
    if name == "||":
        arguments = _concatenated(arguments, query)
    with with_position(at):
        found = _operator(name, _types(arguments))
    return _call(found, arguments, query, at=at)


def _concatenated(arguments: Sequence[Scalar], query: QueryContext) -> list[Scalar]:
    """A constant of no type beside a scalar is text: only beside an array could it be one."""
    typed = [argument.type for argument in arguments if not is_unknown(argument)]
    if len(typed) != 1 or typed[0].element is not None or typed[0] in (JSONB, BYTEA):
        return list(arguments)
    return [settle(argument, query.parameters) for argument in arguments]


def _record_keys(arguments: Sequence[Scalar], *, at: int) -> Sequence[Scalar]:
    """Rows are compared as values: field by field, where NULL is equal to NULL."""
    record = next((one.type for one in arguments if is_record(one.type)), None)
    if record is not None:
        arguments = [
            Literal(None, record) if is_unknown(one) and _is_null(one) else one for one in arguments
        ]
    if record is None or not all(is_record(argument.type) for argument in arguments):
        return arguments
    left, right = ([t for _, t in fields_of(argument.type)] for argument in arguments)
    if len(left) != len(right):
        raise DatatypeMismatch(
            "cannot compare record types with different numbers of columns",
            position=position_of(at),
        )
    for number, (one, other) in enumerate(zip(left, right, strict=True), start=1):
        if unmodified(one) != unmodified(other):
            raise DatatypeMismatch(
                f"cannot compare dissimilar column types {one} and {other} at record column"
                f" {number}",
                position=position_of(at),
            )
    return [Call(row_key_of(argument.type), (argument,), BYTEA) for argument in arguments]


def _is_null(scalar: Scalar) -> bool:
    return isinstance(scalar, Literal) and scalar.value is None


def comparison_operands(
    name: str, arguments: Sequence[Scalar], query: QueryContext, *, at: int
) -> list[Scalar]:
    """Both sides of a comparison in the types that it takes."""
    arguments = _record_keys([_current(argument, query) for argument in arguments], at=at)
    with with_position(at):
        found = _operator(name, _types(arguments))
    return coerced_arguments(found.arguments, arguments, query, at=at)


def _types(arguments: Sequence[Scalar]) -> tuple[SqlType, ...]:
    return tuple([argument.type for argument in arguments])


def _current(argument: Scalar, query: QueryContext) -> Scalar:
    """The argument; a parameter with the type that another use may have settled since."""
    if isinstance(argument, Parameter):
        return Parameter(argument.index, query.parameters.type_of(argument))
    return argument


def _call(
    found: Resolution[ScalarFunction], arguments: Sequence[Scalar], query: QueryContext, *, at: int
) -> Scalar:
    coerced = coerced_arguments(found.arguments, arguments, query, at=at)
    return Call(found.function, tuple(coerced), found.function.result)


def coerced_arguments(
    coercions: Sequence[Coercion], arguments: Sequence[Scalar], query: QueryContext, *, at: int
) -> list[Scalar]:
    """Arguments with the casts that the resolved function asks for."""
    coerced = []
    for argument, coercion in zip(arguments, coercions, strict=True):
        if is_unknown(argument):
            argument = coerce(argument, coercion.target, CastContext.IMPLICIT, query, at=at)
        for cast in coercion.casts:
            argument = cast.apply(argument, explicit=False)
        coerced.append(argument)
    return coerced


def comparison(name: str, left: Scalar, right: Scalar) -> Scalar:
    """A comparison of two values that are in the types it takes already."""
    wanted = (unmodified(left.type), unmodified(right.type))
    (row,) = (row for row in find_scalar(name) if row.arguments == wanted)
    return Call(row, (left, right), BOOL)


def is_function(name: str) -> bool:
    """Whether there is a function by this name, for whatever arguments."""
    return bool(find_scalar(name)) or name in _SESSION_NAMES or name in MADE_ONLY


def is_aggregate(name: str) -> bool:
    """Whether calls by this name are aggregates."""
    return bool(find_aggregate(name)) or name == "map_agg"


def aggregate_over(name: str, argument: SqlType | None) -> AggregateFunction:
    """The aggregate over exactly this type; None: over rows."""
    wanted = () if argument is None else (unmodified(argument),)
    (row,) = (row for row in find_aggregate(name) if row.arguments == wanted)
    return row


def bound_aggregate(
    name: str, arguments: Sequence[Scalar], query: QueryContext, *, at: int
) -> tuple[AggregateFunction, Scalar | None]:
    """The aggregate that these arguments mean, and its one argument; None: it counts rows.

    Several arguments, and NULLs that count, are packed into one value.
    """
    arguments = [_current(argument, query) for argument in arguments]
    with with_position(at):
        found = _aggregate(name, _types(arguments))
    coerced = coerced_arguments(found.arguments, arguments, query, at=at)
    pack = packing(found.function)
    if pack is not None:
        return found.function, Call(pack, tuple(coerced), pack.result)
    return found.function, coerced[0] if coerced else None


def session_call(name: str, arguments: Sequence[Scalar]) -> SessionCall | None:
    """A value fixed when the statement starts; None: this is not a name of one.

    An argument is a constant and part of the name: current_schemas(true).
    """
    match arguments:
        case []:
            key = name
        case [Literal(value=bool(value))]:
            key = f"{name}({str(value).lower()})"
        case _:
            return None
    sql_type = SESSION_CALLS.get(key)
    return None if sql_type is None else SessionCall(key, sql_type)


def call_quantified(
    operator: str, operands: Sequence[Scalar], query: QueryContext, *, every: bool, at: int
) -> Scalar:
    """`x op ANY (array)` or ALL: a search, or a comparison with each element that is known."""
    operand, array = (_current(operand, query) for operand in operands)
    if is_nested(array.type):
        array = call_function(FLATTEN, [array], query, at=at)
    if is_unknown(array) and not is_unknown(operand):
        wanted = array_of(unmodified(operand.type))
        array = coerce(array, wanted, CastContext.IMPLICIT, query, at=at)
    if operator == "=" and not every:
        return call_function("array_contains", [operand, array], query, at=at)
    if operator == "<>" and every:
        return negated(call_function("array_contains", [operand, array], query, at=at))
    elements = _elements(array)
    if elements is None:
        return _each_element(operator, operand, array, query, every=every, at=at)
    terms = [call_operator(operator, [operand, element], query, at=at) for element in elements]
    if not terms:
        return Literal(every, BOOL)
    return And(tuple(terms)) if every else Or(tuple(terms))


def _each_element(
    operator: str, operand: Scalar, array: Scalar, query: QueryContext, *, every: bool, at: int
) -> Scalar:
    """The operator as a function of the operand and of the whole array."""
    element = array.type.element
    if element is None or array.type.kind is not Kind.ARRAY:
        raise WrongObjectType(
            "op ANY/ALL (array) requires array on right side", position=position_of(at)
        )
    test = call_operator(operator, [operand, Literal(None, element)], query, at=at)
    if not isinstance(test, Call) or test.type != BOOL:
        raise WrongObjectType(
            "op ANY/ALL (array) requires operator to yield boolean", position=position_of(at)
        )
    asked = each_element(test.function, every)
    held = coerce(array, asked.arguments[1], CastContext.IMPLICIT, query, at=at)
    return Call(asked, (test.arguments[0], held), BOOL)


def _elements(array: Scalar) -> Sequence[Scalar] | None:
    """The elements of an array written out; None: they are not known here."""
    match array:
        case Call(function=ScalarFunction(name="array"), arguments=elements):
            return elements
        case Literal(value=tuple(values), type=SqlType(element=SqlType() as element)):
            return [Literal(value, element) for value in values]
        case _:
            return None
