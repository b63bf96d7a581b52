"""Boolean forms: AND, OR, NOT, IS, BETWEEN, IN lists, LIKE."""

from collections.abc import Sequence
from dataclasses import replace

from evertide.expr import scalar as typed
from evertide.expr.functions.record import is_record
from evertide.expr.scalar import Scalar
from evertide.sql.plan.coercion import settle, to_boolean, unify
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.function_call import call_function, call_operator, negated
from evertide.sql.plan.literal_list import member_of
from evertide.sql.plan.place import start_of
from evertide.sql.plan.record import all_fields, spread, written_out
from evertide.sql.plan.row import bind_row_comparison, check_widths
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import (
    And,
    Between,
    Binary,
    Expression,
    InList,
    IsDistinct,
    IsTest,
    Not,
    NullLiteral,
    Or,
    PatternMatch,
    RowConstructor,
)
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.vocab.errors import DatatypeMismatch, FeatureNotSupported
from evertide.vocab.sql_type import BOOL


def bind_junction(node: And | Or | Not, context: ExpressionContext) -> Scalar:
    """Arguments of AND, OR and NOT must be booleans; chains arrive as one node."""
    if isinstance(node, Not):
        return negated(_boolean(node.operand, "NOT", context))
    what = "AND" if isinstance(node, And) else "OR"
    terms = []
    for term in node.terms:
        terms.append(_boolean(term, what, context))
    return typed.And(tuple(terms)) if isinstance(node, And) else typed.Or(tuple(terms))


def _boolean(node: Expression, what: str, context: ExpressionContext) -> Scalar:
    bound = context.bind_node(node, context)
    return to_boolean(bound, what, context.query, at=start_of(node))


def bind_test(node: IsTest, context: ExpressionContext) -> Scalar:
    """IS NULL, TRUE, FALSE, UNKNOWN: never NULL themselves."""
    bound = context.bind_node(node.operand, context)
    if node.test == "NULL":
        value = settle(bound, context.query.parameters)
        if is_record(value.type):
            return _all_fields_test(value, absent=not node.negated)
        test: Scalar = typed.IsNull(value)
    else:
        operand = to_boolean(bound, f"IS {node.test}", context.query, at=start_of(node.operand))
        test = _truth_test(operand, node, context)
    return negated(test) if node.negated else test


def _all_fields_test(row: Scalar, *, absent: bool) -> Scalar:
    """A row is NULL if all its fields are, and NOT NULL if none is: it may be neither."""
    fields = [typed.IsNull(field) for field in all_fields(row)]
    itself = () if written_out(row) is not None else (typed.IsNull(row),)
    if absent:
        return typed.Or((*itself, _every(fields)))
    return _every([negated(field) for field in (*itself, *fields)])


def _every(tests: Sequence[Scalar]) -> Scalar:
    if not tests:
        return typed.Literal(True, BOOL)
    return tests[0] if len(tests) == 1 else typed.And(tuple(tests))


def _truth_test(operand: Scalar, node: IsTest, context: ExpressionContext) -> Scalar:
    if node.test == "UNKNOWN":
        return typed.IsNull(operand)
    name = "is_true" if node.test == "TRUE" else "is_false"
    return call_function(name, [operand], context.query, at=node.at)


def bind_distinct(node: IsDistinct, context: ExpressionContext) -> Scalar:
    """IS DISTINCT FROM: inequality for which NULL is a value like any other."""
    distinct = _distinct(node.left, node.right, node.at, context)
    return negated(distinct) if node.negated else distinct


def _distinct(left: Expression, right: Expression, at: int, context: ExpressionContext) -> Scalar:
    """Rows that are written out differ if any of their fields do."""
    if not (isinstance(left, RowConstructor) and isinstance(right, RowConstructor)):
        pair = [context.bind_node(left, context), context.bind_node(right, context)]
        return call_operator("is_distinct_from", pair, context.query, at=at)
    left, right = spread(left, context), spread(right, context)
    check_widths(left, right, at)
    fields = zip(left.fields, right.fields, strict=True)
    tests = [_distinct(one, other, at, context) for one, other in fields]
    return typed.Or(tuple(tests)) if tests else typed.Literal(False, BOOL)


