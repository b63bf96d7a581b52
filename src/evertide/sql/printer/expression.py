"""Scalar expressions as text.

Each node asks its operands for text that binds at least as tightly as its place needs; an operand
that binds less tightly comes in parentheses. The levels are the parser's own.
"""

from __future__ import annotations

from typing import assert_never

from evertide.sql.lexer import OPERATOR_START
from evertide.sql.parser.keywords import FUNCTION_NAMES, NILADIC
from evertide.sql.parser.precedence import (
    AND,
    AT_TIME_ZONE,
    COLLATE,
    COMPARISON,
    IS,
    MATCH,
    NOT,
    OR,
    OTHER,
    POSTFIX,
    SIGN,
    binary_precedence,
)
from evertide.sql.printer import query
from evertide.sql.printer.names import (
    data_type,
    dotted,
    name,
    quote_ident,
    quote_literal,
    type_name,
)
from evertide.sql.syntax.expression import (
    And,
    AnyAll,
    ArrayConstructor,
    ArraySubquery,
    Between,
    Binary,
    BooleanLiteral,
    Case,
    Cast,
    Collate,
    DefaultValue,
    Exists,
    Expression,
    FieldAccess,
    FrameBound,
    FunctionCall,
    InList,
    InSubquery,
    IsDistinct,
    IsTest,
    ListConstructor,
    MapConstructor,
    Name,
    Not,
    NullLiteral,
    NumberLiteral,
    Or,
    Parameter,
    PatternMatch,
    RowConstructor,
    RowStar,
    ScalarSubquery,
    Slice,
    Star,
    StringLiteral,
    Subscript,
    TypedLiteral,
    Unary,
    Window,
)
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import Query

_SELECTOR = POSTFIX + 5  # `a::int[1]` is a cast to an array, so selectors bind tighter than casts
_SPECIAL_CALLS = frozenset({"extract", "position", "substring", "overlay"})
_CONSTANTS = {"t": "true", "f": "false", "0": "NULL"}
_WINDOW_WORDS = frozenset({"PARTITION", "ROWS", "RANGE", "GROUPS"})

Operation = (
    Cast | Unary | Binary | Not | And | Or | IsTest | IsDistinct | Between | InList | InSubquery
) | (PatternMatch | Subscript | FieldAccess | RowStar | AnyAll | Collate)
Constructor = (
    Case | ArrayConstructor | ArraySubquery | ListConstructor | MapConstructor | RowConstructor
) | (Exists | ScalarSubquery)


def expression(node: Expression, floor: int = 0) -> str:
    """Text that binds at least as tightly as `floor`."""
    match node:
        case FunctionCall() if _is_at_time_zone(node):
            zone, moment = node.args
            left = expression(moment, AT_TIME_ZONE)
            text = f"{left} AT TIME ZONE {expression(zone, AT_TIME_ZONE + 1)}"
            return f"({text})" if floor > AT_TIME_ZONE else text
        case FunctionCall():
            return call(node)
        case (
            Case()
            | ArrayConstructor()
            | ArraySubquery()
            | ListConstructor()
            | MapConstructor()
            | RowConstructor()
            | Exists()
            | ScalarSubquery()
        ):
            return _constructor(node)
        case (
            Name()
            | Star()
            | NumberLiteral()
            | StringLiteral()
            | BooleanLiteral()
            | NullLiteral()
            | Parameter()
            | TypedLiteral()
            | DefaultValue()
        ):
            return _atom(node)
        case _:
            text, level = _operation(node)
            return f"({text})" if level < floor else text


def expressions(nodes: tuple[Expression, ...]) -> str:
    return ", ".join([expression(node) for node in nodes])


def _atom(
    node: Name
    | Star
    | NumberLiteral
    | StringLiteral
    | BooleanLiteral
    | NullLiteral
    | Parameter
    | TypedLiteral
    | DefaultValue,
) -> str:
    match node:
        case Name():
            return name(node)
        case Star():
            return dotted(node.qualifier) + ".*" if node.qualifier else "*"
        case NumberLiteral():
            return node.text
        case StringLiteral():
            return quote_literal(node.value)
        case BooleanLiteral():
            return "true" if node.value else "false"
        case NullLiteral():
            return "NULL"
        case Parameter():
            return f"${node.number}"
        case TypedLiteral():
            fields = f" {node.target.fields}" if node.target.fields else ""
            return f"{type_name(node.target)} {quote_literal(node.value)}{fields}"
        case DefaultValue():
            return "DEFAULT"
        case _:
            assert_never(node)


