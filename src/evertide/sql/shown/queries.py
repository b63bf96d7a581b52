"""Where queries may be broken into lines."""

from typing import assert_never

from evertide.sql.printer import expression
from evertide.sql.printer.names import columns, quote_ident
from evertide.sql.printer.query import (
    common_head,
    limits,
    order_item,
    query,
    table,
    values_row,
    with_head,
)
from evertide.sql.shown.layout import EMPTY, LINE, Doc, Group, Nested, separated, titled
from evertide.sql.syntax.query import (
    CommonTable,
    Join,
    JoinNatural,
    JoinOn,
    JoinUsing,
    Query,
    QueryBody,
    Select,
    SelectItem,
    SetOperation,
    Subquery,
    TableExpression,
    Values,
    With,
)

_COMMA: tuple[Doc, ...] = (",", LINE)


def query_doc(node: Query) -> Doc:
    """A query; parentheses around all of it say nothing."""
    while isinstance(node.body, Query) and not _has_clauses(node):
        node = node.body
    parts: list[Doc] = []
    if node.with_ is not None:
        parts.append(_with(node.with_))
    body = _body(node.body)
    parts.append(_bracketed(body) if isinstance(node.body, Query) else body)
    if node.order_by:
        items: list[Doc] = [order_item(item) for item in node.order_by]
        parts.append(titled("ORDER BY", separated(items, _COMMA)))
    parts.extend(limits(node))
    return Group(separated(parts, LINE))


def _has_clauses(node: Query) -> bool:
    return bool(node.with_ or node.order_by or node.limit or node.offset)


def _with(node: With) -> Doc:
    tables: list[Doc] = [_common_table(one) for one in node.tables]
    return titled(with_head(node), separated(tables, _COMMA))


def _common_table(node: CommonTable) -> Doc:
    return (f"{common_head(node)} AS ", _bracketed(query_doc(node.query)))


def _bracketed(inner: Doc) -> Doc:
    return Group(("(", Nested((EMPTY, inner)), EMPTY, ")"))


def _body(node: QueryBody) -> Doc:
    match node:
        case Select():
            return _select(node)
        case SetOperation():
            return _set_operation(node)
        case Query():
            return query_doc(node)
        case Values():
            rows: list[Doc] = [values_row(row) for row in node.rows]
            return titled("VALUES", separated(rows, _COMMA))
        case _:
            return query(Query(node))


def _set_operation(node: SetOperation) -> Doc:
    word = f"{node.operator} ALL" if node.all_ else node.operator
    inputs = [_operand(one) for one in node.inputs]
    first, *others = inputs
    return separated([first, *(Group((word, LINE, one)) for one in others)], LINE)


def _operand(node: QueryBody) -> Doc:
    inner = _body(node)
    return _bracketed(inner) if isinstance(node, SetOperation | Query) else Group(inner)


def _select(node: Select) -> Doc:
    head = "SELECT"
    if node.distinct_on:
        head = f"SELECT DISTINCT ON ({expression.expressions(node.distinct_on)})"
    elif node.distinct:
        head = "SELECT DISTINCT"
    items: list[Doc] = [_item(item) for item in node.items]
    clauses: list[Doc] = [titled(head, separated(items, _COMMA)) if items else head]
    if node.from_:
        tables: list[Doc] = [_table(one) for one in node.from_]
        clauses.append(titled("FROM", separated(tables, _COMMA)))
    if node.where is not None:
        clauses.append(titled("WHERE", expression.expression(node.where)))
    if node.group_by:
        keys: list[Doc] = [expression.expression(key) for key in node.group_by]
        clauses.append(titled("GROUP BY", separated(keys, _COMMA)))
    if node.having is not None:
        clauses.append(titled("HAVING", expression.expression(node.having)))
    if node.windows:
        windows: list[Doc] = [
            f"{quote_ident(one.name)} AS {expression.window(one.window)}" for one in node.windows
        ]
        clauses.append(titled("WINDOW", separated(windows, _COMMA)))
    return Group(separated(clauses, LINE))


def _item(node: SelectItem) -> str:
    text = expression.expression(node.expression)
    return text if node.alias is None else f"{text} AS {quote_ident(node.alias)}"


def _table(node: TableExpression) -> Doc:
    match node:
        case Join(alias=None):
            return Group(_join(node))
        case Subquery(alias=alias):
            lateral = "LATERAL " if node.lateral else ""
            named = (
                "" if alias is None else f" AS {quote_ident(alias.name)}{columns(alias.columns)}"
            )
            return (lateral, _bracketed(query_doc(node.query)), named)
        case _:
            return table(node)


def _join(node: Join) -> Doc:
    kind = "JOIN" if node.kind == "INNER" else f"{node.kind} JOIN"
    if isinstance(node.constraint, JoinNatural):
        kind = f"NATURAL {kind}"
    right = _table(node.right)
    if isinstance(node.right, Join) and node.right.alias is None:
        right = _bracketed(right)
    parts: list[Doc] = [right]
    match node.constraint:
        case JoinOn(condition=condition):
            parts.append(f"ON {expression.expression(condition)}")
        case JoinUsing(columns=names, alias=alias):
            shown = "" if alias is None else f" AS {quote_ident(alias)}"
            parts.append(f"USING({', '.join(map(quote_ident, names))}){shown}")
        case JoinNatural() | None:
            pass
        case _:
            assert_never(node.constraint)
    left = _join(node.left) if isinstance(node.left, Join) and not node.left.alias else None
    joined = titled(kind, separated(parts, LINE))
    return (_table(node.left) if left is None else left, Nested((LINE, joined)))
