"""Queries: WITH, SELECT, VALUES, TABLE, set operations, and the clauses around them."""

from __future__ import annotations

from typing import Final, Literal

from evertide.sql.lexer import LITERAL_ROWS, QUOTED
from evertide.sql.parser import call, expression, from_clause, recursion
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.hints import pass_hints
from evertide.sql.parser.keywords import NOT_BARE_LABELS, QUERY_START
from evertide.sql.parser.names import (
    comma_separated,
    identifier,
    is_word,
    label,
    one_of,
    optional_columns,
    qualified_name,
    take_word,
)
from evertide.sql.syntax.expression import DefaultValue, Expression, NumberLiteral, Star
from evertide.sql.syntax.query import (
    CommonTable,
    NamedWindow,
    OrderItem,
    Query,
    QueryBody,
    Select,
    SelectItem,
    SetOperation,
    TableRef,
    Values,
    With,
)
from evertide.vocab.errors import FeatureNotSupported, SqlSyntaxError

_COST: Final = 3  # a query takes about as many frames as three expressions


def query(cursor: Cursor) -> Query:
    """A whole query. Parentheses around one that needs none leave no trace."""
    cursor.enter(_COST)
    outer_height, cursor.height = cursor.height, 0
    at = cursor.at
    with_ = _with(cursor) if cursor.key == "WITH" else None
    body = _set_operations(cursor, _intersections(cursor, _query_primary(cursor)))
    result = _finish(cursor, body, with_, at)
    cursor.height = max(outer_height, cursor.height + _COST)
    cursor.depth -= _COST
    return result


def query_after(cursor: Cursor, first: Query) -> Query:
    """A query whose first operand, in parentheses, has been read already."""
    body = _set_operations(cursor, _intersections(cursor, _unwrapped(first)))
    return _finish(cursor, body, None, first.at)


def _finish(cursor: Cursor, body: QueryBody, with_: With | None, at: int) -> Query:
    ordering = order_by(cursor)
    limit, offset = _limits(cursor)
    result = Query(body, with_, ordering, limit, offset, at=at)
    return body if isinstance(body, Query) and _is_bare(result) else result


def _unwrapped(nested: Query) -> QueryBody:
    """The body alone, if the parentheses held no clause that must apply before the rest."""
    return nested.body if _is_bare(nested) else nested


def _is_bare(found: Query) -> bool:
    """Whether a query is its body and nothing else."""
    clauses = (found.with_, found.limit, found.offset)
    return not found.order_by and all(clause is None for clause in clauses)


def _with(cursor: Cursor) -> With:
    at = cursor.at
    cursor.expect("WITH")
    if cursor.key == "MUTUALLY" and cursor.peek() == "RECURSIVE":
        return recursion.mutually_recursive(cursor, query, at)
    recursive = cursor.accept("RECURSIVE")
    return With(comma_separated(cursor, _common_table), recursive, at=at)


def _common_table(cursor: Cursor) -> CommonTable:
    at = cursor.at
    name = identifier(cursor)
    columns = optional_columns(cursor)
    cursor.expect("AS")
    if cursor.accept("NOT"):
        cursor.expect("MATERIALIZED")
    else:
        cursor.accept("MATERIALIZED")  # a hint to PostgreSQL's planner; it has no meaning here
    cursor.expect("(")
    body = query(cursor)
    cursor.expect(")")
    return CommonTable(name, columns, body, at=at)


def _set_operations(cursor: Cursor, first: QueryBody) -> QueryBody:
    """UNION and EXCEPT, from the left; INTERSECT binds tighter."""
    body = first
    while cursor.key in ("UNION", "EXCEPT"):
        at = cursor.at
        key = cursor.key
        operator: Literal["UNION", "EXCEPT"] = "UNION" if cursor.key == "UNION" else "EXCEPT"
        inputs = [body]
        all_ = _all(cursor)
        inputs.append(_intersections(cursor, _query_primary(cursor)))
        while cursor.key == key and (cursor.peek() == "ALL") == all_:
            _all(cursor)
            inputs.append(_intersections(cursor, _query_primary(cursor)))
        body = SetOperation(operator, all_, tuple(inputs), at=at)
        cursor.raise_height(2)
    return body


