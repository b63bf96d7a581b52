"""Scalars as Python closures: the tree is looked at once, not once per row.

Closures, not generated code: nothing a user wrote is ever executed as Python. The common shapes,
calls over columns and literals, get closures of their own, which saves a call per argument.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TypeAlias, assert_never

from evertide.expr.scalar import (
    And,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    IsNull,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    Scalar,
    SessionCall,
)
from evertide.expr.scalar_walk import is_fallible
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError, encode_error

Evaluate: TypeAlias = Callable[[Row], Datum]


def compile_scalar(scalar: Scalar) -> Evaluate:
    """A function from a row to the scalar's value; it raises SqlError where the scalar fails."""
    match scalar:
        case ColumnRef(index=index):
            return itemgetter(index)
        case Literal(value=value):
            return lambda _row: value
        case Call():
            return _compile_call(scalar)
        case And(arguments):
            return _compile_junction(arguments, decisive=False)
        case Or(arguments):
            return _compile_junction(arguments, decisive=True)
        case Case():
            return _compile_case(scalar)
        case Coalesce(arguments=arguments):
            return _compile_coalesce(arguments)
        case IsNull(argument):
            inner = compile_scalar(argument)
            return lambda row: inner(row) is None
        case OuterColumn() | Parameter() | SessionCall():
            raise AssertionError(f"{scalar} must be substituted before anything runs")
        case _:
            assert_never(scalar)


def compile_predicates(predicates: Sequence[Scalar]) -> Callable[[Row], bool]:
    """Whether all predicates are true, by the rules of one And.

    Where none can fail it does not matter whether a predicate is false or NULL, nor in which order
    they are looked at, so the first that is not true decides.
    """
    compiled = tuple(compile_scalar(predicate) for predicate in predicates)
    if len(compiled) == 1:
        only = compiled[0]
        return lambda row: only(row) is True
    if any(is_fallible(predicate) for predicate in predicates):
        junction = _junction(compiled, decisive=False)
        return lambda row: junction(row) is True

    def all_true(row: Row) -> bool:
        for evaluate in compiled:  # noqa: SIM110  # all() would cost a generator per row
            if evaluate(row) is not True:
                return False
        return True

    return all_true


def _compile_call(call: Call) -> Evaluate:
    body = call.function.body
    arguments = tuple(compile_scalar(argument) for argument in call.arguments)
    if not call.function.strict:
        return lambda row: body(*[evaluate(row) for evaluate in arguments])
    match len(arguments):
        case 0:
            return lambda _row: body()
        case 1:
            return _strict_unary(body, call.arguments[0], arguments[0])
        case 2:
            return _strict_binary(body, call.arguments, arguments)

    def strict(row: Row) -> Datum:
        values = [evaluate(row) for evaluate in arguments]
        return None if None in values else body(*values)

    return strict


def _strict_unary(body: Callable[..., Datum], argument: Scalar, inner: Evaluate) -> Evaluate:
    if isinstance(argument, ColumnRef):
        index = argument.index

        def of_column(row: Row) -> Datum:
            value = row[index]
            return None if value is None else body(value)

        return of_column

    def unary(row: Row) -> Datum:
        value = inner(row)
        return None if value is None else body(value)

    return unary


def _strict_binary(
    body: Callable[..., Datum], scalars: Sequence[Scalar], arguments: Sequence[Evaluate]
) -> Evaluate:
    match scalars:
        case [ColumnRef(index=left), ColumnRef(index=right)]:
            return _column_column(body, left, right)
        case [ColumnRef(index=left), Literal(value=value)] if value is not None:
            return _column_literal(body, left, value)
        case [Literal(value=value), ColumnRef(index=right)] if value is not None:
            return _literal_column(body, value, right)
    first, second = arguments

    def binary(row: Row) -> Datum:
        one = first(row)
        # Looked at even if `one` is NULL: its error counts.
        two = second(row)
        return None if one is None or two is None else body(one, two)

    return binary


def _column_column(body: Callable[..., Datum], left: int, right: int) -> Evaluate:
    def column_column(row: Row) -> Datum:
        one = row[left]
        two = row[right]
        return None if one is None or two is None else body(one, two)

    return column_column


def _column_literal(body: Callable[..., Datum], left: int, value: Datum) -> Evaluate:
    def column_literal(row: Row) -> Datum:
        one = row[left]
        return None if one is None else body(one, value)

    return column_literal


def _literal_column(body: Callable[..., Datum], value: Datum, right: int) -> Evaluate:
    def literal_column(row: Row) -> Datum:
        two = row[right]
        return None if two is None else body(value, two)

    return literal_column


def _compile_junction(arguments: Sequence[Scalar], *, decisive: bool) -> Evaluate:
    return _junction(tuple(compile_scalar(argument) for argument in arguments), decisive=decisive)


def _junction(arguments: Sequence[Evaluate], *, decisive: bool) -> Evaluate:
    """And (false decides) or Or (true decides).

    A deciding argument wins over errors of the others, wherever it stands, so an error is only
    remembered; the least one is raised in the end.
    """

    def junction(row: Row) -> Datum:
        unknown = False
        failure: SqlError | None = None
        for evaluate in arguments:
            try:
                value = evaluate(row)
            except SqlError as error:
                failure = error if failure is None else min(failure, error, key=encode_error)
                continue
            if value is decisive:
                return decisive
            if value is None:
                unknown = True
        if failure is not None:
            raise failure
        return None if unknown else not decisive

    return junction


def _compile_case(case: Case) -> Evaluate:
    branches = tuple(
        (compile_scalar(condition), compile_scalar(value)) for condition, value in case.branches
    )
    otherwise = compile_scalar(case.otherwise)

    def choose(row: Row) -> Datum:
        for condition, value in branches:
            if condition(row) is True:
                return value(row)
        return otherwise(row)

    return choose


def _compile_coalesce(arguments: Sequence[Scalar]) -> Evaluate:
    compiled = tuple(compile_scalar(argument) for argument in arguments)

    def first_value(row: Row) -> Datum:
        for evaluate in compiled:
            value = evaluate(row)
            if value is not None:
                return value
        return None

    return first_value