def bind_between(node: Between, context: ExpressionContext) -> Scalar:
    """`x BETWEEN a AND b` is two comparisons; NOT turns each of them round."""
    if isinstance(node.operand, RowConstructor):
        found = _row_between(node, context)
        return negated(found) if node.negated else found
    operand = context.bind(node.operand)
    low, high = context.bind(node.low), context.bind(node.high)

    def within(lower: Scalar, upper: Scalar) -> Scalar:
        above = call_operator(">=", [operand, lower], context.query, at=node.at)
        below = call_operator("<=", [operand, upper], context.query, at=node.at)
        return typed.And((above, below))

    found = within(low, high)
    if node.symmetric:
        found = typed.Or((found, within(high, low)))
    return negated(found) if node.negated else found


def _row_between(node: Between, context: ExpressionContext) -> Scalar:
    def within(lower: Expression, upper: Expression) -> Scalar:
        above = context.bind(Binary(">=", node.operand, lower, at=node.at))
        return typed.And((above, context.bind(Binary("<=", node.operand, upper, at=node.at))))

    found = within(node.low, node.high)
    return typed.Or((found, within(node.high, node.low))) if node.symmetric else found


def bind_in_list(node: InList, context: ExpressionContext) -> Scalar:
    """`x IN (a, b)`: an OR of equalities, all in one type where there is one.

    A long list of constants is one constant, in which the operand is looked for.
    """
    if isinstance(node.items, LiteralValues):
        found = member_of(node.operand, node.items, context)
        if found is not None:
            return negated(found) if node.negated else found
        node = replace(node, items=node.items.nodes())
    assert isinstance(node.items, tuple), "constants are nodes by now"
    if isinstance(node.operand, RowConstructor):
        terms = _row_terms(node.items, node, node.operand, context)
    else:
        terms = _terms(node.items, node, context)
    found = terms[0] if len(terms) == 1 else typed.Or(tuple(terms))
    return negated(found) if node.negated else found


def _terms(members: Sequence[Expression], node: InList, context: ExpressionContext) -> list[Scalar]:
    """PostgreSQL's rule: one common type for operand and items, or else each pair its own."""
    bound = [context.bind(part) for part in (node.operand, *members)]
    ats = [start_of(part) for part in (node.operand, *members)]
    try:
        (operand, *items), _ = unify(bound, "IN", context.query, ats=ats)
    except DatatypeMismatch:
        operand, *items = bound
    return [call_operator("=", [operand, item], context.query, at=node.at) for item in items]


def _row_terms(
    members: Sequence[Expression], node: InList, row: RowConstructor, context: ExpressionContext
) -> list[Scalar]:
    terms: list[Scalar] = []
    for item in members:
        if isinstance(item, NullLiteral):
            terms.append(typed.Literal(None, BOOL))
            continue
        if not isinstance(item, RowConstructor):
            raise FeatureNotSupported(
                "comparing a row with a single value is not supported",
                position=position_of(item.at),
            )
        equality = Binary("=", row, item, at=node.at)
        terms.append(bind_row_comparison(equality, row, item, context))
    return terms


def bind_pattern(node: PatternMatch, context: ExpressionContext) -> Scalar:
    """LIKE and ILIKE are operators; ESCAPE rewrites the pattern first."""
    if node.kind == "SIMILAR TO":
        raise FeatureNotSupported(
            "SIMILAR TO is not supported",
            hint="Use LIKE, or a regular expression with the operator ~.",
            position=position_of(node.at),
        )
    operand, pattern = context.bind(node.operand), context.bind(node.pattern)
    if node.escape is not None:
        rewritten = [pattern, context.bind(node.escape)]
        pattern = call_function("like_escape", rewritten, context.query, at=node.at)
    operator = ("!" if node.negated else "") + ("~~" if node.kind == "LIKE" else "~~*")
    return call_operator(operator, [operand, pattern], context.query, at=node.at)
