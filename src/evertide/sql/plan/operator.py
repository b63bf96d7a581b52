"""Prefix and infix operators."""

from typing import Final

from evertide.expr.scalar import Scalar
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.function_call import call_operator
from evertide.sql.plan.literal import number
from evertide.sql.plan.row import bind_row_comparison
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import (
    Binary,
    Cast,
    NumberLiteral,
    RowConstructor,
    TypeName,
    Unary,
)
from evertide.vocab.errors import UndefinedFunction, UndefinedSchema

# The sign binds less than `::`, so that -32768::int2 would be beyond its type before it is turned
# around; there is nothing else that it could mean.
_LEAST: Final = {
    "32768": ("int2", "smallint"),
    "2147483648": ("int4", "int", "integer"),
    "9223372036854775808": ("int8", "bigint"),
}
_OPERATOR_SCHEMAS = ((), ("pg_catalog",), ("mz_catalog",))


def bind_unary(node: Unary, context: ExpressionContext) -> Scalar:
    """A sign before a number belongs to it: -2147483648 is an integer, 2147483648 is not."""
    _check_schema(node.schema, node.operator, node.at)
    if isinstance(node.operand, NumberLiteral) and node.operator in ("-", "+"):
        text = node.operand.text
        return number(f"-{text}" if node.operator == "-" else text, node.at)
    match node.operand:
        case Cast(operand=NumberLiteral(text=text), target=TypeName(parts=(*_, name))) as cast if (
            node.operator == "-" and name in _LEAST.get(text, ())
        ):
            least = Unary("-", cast.operand, at=node.at)
            return context.bind_node(Cast(least, cast.target, at=cast.at), context)
    operand = context.bind_node(node.operand, context)
    return call_operator(node.operator, [operand], context.query, at=node.at)


def bind_binary(node: Binary, context: ExpressionContext) -> Scalar:
    """An operator that the function table knows for the types of both sides."""
    _check_schema(node.schema, node.operator, node.at)
    if isinstance(node.left, RowConstructor) and isinstance(node.right, RowConstructor):
        return bind_row_comparison(node, node.left, node.right, context)
    left = context.bind_node(node.left, context)
    right = context.bind_node(node.right, context)
    return call_operator(node.operator, [left, right], context.query, at=node.at)


def _check_schema(schema: tuple[str, ...], operator: str, at: int) -> None:
    if schema in _OPERATOR_SCHEMAS:
        return
    if len(schema) > 1:
        raise UndefinedSchema(f"unknown schema '{'.'.join(schema)}'", position=position_of(at))
    raise UndefinedFunction(
        f"operator does not exist: {'.'.join(schema)}.{operator}", position=position_of(at)
    )
