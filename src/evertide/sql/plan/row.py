"""Rows compared field by field; a row as a value of its own is not supported."""

from evertide.expr.scalar import And, Or, Scalar
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.function_call import call_operator
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Binary, RowConstructor
from evertide.vocab.errors import FeatureNotSupported, SqlSyntaxError

# What decides the earlier fields of an ordering, and what the last one must satisfy.
_STRICT = {"<": "<", "<=": "<", ">": ">", ">=": ">"}


def bind_row_comparison(
    node: Binary, left: RowConstructor, right: RowConstructor, context: ExpressionContext
) -> Scalar:
    """`(a, b) = (c, d)`, also ordered comparisons, where earlier fields count more."""
    if len(left.fields) != len(right.fields):
        raise SqlSyntaxError(
            "unequal number of entries in row expressions", position=position_of(node.at)
        )
    pairs = [
        (context.bind(one), context.bind(two))
        for one, two in zip(left.fields, right.fields, strict=True)
    ]

    def compare(operator: str, pair: tuple[Scalar, Scalar]) -> Scalar:
        return call_operator(operator, pair, context.query, at=node.at)

    match node.operator:
        case "=":
            return _all([compare("=", pair) for pair in pairs])
        case "<>":
            return _any([compare("<>", pair) for pair in pairs])
        case "<" | "<=" | ">" | ">=":
            decided = compare(node.operator, pairs[-1])
            for pair in reversed(pairs[:-1]):
                equal = _all([compare("=", pair), decided])
                decided = _any([compare(_STRICT[node.operator], pair), equal])
            return decided
        case _:
            raise FeatureNotSupported(
                f"operator {node.operator} on rows is not supported", position=position_of(node.at)
            )


def _all(terms: list[Scalar]) -> Scalar:
    return terms[0] if len(terms) == 1 else And(tuple(terms))


def _any(terms: list[Scalar]) -> Scalar:
    return terms[0] if len(terms) == 1 else Or(tuple(terms))