def _intersections(cursor: Cursor, first: QueryBody) -> QueryBody:
    body = first
    while cursor.key == "INTERSECT":
        at = cursor.at
        inputs = [body]
        all_ = _all(cursor)
        inputs.append(_query_primary(cursor))
        while cursor.key == "INTERSECT" and (cursor.peek() == "ALL") == all_:
            _all(cursor)
            inputs.append(_query_primary(cursor))
        body = SetOperation("INTERSECT", all_, tuple(inputs), at=at)
        cursor.raise_height(2)
    return body


def _all(cursor: Cursor) -> bool:
    """Steps over the operator and tells whether duplicates stay."""
    cursor.advance()
    all_ = cursor.accept("ALL")
    if not all_:
        cursor.accept("DISTINCT")
    return all_


def _query_primary(cursor: Cursor) -> QueryBody:
    at = cursor.at
    match cursor.key:
        case "SELECT":
            return _select(cursor)
        case "VALUES":
            return _values(cursor)
        case "TABLE":
            cursor.advance()
            table = TableRef(qualified_name(cursor), at=at)
            return Select((SelectItem(Star(at=at), at=at),), (table,), at=at)
        case "(":
            cursor.advance()
            nested = query(cursor)
            cursor.expect(")")
            return _unwrapped(nested)
        case _:
            cursor.fail("SELECT, VALUES, or a subquery in the query body")


def _select(cursor: Cursor) -> Select:
    at = cursor.at
    cursor.expect("SELECT")
    distinct, distinct_on = _distinct(cursor)
    items = () if cursor.key in _AFTER_ITEMS else comma_separated(cursor, select_item)
    from_ = from_clause.table_expressions(cursor) if cursor.accept("FROM") else ()
    where_ = where(cursor)
    group_by: tuple[Expression, ...] = ()
    if cursor.accept("GROUP"):
        cursor.expect("BY")
        group_by = expression.expressions(cursor)
    having = expression.expression(cursor) if cursor.accept("HAVING") else None
    windows = comma_separated(cursor, _named_window) if cursor.accept("WINDOW") else ()
    pass_hints(cursor)
    return Select(items, from_, where_, group_by, having, windows, distinct, distinct_on, at=at)


def _distinct(cursor: Cursor) -> tuple[bool, tuple[Expression, ...]]:
    if not cursor.accept("DISTINCT"):
        cursor.accept("ALL")
        return False, ()
    if not cursor.accept("ON"):
        return True, ()
    cursor.expect("(")
    keys = expression.expressions(cursor)
    cursor.expect(")")
    return True, keys


def select_item(cursor: Cursor) -> SelectItem:
    """One output, with its alias if it has one."""
    at = cursor.at
    if cursor.accept("*"):
        return SelectItem(Star(at=at), at=at)
    value = expression.expression(cursor)
    if cursor.key == "AS" and cursor.peek() != "OF":
        cursor.advance()
        return SelectItem(value, label(cursor), at=at)
    key = cursor.key
    if key == QUOTED or (is_word(key) and key not in NOT_BARE_LABELS):
        return SelectItem(value, take_word(cursor), at=at)
    return SelectItem(value, at=at)


def _named_window(cursor: Cursor) -> NamedWindow:
    at = cursor.at
    name = identifier(cursor)
    cursor.expect("AS")
    return NamedWindow(name, call.window(cursor), at=at)


def where(cursor: Cursor) -> Expression | None:
    return expression.expression(cursor) if cursor.accept("WHERE") else None


