"""Rows that are written out, compared field by field, or counted."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final, TypeVar

from evertide.expr.functions.table import find_scalar
from evertide.expr.functions.type_groups import unmodified
from evertide.expr.scalar import And, Call, Literal, Or, Scalar
from evertide.sql.plan.coercion import settle
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.record import spread
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Binary, Expression, RowConstructor
from evertide.vocab.errors import FeatureNotSupported, SqlSyntaxError
from evertide.vocab.sql_type import BYTEA

T = TypeVar("T")

# What decides the earlier fields of an ordering, and what the last one must satisfy.
_STRICT = {"<": "<", "<=": "<", ">": ">", ">=": ">"}
# Rows of so many fields are compared one field after the other.
_FEW_FIELDS: Final = 8
ROW_OPERATORS = ("=", "<>", *_STRICT)


def bind_row_comparison(
    node: Binary, left: RowConstructor, right: RowConstructor, context: ExpressionContext
) -> Scalar:
    """`(a, b) = (c, d)`, also ordered comparisons, where earlier fields count more."""
    left, right = spread(left, context), spread(right, context)
    check_widths(left, right, node.at)
    if not left.fields:
        raise FeatureNotSupported(
            "comparing rows without fields is not supported", position=position_of(node.at)
        )
    pairs = list(zip(left.fields, right.fields, strict=True))

    def compare(operator: str, pair: tuple[Expression, Expression]) -> Scalar:
        return context.bind(Binary(operator, *pair, at=node.at))

    if node.operator not in ROW_OPERATORS:
        raise FeatureNotSupported(
            f"operator {node.operator} on rows is not supported", position=position_of(node.at)
        )
    return compared_rows(node.operator, pairs, compare)


def check_widths(left: RowConstructor, right: RowConstructor, at: int) -> None:
    """Rows that are compared have as many fields."""
    if len(left.fields) != len(right.fields):
        raise SqlSyntaxError(
            "unequal number of entries in row expressions", position=position_of(at)
        )


def compared_rows(
    operator: str, pairs: Sequence[tuple[T, T]], compare: Callable[[str, tuple[T, T]], Scalar]
) -> Scalar:
    """A comparison of rows, made of comparisons of their fields."""
    match operator:
        case "=":
            return _all([compare("=", pair) for pair in pairs])
        case "<>":
            return _any([compare("<>", pair) for pair in pairs])
        case _:
            made = cache(lambda name, index: compare(name, pairs[index]))
            return _ordered(operator, range(len(pairs)), made)


def _ordered(operator: str, fields: Sequence[int], compare: Callable[[str, int], Scalar]) -> Scalar:
    """The first fields decide, or they are equal and the others do.

    Wide rows are halved: the expression is then only as deep as the logarithm of their width.
    """
    if len(fields) == 1:
        return compare(operator, fields[0])
    middle = 1 if len(fields) <= _FEW_FIELDS else len(fields) // 2
    first, others = fields[:middle], fields[middle:]
    decided = _ordered(_STRICT[operator], first, compare)
    equal = [compare("=", field) for field in first]
    return _any([decided, And((*equal, _ordered(operator, others, compare)))])


def _all(terms: list[Scalar]) -> Scalar:
    return terms[0] if len(terms) == 1 else And(tuple(terms))


def _any(terms: list[Scalar]) -> Scalar:
    return terms[0] if len(terms) == 1 else Or(tuple(terms))


_KEYS = {key.arguments[0]: key for key in find_scalar("mz_key")}
(_JOINED,) = find_scalar("mz_joined_keys")


def row_key(row: RowConstructor, context: ExpressionContext) -> Scalar:
    """One value for all fields: equal for rows that are, and never NULL, as no row is."""
    parameters = context.query.parameters
    keys = [
        _field_key(settle(context.bind(field), parameters), field.at)
        for field in _fields(row, context)
    ]
    return _joined_keys(keys)


def key_of(values: Sequence[Scalar], at: int) -> Scalar:
    """The same for values; NULL is equal to NULL."""
    return _joined_keys([_field_key(value, at) for value in values])


def _joined_keys(keys: Sequence[Scalar]) -> Scalar:
    return Call(_JOINED, tuple(keys), BYTEA) if keys else Literal(b"", BYTEA)


def _fields(row: RowConstructor, context: ExpressionContext) -> Iterator[Expression]:
    """Rows within are taken apart too: all that are counted together have one shape."""
    for one in spread(row, context).fields:
        if isinstance(one, RowConstructor):
            yield from _fields(one, context)
        else:
            yield one


def _field_key(value: Scalar, at: int) -> Scalar:
    key = _KEYS.get(unmodified(value.type))
    if key is None:
        raise FeatureNotSupported(
            f"a row with a field of type {value.type} is not supported", position=position_of(at)
        )
    return Call(key, (value,), BYTEA)
