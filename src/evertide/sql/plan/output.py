"""The output columns of a SELECT, and the clauses that may name them: ORDER BY, GROUP BY."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evertide.expr.scalar import Literal, Parameter, Scalar
from evertide.sql.plan.coercion import settle
from evertide.sql.plan.expression import refer
from evertide.sql.plan.expression_context import Clause, ExpressionContext
from evertide.sql.plan.naming import column_name
from evertide.sql.plan.parameters import Parameters
from evertide.sql.plan.record import bind_fields
from evertide.sql.plan.scope import expand_star, find_column, has_column
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import (
    BooleanLiteral,
    Expression,
    Name,
    NullLiteral,
    NumberLiteral,
    RowConstructor,
    RowStar,
    Star,
    StringLiteral,
)
from evertide.sql.syntax.query import SelectItem
from evertide.vocab.errors import (
    AmbiguousColumn,
    InvalidColumnReference,
    SqlError,
    SqlSyntaxError,
)
from evertide.vocab.sql_type import TEXT, Kind, SqlType


@dataclass(frozen=True, slots=True)
class OutputItem:
    """One output column. `node` is None for a column of `*`."""

    name: str
    scalar: Scalar
    node: Expression | None
    # A column of type int2vector or oidvector: clients get those as words, not as an array.
    vector: bool = False

    @property
    def untyped(self) -> Literal | Parameter | None:
        """The constant itself if nothing has given it a type yet."""
        match self.scalar:
            case Literal(type=SqlType(kind=Kind.UNKNOWN)) as literal:
                return literal
            case Parameter(type=SqlType(kind=Kind.UNKNOWN)) as parameter:
                return parameter
            case _:
                return None


def bind_items(
    items: Sequence[SelectItem], context: ExpressionContext, *, from_nothing: bool = False
) -> list[OutputItem]:
    """The output columns, stars expanded; `from_nothing`: there is no FROM to expand them by."""
    found: list[OutputItem] = []
    for item in items:
        match item.expression:
            case Star() as star:
                if from_nothing and not star.qualifier:
                    raise SqlSyntaxError(
                        "SELECT * with no tables specified is not valid",
                        position=position_of(star.at),
                    )
                found += _starred(star, context)
            case RowStar() as row:
                found += [
                    OutputItem(name, field, None) for name, field in bind_fields(row, context)
                ]
            case node:
                scalar = context.bind(node)
                found.append(OutputItem(column_name(item), scalar, node, _is_vector(node, context)))
    return found


def _is_vector(node: Expression, context: ExpressionContext) -> bool:
    """Whether it is a column whose elements are counted from 0."""
    if not isinstance(node, Name):
        return False
    try:
        return find_column(node, (context.scope,))[1].from_zero
    except SqlError:
        return False  # the name of something else


def _starred(star: Star, context: ExpressionContext) -> list[OutputItem]:
    columns = expand_star(star, context.scope)
    return [
        OutputItem(column.name, refer(column, context, star.at), None, column.from_zero)
        for column in columns
    ]


def bind_key(
    node: Expression, items: Sequence[OutputItem], context: ExpressionContext
) -> int | Scalar:
    """A key of ORDER BY or DISTINCT ON: the position of an output column, or an expression.

    A bare name means an output column first: that is SQL's older rule.
    """
    position = _ordinal(node, items, context.clause)
    if position is not None:
        return position
    if isinstance(node, Name) and len(node.parts) == 1:
        position = _output_named(node, items)
        if position is not None:
            return position
    return settle(context.bind(node), context.query.parameters)


def group_keys(nodes: Sequence[Expression]) -> Iterator[Expression]:
    """The keys of GROUP BY: `(a, b)` is two of them."""
    for node in nodes:
        if isinstance(node, RowConstructor) and node.fields:
            yield from group_keys(node.fields)
        else:
            yield node


def bind_group_key(
    node: Expression, items: Sequence[OutputItem], context: ExpressionContext
) -> Scalar:
    """A key of GROUP BY. A bare name means an input column first, then an output column.

    An output column is planned again from its text: as a key it must not hold aggregates.
    """
    position = _ordinal(node, items, context.clause)
    match node:
        case Name(parts=(bare,)) if not has_column(bare, context.scope):
            position = _output_named(node, items)
        case _:
            pass
    if position is None:
        return settle(context.bind(node), context.query.parameters)
    item = items[position]
    scalar = item.scalar if item.node is None else context.bind(item.node)
    return settle(scalar, context.query.parameters)


def _ordinal(node: Expression, items: Sequence[OutputItem], clause: Clause) -> int | None:
    match node:
        case NumberLiteral(text=text) if text.isdecimal():
            number = int(text)
            if not 1 <= number <= len(items):
                raise InvalidColumnReference(
                    f"column reference {number} in {clause.place} is out of range"
                    f" (1 - {len(items)})",
                    position=position_of(node.at),
                )
            return number - 1
        case NumberLiteral() | StringLiteral() | BooleanLiteral() | NullLiteral():
            raise SqlSyntaxError(f"non-integer constant in {clause}", position=position_of(node.at))
        case _:
            return None


def _output_named(name: Name, items: Sequence[OutputItem]) -> int | None:
    """The output column with this name. Two are fine if they are the same expression."""
    found = [i for i, item in enumerate(items) if item.name == name.parts[0]]
    if len({items[i].scalar for i in found}) > 1:
        raise AmbiguousColumn(
            f'column reference "{name.parts[0]}" is ambiguous', position=position_of(name.at)
        )
    return found[0] if found else None


def output_scalars(
    items: Sequence[OutputItem], parameters: Parameters, *, keep_untyped: bool
) -> tuple[list[Scalar], dict[int, Literal | Parameter]]:
    """The items' scalars, and with `keep_untyped` the constants of no type by position.

    Such constants are text in the relation. A parameter is not even settled then: whoever takes
    the query in may give it a better type, so NULL stands in its place.
    """
    scalars: list[Scalar] = []
    untyped: dict[int, Literal | Parameter] = {}
    for index, item in enumerate(items):
        constant = item.untyped
        if constant is None or not keep_untyped:
            scalars.append(settle(item.scalar, parameters))
            continue
        untyped[index] = constant
        value = constant.value if isinstance(constant, Literal) else None
        scalars.append(Literal(value, TEXT))
    return scalars, untyped
