"""Queries as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from evertide.sql.printer import expression, show
from evertide.sql.printer.names import columns, data_type, name, quote_ident
from evertide.sql.syntax.expression import Expression
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import (
    CommonTable,
    FunctionTable,
    Join,
    JoinConstraint,
    JoinNatural,
    JoinOn,
    JoinUsing,
    OrderItem,
    Query,
    QueryBody,
    Select,
    SelectItem,
    SetOperation,
    ShowTable,
    Subquery,
    TableAlias,
    TableExpression,
    TableRef,
    Values,
    With,
)

_AFTER_WITH = frozenset({"RECURSIVE"})


def query(node: Query) -> str:
    text = _body(node.body)
    if isinstance(node.body, Query):
        text = f"({text})"
    if node.with_ is not None:
        text = f"{with_(node.with_)} {text}"
    return " ".join([text + order_by(node.order_by), *limits(node)])


def limits(node: Query) -> Iterator[str]:
    """The clauses that say how many rows, and from which on."""
    if node.limit is not None:
        yield f"LIMIT {expression.expression(node.limit)}"
    if node.offset is not None:
        yield f"OFFSET {expression.expression(node.offset)}"


def with_(node: With) -> str:
    """The clause in front of a query."""
    return f"{with_head(node)} {', '.join([common_table(table) for table in node.tables])}"


def with_head(node: With) -> str:
    """The words before the names."""
    words = ["WITH"]
    if node.mutually:
        words.append("MUTUALLY RECURSIVE")
    elif node.recursive:
        words.append("RECURSIVE")
    if node.limit is not None:
        words.append(f"({node.limit.action} AT RECURSION LIMIT {node.limit.iterations})")
    return " ".join(words)


def common_table(node: CommonTable) -> str:
    return f"{common_head(node)} AS ({query(node.query)})"


def common_head(node: CommonTable) -> str:
    """A name of a WITH list with its columns."""
    label, shown = quote_ident(node.name, _AFTER_WITH), columns(node.columns)
    if node.types:
        typed = zip(node.columns, node.types, strict=True)
        shown = f" ({', '.join([f'{quote_ident(c)} {data_type(t)}' for c, t in typed])})"
    return f"{label}{shown}"


def order_by(items: tuple[OrderItem, ...]) -> str:
    """The clause with a blank before it, or nothing."""
    return " ORDER BY " + ", ".join([order_item(item) for item in items]) if items else ""


def order_item(node: OrderItem) -> str:
    text = expression.expression(node.expression) + (" DESC" if node.descending else "")
    if node.nulls_first is None:
        return text
    return text + (" NULLS FIRST" if node.nulls_first else " NULLS LAST")


def _body(node: QueryBody) -> str:
    match node:
        case Select():
            return _select(node)
        case Values():
            return f"VALUES {', '.join(map(values_row, node.rows))}"
        case LiteralValues():
            return _literal_values(node)
        case SetOperation():
            word = f" {node.operator} ALL " if node.all_ else f" {node.operator} "
            return word.join([_input(node, index) for index in range(len(node.inputs))])
        case Query():
            return query(node)
        case _:
            assert_never(node)


def values_row(row: tuple[Expression, ...]) -> str:
    return f"({expression.expressions(row)})"


def _input(node: SetOperation, index: int) -> str:
    """One operand. A nested operation may stand bare if it would be grouped that way anyhow."""
    operand = node.inputs[index]
    text = _body(operand)
    match operand:
        case SetOperation():
            tighter = operand.operator == "INTERSECT" and node.operator != "INTERSECT"
            same_level = (operand.operator == "INTERSECT") == (node.operator == "INTERSECT")
            same = (operand.operator, operand.all_) == (node.operator, node.all_)
            bare = tighter or (index == 0 and same_level and not same)
            return text if bare else f"({text})"
        case Query():
            return f"({text})"
        case _:
            return text


def _literal_values(node: LiteralValues) -> str:
    rows = [
        "(" + ", ".join([expression.literal(*cell) for cell in row]) + ")" for row in node.rows()
    ]
    return f"VALUES {', '.join(rows)}"


def _select(node: Select) -> str:
    words = ["SELECT"]
    if node.distinct_on:
        words.append(f"DISTINCT ON ({expression.expressions(node.distinct_on)})")
    elif node.distinct:
        words.append("DISTINCT")
    if node.items:
        words.append(select_items(node.items))
    if node.from_:
        words.append("FROM " + tables(node.from_))
    if node.where is not None:
        words.append("WHERE " + expression.expression(node.where))
    if node.group_by:
        words.append("GROUP BY " + expression.expressions(node.group_by))
    if node.having is not None:
        words.append("HAVING " + expression.expression(node.having))
    if node.windows:
        windows = [
            f"{quote_ident(item.name)} AS {expression.window(item.window)}" for item in node.windows
        ]
        words.append("WINDOW " + ", ".join(windows))
    return " ".join(words)


def select_items(items: tuple[SelectItem, ...]) -> str:
    return ", ".join([_select_item(item) for item in items])


def _select_item(node: SelectItem) -> str:
    text = expression.expression(node.expression)
    return text if node.alias is None else f"{text} AS {quote_ident(node.alias)}"


def tables(nodes: tuple[TableExpression, ...]) -> str:
    return ", ".join([table(node) for node in nodes])


def table(node: TableExpression) -> str:
    match node:
        case TableRef():
            return name(node.name) + _alias(node.alias)
        case Subquery():
            lateral = "LATERAL " if node.lateral else ""
            return f"{lateral}({query(node.query)}){_alias(node.alias)}"
        case FunctionTable():
            return _function_table(node)
        case ShowTable():
            return f"({show.show(node.show)}){_alias(node.alias)}"
        case Join():
            text = _join(node)
            return text if node.alias is None else f"({text}){_alias(node.alias)}"
        case _:
            assert_never(node)


def _alias(node: TableAlias | None) -> str:
    return "" if node is None else f" AS {quote_ident(node.name)}{columns(node.columns)}"


def _function_table(node: FunctionTable) -> str:
    text = ", ".join([expression.call(call) for call in node.calls])
    if len(node.calls) > 1:
        text = f"ROWS FROM ({text})"
    if node.lateral:
        text = f"LATERAL {text}"
    return text + (" WITH ORDINALITY" if node.with_ordinality else "") + _alias(node.alias)


def _join(node: Join) -> str:
    right = table(node.right)
    if isinstance(node.right, Join) and node.right.alias is None:
        right = f"({right})"
    kind = "JOIN" if node.kind == "INNER" else f"{node.kind} JOIN"
    if isinstance(node.constraint, JoinNatural):
        kind = f"NATURAL {kind}"
    return f"{table(node.left)} {kind} {right}{_constraint(node.constraint)}"


def _constraint(node: JoinConstraint | None) -> str:
    match node:
        case JoinOn():
            return f" ON {expression.expression(node.condition)}"
        case JoinUsing():
            alias = "" if node.alias is None else f" AS {quote_ident(node.alias)}"
            return f" USING{columns(node.columns)}{alias}"
        case JoinNatural() | None:
            return ""
        case _:
            assert_never(node)