def _operation(node: Operation) -> tuple[str, int]:
    match node:
        case Unary() | Binary() | AnyAll():
            return _operator(node)
        case Not():
            return f"NOT {expression(node.operand, NOT)}", NOT
        case And():
            return " AND ".join([expression(term, AND + 1) for term in node.terms]), AND
        case Or():
            return " OR ".join([expression(term, OR + 1) for term in node.terms]), OR
        case IsTest() | IsDistinct():
            return _is(node), IS
        case Between() | InList() | InSubquery() | PatternMatch():
            return _match(node), MATCH
        case Collate():
            return f"{expression(node.operand, COLLATE)} COLLATE {name(node.collation)}", COLLATE
        case Cast():
            return f"{expression(node.operand, POSTFIX)}::{data_type(node.target)}", POSTFIX
        case Subscript():
            return f"{expression(node.operand, _SELECTOR)}[{_index(node.index)}]", _SELECTOR
        case FieldAccess():
            return f"{_selected(node.operand)}.{quote_ident(node.field_name)}", _SELECTOR
        case RowStar():
            return f"{_selected(node.operand)}.*", _SELECTOR
        case _:
            assert_never(node)


def _operator(node: Unary | Binary | AnyAll) -> tuple[str, int]:
    symbol = node.operator
    if node.schema:
        symbol = f"OPERATOR({dotted(node.schema)}.{symbol})"
    if isinstance(node, Unary):
        sign = node.operator in ("+", "-") and not node.schema
        # Operators of one level may pile up bare; without this, printing would nest deeper
        # than what was read.
        again = isinstance(node.operand, Unary)
        operand = expression(node.operand, SIGN if sign else OTHER if again else OTHER + 1)
        tight = sign and operand[0] not in OPERATOR_START  # `--` would begin a comment
        return f"{symbol}{'' if tight else ' '}{operand}", SIGN if sign else OTHER
    level = binary_precedence(node.operator, node.schema)
    left = expression(node.left, level + 1 if level == COMPARISON else level)
    if isinstance(node, Binary):
        return f"{left} {symbol} {expression(node.right, level + 1)}", level
    return f"{left} {symbol} {node.quantifier} ({_source(node.source)})", level


def _source(node: Query | Expression) -> str:
    return query.query(node) if isinstance(node, Query) else expression(node)


def _is(node: IsTest | IsDistinct) -> str:
    negation = "NOT " if node.negated else ""
    if isinstance(node, IsTest):
        again = isinstance(node.operand, IsTest)
        return f"{expression(node.operand, IS if again else IS + 1)} IS {negation}{node.test}"
    left, right = expression(node.left, IS + 1), expression(node.right, IS + 1)
    return f"{left} IS {negation}DISTINCT FROM {right}"


def _match(node: Between | InList | InSubquery | PatternMatch) -> str:
    again = isinstance(node, InList | InSubquery) and isinstance(node.operand, InList | InSubquery)
    left = expression(node.operand, MATCH if again else MATCH + 1)
    if node.negated:
        left += " NOT"
    match node:
        case Between():
            low, high = expression(node.low, MATCH + 1), expression(node.high, MATCH + 1)
            symmetric = "SYMMETRIC " if node.symmetric else ""
            return f"{left} BETWEEN {symmetric}{low} AND {high}"
        case InList():
            return f"{left} IN ({_members(node.items)})"
        case InSubquery():
            return f"{left} IN ({query.query(node.query)})"
        case PatternMatch():
            text = f"{left} {node.kind} {expression(node.pattern, MATCH + 1)}"
            if node.escape is None:
                return text
            return f"{text} ESCAPE {expression(node.escape, MATCH + 1)}"
        case _:
            assert_never(node)


def _members(items: tuple[Expression, ...] | LiteralValues) -> str:
    if not isinstance(items, LiteralValues):
        return expressions(items)
    return ", ".join(map(literal, items.kinds, items.texts))


def literal(kind: str, text: str) -> str:
    """A cell of LiteralValues."""
    if kind == "n":
        return text
    return quote_literal(text) if kind == "s" else _CONSTANTS[kind]


