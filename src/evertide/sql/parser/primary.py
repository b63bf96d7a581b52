"""What an expression can begin with: constants, names, parentheses, forms with a keyword."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from evertide.sql.lexer import NUMBER, OPERATOR_START, PARAMETER, QUOTED, STRING
from evertide.sql.parser import call, expression, precedence, query
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.keywords import NILADIC, NOT_NAMES, RESERVED
from evertide.sql.parser.names import is_word, label, take_word
from evertide.sql.parser.type_name import (
    at_modifiers_of_literal,
    at_typed_literal,
    base_type,
    data_type,
    interval_fields,
    modifiers,
)
from evertide.sql.syntax.expression import (
    ArrayConstructor,
    ArraySubquery,
    BooleanLiteral,
    Case,
    CaseBranch,
    Cast,
    Exists,
    Expression,
    ListConstructor,
    MapConstructor,
    Name,
    Not,
    NullLiteral,
    NumberLiteral,
    Parameter,
    RowConstructor,
    ScalarSubquery,
    Star,
    StringLiteral,
    TypedLiteral,
    TypeName,
    Unary,
)
from evertide.sql.syntax.query import Query


def primary(cursor: Cursor) -> Expression:
    """An operand with its prefix operators."""
    key = cursor.key
    form = _FORMS.get(key)
    if form is not None:
        found = form(cursor)
        if found is not None:
            return found
    if key == QUOTED or (is_word(key) and key not in RESERVED):
        return _name(cursor)
    if key == "ON":
        # No expression begins so, and SHOW INDEXES has a column of this name.
        at = cursor.at
        cursor.advance()
        return Name(("on",), at=at)
    if key[:1] in OPERATOR_START:
        return _prefix(cursor)
    cursor.fail("an expression")


def _name(cursor: Cursor) -> Expression:
    """A column, a call, or a constant with its type: what follows the name tells."""
    following = cursor.peek()
    if cursor.key in NOT_NAMES and following not in ("(", STRING):
        cursor.fail("an expression")
    at = cursor.at
    parts = [take_word(cursor)]
    while cursor.accept("."):
        if cursor.accept("*"):
            return Star(tuple(parts), at=at)
        parts.append(label(cursor))
    if cursor.key == STRING or (cursor.key == "(" and at_modifiers_of_literal(cursor)):
        target = TypeName(tuple(parts), modifiers(cursor), at=at)
        return TypedLiteral(target, cursor.advance(), at=at)
    if cursor.key == "(":
        return call.call(cursor, Name(tuple(parts), at=at))
    return Name(tuple(parts), at=at)


def _qualified_prefix(cursor: Cursor) -> Expression | None:
    return _prefix(cursor) if cursor.peek() == "(" else None


def _prefix(cursor: Cursor) -> Expression:
    at = cursor.at
    if cursor.key in _INFIX_ONLY:
        cursor.fail("an expression")
    operator, schema = expression.take_operator(cursor)
    sign = operator in ("+", "-") and not schema
    operand = expression.expression(cursor, precedence.SIGN if sign else precedence.OTHER + 1)
    return Unary(operator, operand, schema, at=at)


def _not(cursor: Cursor) -> Expression:
    at = cursor.at
    cursor.advance()
    return Not(expression.expression(cursor, precedence.NOT), at=at)


def _number(cursor: Cursor) -> Expression:
    at = cursor.at
    return NumberLiteral(cursor.advance(), at=at)


def _string(cursor: Cursor) -> Expression:
    at = cursor.at
    return StringLiteral(cursor.advance(), at=at)


def _parameter(cursor: Cursor) -> Expression:
    at = cursor.at
    digits = cursor.tokens.values[cursor.index]
    if len(digits) > 5 or not 0 < int(digits) <= 65_535:  # the wire counts them in 16 bits
        cursor.fail("a parameter between $1 and $65535")
    cursor.advance()
    return Parameter(int(digits), at=at)


def _true(cursor: Cursor) -> Expression:
    at = cursor.at
    cursor.advance()
    return BooleanLiteral(True, at=at)


def _false(cursor: Cursor) -> Expression:
    at = cursor.at
    cursor.advance()
    return BooleanLiteral(False, at=at)


def _null(cursor: Cursor) -> Expression:
    at = cursor.at
    cursor.advance()
    return NullLiteral(at=at)


def _parentheses(cursor: Cursor) -> Expression:
    at = cursor.at
    match expression.inside_parentheses(cursor):
        case Query() as subquery:
            return ScalarSubquery(subquery, at=at)
        case (only,):
            return only
        case fields:
            return RowConstructor(fields, at=at)


def _row(cursor: Cursor) -> Expression | None:
    if cursor.peek() != "(":
        return None
    at = cursor.at
    cursor.expect("ROW", "(")
    fields = () if cursor.key == ")" else expression.expressions(cursor)
    cursor.expect(")")
    return RowConstructor(fields, at=at)


def _exists(cursor: Cursor) -> Expression | None:
    if cursor.peek() != "(":
        return None
    at = cursor.at
    cursor.expect("EXISTS", "(")
    subquery = query.query(cursor)
    cursor.expect(")")
    return Exists(subquery, at=at)


def _niladic(cursor: Cursor) -> Expression:
    return call.niladic(cursor)


def _case(cursor: Cursor) -> Expression:
    at = cursor.at
    cursor.enter(1)
    cursor.expect("CASE")
    operand = None if cursor.key == "WHEN" else expression.expression(cursor)
    branches: list[CaseBranch] = []
    while cursor.key == "WHEN" or not branches:
        branch_at = cursor.at
        cursor.expect("WHEN")
        condition = expression.expression(cursor)
        cursor.expect("THEN")
        branches.append(CaseBranch(condition, expression.expression(cursor), at=branch_at))
    otherwise = expression.expression(cursor) if cursor.accept("ELSE") else None
    cursor.expect("END")
    cursor.depth -= 1
    return Case(operand, tuple(branches), otherwise, at=at)


def _cast(cursor: Cursor) -> Expression:
    at = cursor.at
    cursor.expect("CAST", "(")
    operand = expression.expression(cursor)
    cursor.expect("AS")
    target = data_type(cursor)
    cursor.expect(")")
    return Cast(operand, target, at=at)


def _array(cursor: Cursor) -> Expression:
    at = cursor.at
    cursor.expect("ARRAY")
    if cursor.key == "(":
        cursor.expect("(")
        subquery = query.query(cursor)
        cursor.expect(")")
        return ArraySubquery(subquery, at=at)
    return ArrayConstructor(_items(cursor, _array_item), at=at)


def _array_item(cursor: Cursor) -> Expression:
    """Inside ARRAY[...], inner brackets are arrays too."""
    if cursor.key != "[":
        return expression.expression(cursor)
    at = cursor.at
    cursor.enter(1)
    outer_height, cursor.height = cursor.height, 0
    items = _items(cursor, _array_item)
    cursor.height = max(outer_height, cursor.height + 1)
    cursor.depth -= 1
    return ArrayConstructor(items, at=at)


def _list(cursor: Cursor) -> Expression | None:
    if cursor.peek() != "[":
        return None
    at = cursor.at
    cursor.expect("LIST")
    return ListConstructor(_items(cursor, _list_item), at=at)


def _list_item(cursor: Cursor) -> Expression:
    if cursor.key != "[":
        return expression.expression(cursor)
    at = cursor.at
    cursor.enter(1)
    outer_height, cursor.height = cursor.height, 0
    items = _items(cursor, _list_item)
    cursor.height = max(outer_height, cursor.height + 1)
    cursor.depth -= 1
    return ListConstructor(items, at=at)


def _items(cursor: Cursor, item: Callable[[Cursor], Expression]) -> tuple[Expression, ...]:
    cursor.expect("[")
    items: list[Expression] = []
    while cursor.key != "]":
        items.append(item(cursor))
        if not cursor.accept(","):
            break
    cursor.expect("]")
    return tuple(items)


def _map(cursor: Cursor) -> Expression | None:
    if cursor.peek() != "[":
        return None
    at = cursor.at
    cursor.expect("MAP", "[")
    entries: list[tuple[Expression, Expression]] = []
    while cursor.key != "]":
        key = expression.expression(cursor)
        cursor.expect("=>")
        entries.append((key, expression.expression(cursor)))
        if not cursor.accept(","):
            break
    cursor.expect("]")
    return MapConstructor(tuple(entries), at=at)


def _type_word(cursor: Cursor) -> Expression | None:
    """TIMESTAMP and other words that begin a type of several words; mostly they are plain names."""
    return _typed_literal(cursor) if at_typed_literal(cursor) else None


def _typed_literal(cursor: Cursor) -> TypedLiteral:
    at = cursor.at
    target = base_type(cursor)
    if cursor.key != STRING:
        cursor.fail("string literal")
    value = cursor.advance()
    if target.parts == ("interval",) and not target.fields:
        fields = interval_fields(cursor)
        target = TypeName(target.parts, target.modifiers, fields, at=target.at)
    return TypedLiteral(target, value, at=at)


_INFIX_ONLY: Final = frozenset(precedence.OPERATORS) - {"+", "-"}
_FORMS: Final[dict[str, Callable[[Cursor], Expression | None]]] = {
    NUMBER: _number,
    STRING: _string,
    PARAMETER: _parameter,
    "(": _parentheses,
    "ARRAY": _array,
    "CASE": _case,
    "CAST": _cast,
    "EXISTS": _exists,
    "FALSE": _false,
    "LIST": _list,
    "MAP": _map,
    "NOT": _not,
    "NULL": _null,
    "OPERATOR": _qualified_prefix,
    "ROW": _row,
    "TRUE": _true,
    **dict.fromkeys(("BIT", "CHAR", "CHARACTER", "DOUBLE", "INTERVAL", "TIME"), _type_word),
    "TIMESTAMP": _type_word,
    **dict.fromkeys(NILADIC, _niladic),
}
