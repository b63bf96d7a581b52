"""Scalars as pairs of Spark SQL expressions: the value, and the error.

The value counts only where the error is NULL; elsewhere it may be anything. Spark may look at
either for any row and in any order, so neither may ever fail: what the function table says of a
lowering is exactly that.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from evertide.expr.functions.row import ScalarFunction
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
from evertide.expr.scalar_walk import children, may_raise
from evertide.spark.render.text import TextBuilder

_ARGUMENT = re.compile(r"\{(\d+)\}")
# A text repeats its arguments, so deep trees could grow without bound; parameters cost time.
# What is larger than this is cheaper as a Python function.
MAX_TEXT_LENGTH = 20_000
MAX_LITERALS = 100
_LEAF_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Pair:
    """`error` None: the scalar cannot fail."""

    value: str
    error: str | None = None


def has_lowering(scalars: Sequence[Scalar]) -> bool:
    """Whether Spark can compute all of these by itself, at a reasonable length."""
    literals = 0
    pending = list(scalars)
    while pending:
        scalar = pending.pop()
        literals += isinstance(scalar, Literal)
        if isinstance(scalar, Call) and not _is_lowered(scalar.function):
            return False
        pending.extend(children(scalar))
    if literals > MAX_LITERALS:
        return False
    return sum(sum(_lengths(scalar)) for scalar in scalars) <= MAX_TEXT_LENGTH


def render_scalar(builder: TextBuilder, scalar: Scalar) -> Pair:
    """The scalar over columns c0..cN; every function in it must have a lowering."""
    match scalar:
        case ColumnRef(index=index):
            return Pair(f"c{index}")
        case Literal(value=value, type=sql_type):
            return Pair(builder.literal(sql_type, value))
        case Call():
            return _render_call(builder, scalar)
        case And(arguments):
            return _render_junction(_pairs(builder, arguments), "AND", decisive="FALSE")
        case Or(arguments):
            return _render_junction(_pairs(builder, arguments), "OR", decisive="TRUE")
        case Case():
            return _render_case(builder, scalar)
        case Coalesce(arguments=arguments):
            return _render_coalesce(_pairs(builder, arguments))
        case IsNull(argument):
            inner = render_scalar(builder, argument)
            return Pair(f"({inner.value} IS NULL)", inner.error)
        case OuterColumn() | Parameter() | SessionCall():
            raise AssertionError(f"{scalar} must be substituted before anything runs")
        case _:
            assert_never(scalar)


def render_conjunction(builder: TextBuilder, predicates: Sequence[Scalar]) -> Pair:
    """All predicates as one And; none at all is true."""
    if not predicates:
        return Pair("TRUE")
    return _render_junction(_pairs(builder, predicates), "AND", decisive="FALSE")


def first_error(errors: Sequence[str | None]) -> str | None:
    """The first of these that is an error."""
    possible = [error for error in errors if error is not None]
    if not possible:
        return None
    return possible[0] if len(possible) == 1 else f"coalesce({', '.join(possible)})"


def _is_lowered(function: ScalarFunction) -> bool:
    if function.spark is None or function.variadic:
        return False
    return not function.fallible or function.spark_error is not None


def _pairs(builder: TextBuilder, scalars: Sequence[Scalar]) -> list[Pair]:
    return [render_scalar(builder, scalar) for scalar in scalars]


def _lengths(scalar: Scalar) -> tuple[int, int]:
    """About how long the texts of value and error would be, found without making them."""
    parts = [_lengths(part) for part in children(scalar)]
    values, errors = sum(value for value, _ in parts), sum(error for _, error in parts)
    if not parts:
        return _LEAF_LENGTH, 0
    if isinstance(scalar, Call):
        assert scalar.function.spark is not None, "looked at only where there is a lowering"
        value = _filled_length(scalar.function.spark, parts)
        own = scalar.function.spark_error
        return value, errors + (0 if own is None else _filled_length(own, parts))
    # Each part's value and error may appear twice in a combined error.
    return values + errors + _LEAF_LENGTH, 2 * (values + errors) if errors else 0


def _filled_length(template: str, parts: Sequence[tuple[int, int]]) -> int:
    used = [int(number) for number in _ARGUMENT.findall(template)]
    return len(template) + sum(parts[number][0] for number in used)


def _render_call(builder: TextBuilder, call: Call) -> Pair:
    """The error of the first failing argument, else the function's own."""
    function = call.function
    assert function.spark is not None, f"{function} has no lowering"
    arguments = _pairs(builder, call.arguments)
    values = [argument.value for argument in arguments]
    errors = [argument.error for argument in arguments]
    if function.spark_error is not None and may_raise(call):
        assert function.error is not None, f"{function} has no error"
        condition = _filled(function.spark_error, values)
        errors.append(f"IF({condition}, {builder.bind(function.error, 'string')}, NULL)")
    return Pair(f"({_filled(function.spark, values)})", first_error(errors))


def _filled(template: str, values: Sequence[str]) -> str:
    return _ARGUMENT.sub(lambda found: values[int(found.group(1))], template)


def _render_junction(arguments: Sequence[Pair], word: str, *, decisive: str) -> Pair:
    """A deciding argument wins over errors of the others, wherever it stands."""
    values = [_masked(argument) for argument in arguments]
    value = f"({f' {word} '.join(values)})"
    errors = [argument.error for argument in arguments if argument.error is not None]
    if not errors:
        return Pair(value)
    decided = " OR ".join(f"({v} IS {decisive})" for v in values)
    least = errors[0] if len(errors) == 1 else f"least({', '.join(errors)})"
    return Pair(value, f"IF({decided}, NULL, {least})")


def _masked(pair: Pair) -> str:
    return pair.value if pair.error is None else f"IF({pair.error} IS NULL, {pair.value}, NULL)"


def _render_case(builder: TextBuilder, case: Case) -> Pair:
    """Branches not taken cannot fail; a condition that fails ends the search."""
    branches = [
        (render_scalar(builder, condition), render_scalar(builder, value))
        for condition, value in case.branches
    ]
    otherwise = render_scalar(builder, case.otherwise)
    chosen = " ".join(f"WHEN {c.value} THEN {v.value}" for c, v in branches)
    value = f"(CASE {chosen} ELSE {otherwise.value} END)"
    if all(c.error is None and v.error is None for c, v in branches) and otherwise.error is None:
        return Pair(value)
    tests = [test for condition, result in branches for test in _case_errors(condition, result)]
    return Pair(value, f"(CASE {' '.join(tests)} ELSE {otherwise.error or 'NULL'} END)")


def _case_errors(condition: Pair, result: Pair) -> list[str]:
    failed = [] if condition.error is None else [_when_failed(condition.error)]
    return [*failed, f"WHEN {condition.value} THEN {result.error or 'CAST(NULL AS string)'}"]


def _when_failed(error: str) -> str:
    return f"WHEN {error} IS NOT NULL THEN {error}"


def _render_coalesce(arguments: Sequence[Pair]) -> Pair:
    """Arguments after the first value cannot fail; a failure before it counts."""
    value = f"coalesce({', '.join(argument.value for argument in arguments)})"
    if all(argument.error is None for argument in arguments):
        return Pair(value)
    tests = []
    for argument in arguments:
        if argument.error is not None:
            tests.append(_when_failed(argument.error))
        tests.append(f"WHEN {argument.value} IS NOT NULL THEN CAST(NULL AS string)")
    return Pair(value, f"(CASE {' '.join(tests)} END)")