def _index(node: Expression | Slice) -> str:
    if not isinstance(node, Slice):
        return expression(node)
    lower = "" if node.lower is None else expression(node.lower)
    upper = "" if node.upper is None else expression(node.upper)
    return f"{lower} : {upper}"


def _selected(node: Expression) -> str:
    """What a dot may follow without being read as part of a longer name or number."""
    text = expression(node)
    bare = isinstance(node, Subscript | FieldAccess | ScalarSubquery | Parameter)
    if isinstance(node, FunctionCall):
        bare = text.endswith(")") and not _is_at_time_zone(node)
    return text if bare else f"({text})"


def _constructor(node: Constructor) -> str:
    match node:
        case Case():
            return _case(node)
        case ArrayConstructor():
            return f"ARRAY[{expressions(node.items)}]"
        case ArraySubquery():
            return f"ARRAY({query.query(node.query)})"
        case ListConstructor():
            return f"LIST[{expressions(node.items)}]"
        case MapConstructor():
            entries = [f"{expression(key)} => {expression(value)}" for key, value in node.entries]
            return f"MAP[{', '.join(entries)}]"
        case RowConstructor():
            return f"ROW({expressions(node.fields)})"
        case Exists():
            return f"EXISTS ({query.query(node.query)})"
        case ScalarSubquery():
            return f"({query.query(node.query)})"
        case _:
            assert_never(node)


def _case(node: Case) -> str:
    words = ["CASE"]
    if node.operand is not None:
        words.append(expression(node.operand))
    for branch in node.branches:
        words.append(f"WHEN {expression(branch.condition)} THEN {expression(branch.result)}")
    if node.otherwise is not None:
        words.append(f"ELSE {expression(node.otherwise)}")
    return " ".join([*words, "END"])


def call(node: FunctionCall) -> str:
    """A call in its plain form, whatever form it was written in."""
    plain = _is_plain(node)
    function = _function(node, plain)
    if plain and not node.args and function.upper() in NILADIC:
        return function
    first_floor = MATCH + 1 if function == "position" else 0  # IN would follow
    args = [expression(arg, 0 if index else first_floor) for index, arg in enumerate(node.args)]
    inside = "*" if node.star else ("DISTINCT " if node.distinct else "") + ", ".join(args)
    text = f"{function}({inside}{query.order_by(node.order_by)})"
    if node.filter_ is not None:
        text += f" FILTER (WHERE {expression(node.filter_)})"
    if node.over is not None:
        nulls = " IGNORE NULLS" if node.ignore_nulls else ""
        text += f"{nulls} OVER {window(node.over)}"
    return text


def _is_plain(node: FunctionCall) -> bool:
    """Whether there is nothing to the call but its arguments."""
    modified = node.star or node.distinct or bool(node.order_by)
    return not modified and node.filter_ is None and node.over is None


def _is_at_time_zone(node: FunctionCall) -> bool:
    """Whether AT TIME ZONE says the same, as it may have been written."""
    return node.name.parts == ("timezone",) and len(node.args) == 2 and _is_plain(node)


def _function(node: FunctionCall, plain: bool) -> str:
    """The name; quotes keep a special form's parser away from what it could not read."""
    parts = node.name.parts
    if len(parts) > 1:
        return dotted(parts)
    (word,) = parts
    if word.upper() in NILADIC:
        return word if plain and word.islower() else f'"{word}"'
    if word.upper() in FUNCTION_NAMES and word.islower():
        return word
    if word == "trim" or (word in _SPECIAL_CALLS and not (plain and node.args)):
        return f'"{word}"'
    return quote_ident(word)


def window(node: Window) -> str:
    if node.bare and node.base is not None:
        return quote_ident(node.base)
    words: list[str] = []
    if node.base is not None:
        words.append(quote_ident(node.base, _WINDOW_WORDS))
    if node.partition_by:
        words.append(f"PARTITION BY {expressions(node.partition_by)}")
    if node.order_by:
        words.append(query.order_by(node.order_by).strip())
    if node.frame is not None:
        start = _bound(node.frame.start)
        end = node.frame.end
        bounds = start if end is None else f"BETWEEN {start} AND {_bound(end)}"
        words.append(f"{node.frame.unit} {bounds}")
    return f"({' '.join(words)})"


def _bound(node: FrameBound) -> str:
    if node.kind == "CURRENT ROW":
        return node.kind
    if node.offset is None:
        return f"UNBOUNDED {node.kind}"
    return f"{expression(node.offset)} {node.kind}"