def _values(cursor: Cursor) -> QueryBody:
    at = cursor.at
    cursor.expect("VALUES")
    if cursor.key == LITERAL_ROWS:
        rows = cursor.tokens.literal_rows[cursor.index]
        cursor.advance()
        return rows
    first = _row(cursor)
    found = [first]
    while cursor.accept(","):
        row_at = cursor.at
        found.append(_row(cursor))
        if len(found[-1]) != len(first):
            raise SqlSyntaxError("VALUES lists must all be the same length", position=row_at + 1)
    return Values(tuple(found), at=at)


def _row(cursor: Cursor) -> tuple[Expression, ...]:
    cursor.expect("(")
    cells = comma_separated(cursor, cell)
    cursor.expect(")")
    return cells


def cell(cursor: Cursor) -> Expression:
    """A value to be written: an expression, or DEFAULT."""
    at = cursor.at
    return DefaultValue(at=at) if cursor.accept("DEFAULT") else expression.expression(cursor)


def order_by(cursor: Cursor) -> tuple[OrderItem, ...]:
    """An ORDER BY clause if it is there."""
    if not cursor.accept("ORDER"):
        return ()
    cursor.expect("BY")
    return comma_separated(cursor, _order_item)


def _order_item(cursor: Cursor) -> OrderItem:
    at = cursor.at
    value = expression.expression(cursor)
    descending = cursor.accept("DESC")
    if not descending:
        cursor.accept("ASC")
    nulls_first = None
    if cursor.accept("NULLS"):
        nulls_first = one_of(cursor, "FIRST", "LAST") == "FIRST"
    return OrderItem(value, descending, nulls_first, at=at)


def _limits(cursor: Cursor) -> tuple[Expression | None, Expression | None]:
    """LIMIT, OFFSET and FETCH, in any order, each at most once."""
    limit = offset = None
    while True:
        if limit is None and cursor.accept("LIMIT"):
            limit = None if cursor.accept("ALL") else expression.expression(cursor)
        elif limit is None and cursor.key == "FETCH":
            limit = _fetch(cursor)
        elif offset is None and cursor.accept("OFFSET"):
            offset = expression.expression(cursor)
            if cursor.key in ("ROW", "ROWS"):
                cursor.advance()
        else:
            _refuse_second(cursor)
            return limit, offset


def _refuse_second(cursor: Cursor) -> None:
    """Rows are cut once; whether a clause that follows was meant, nobody can tell."""
    if cursor.key in ("LIMIT", "FETCH", "OFFSET"):
        what = "OFFSET" if cursor.key == "OFFSET" else "LIMIT/FETCH"
        raise SqlSyntaxError(f"multiple {what} clauses not allowed", position=cursor.at + 1)


def _fetch(cursor: Cursor) -> Expression:
    """`FETCH FIRST 5 ROWS ONLY`, the standard's LIMIT; without a number it means one row."""
    cursor.expect("FETCH")
    one_of(cursor, "FIRST", "NEXT")
    at = cursor.at
    count: Expression = NumberLiteral("1", at=at)
    if cursor.key not in ("ROW", "ROWS"):
        count = expression.expression(cursor)
    one_of(cursor, "ROW", "ROWS")
    if cursor.key == "WITH" and cursor.peek() == "TIES":
        raise FeatureNotSupported(
            "FETCH ... WITH TIES not yet supported",
            hint="Compare rank() OVER (ORDER BY ...), in a subquery, with how many you want.",
            position=cursor.at + 1,
        )
    cursor.expect("ONLY")
    return count


# What may follow SELECT when it has no output columns at all.
_AFTER_ITEMS: Final = frozenset(
    {"FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT"}
    | {"OFFSET", "FETCH", "AS", "RETURNING", ")", ";", ""}
)


def starts_query(cursor: Cursor) -> bool:
    """Whether a query stands here, possibly behind parentheses."""
    ahead = 0
    while cursor.peek(ahead) == "(":
        ahead += 1
    return cursor.peek(ahead) in QUERY_START
