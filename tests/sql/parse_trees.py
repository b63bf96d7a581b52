"""Random expressions and queries, of the shapes that the parser can build.

Plain functions of a Random: hypothesis drives it, so that a failure shrinks.
"""

from collections.abc import Callable
from random import Random
from typing import Final, Literal, TypeVar

from evertide.sql.parser.keywords import KEYWORDS
from evertide.sql.syntax import command as c
from evertide.sql.syntax import expression as e
from evertide.sql.syntax import query as q

T = TypeVar("T")

_PLAIN: Final = ["a", "b", "c", "t", "x_1"]
_WORDS: Final = [word.lower() for word in sorted(KEYWORDS)]
_SPECIAL: Final = [
    "trim",
    "extract",
    "position",
    "substring",
    "overlay",
    "coalesce",
    "date",
    "timezone",
]
_ODD: Final = ["A", "LEFT", "USER", "a b", 'q"x', "é", "1a", "$x", "a.b", "--", "'", "select from"]
_TEXTS: Final = ["", "a", "it's", "\\", "a\nb", "/* x", "$1", "%_", "''", "ü\U0001f600"]
_NUMBERS: Final = ["0", "1", "42", "1.5", ".5", "1.", "1e10", "2.5E-3"]
_BINARY: Final = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "<",
    ">",
    "=",
    "<=",
    ">=",
    "<>",
    "||",
    "->",
    "->>",
    "@>",
    "<@",
    "?",
    "?|",
    "?&",
    "~",
    "~*",
    "!~",
    "!~*",
    "#>",
    "&",
    "|",
    "<<",
    "@-",
    "<->",
]
_SET_OPERATORS: Final[list[Literal["UNION", "INTERSECT", "EXCEPT"]]] = [
    "UNION",
    "INTERSECT",
    "EXCEPT",
]
_UNARY: Final = ["+", "-", "~", "@", "|/", "||/", "!!"]
_SCHEMAS: Final[list[tuple[str, ...]]] = [(), (), (), ("pg_catalog",), ("a", "select")]
_FIELDS: Final = ["", "DAY", "YEAR TO MONTH", "DAY TO SECOND (3)", "SECOND"]


def some(rng: Random, make: Callable[[], T], least: int = 0, most: int = 2) -> tuple[T, ...]:
    return tuple(make() for _ in range(rng.randint(least, most)))


def maybe(rng: Random, make: Callable[[], T]) -> T | None:
    return make() if rng.random() < 0.4 else None


def flag(rng: Random) -> bool:
    return rng.random() < 0.5


def identifier(rng: Random) -> str:
    return rng.choice(rng.choice([_PLAIN, _PLAIN, _WORDS, _SPECIAL, _ODD]))


def text(rng: Random) -> str:
    return rng.choice(_TEXTS)


def name(rng: Random) -> e.Name:
    return e.Name(some(rng, lambda: identifier(rng), 1, 3))


def columns(rng: Random, least: int = 0) -> tuple[str, ...]:
    return some(rng, lambda: identifier(rng), least)


def number(rng: Random) -> e.NumberLiteral:
    return e.NumberLiteral(rng.choice(_NUMBERS))


def string(rng: Random) -> e.StringLiteral:
    return e.StringLiteral(text(rng))


def type_name(rng: Random) -> e.TypeName:
    if rng.random() < 0.2:
        return e.TypeName(("interval",), (), rng.choice(_FIELDS))
    parts = some(rng, lambda: identifier(rng), 1)
    modifiers: tuple[int, ...] = rng.choice([(), (3,), (10, 2)])
    return e.TypeName(("int4",) if parts == ("interval",) else parts, modifiers)


def data_type(rng: Random, depth: int = 2) -> e.DataType:
    kind = rng.randrange(5) if depth else 0
    if kind == 1:
        element = data_type(rng, depth - 1)
        return element if isinstance(element, e.ArrayType) else e.ArrayType(element, 2)
    if kind == 2:
        return e.ListType(data_type(rng, depth - 1))
    if kind == 3:
        return e.MapType(data_type(rng, depth - 1), data_type(rng, depth - 1))
    return type_name(rng)


def atom(rng: Random) -> e.Expression:
    makers: list[Callable[[], e.Expression]] = [
        lambda: name(rng),
        lambda: name(rng),
        lambda: number(rng),
        lambda: string(rng),
        lambda: e.BooleanLiteral(flag(rng)),
        lambda: e.NullLiteral(),
        lambda: e.Parameter(rng.randint(1, 65_535)),
        lambda: e.TypedLiteral(type_name(rng), text(rng)),
        lambda: e.Star(some(rng, lambda: identifier(rng), 1)),
    ]
    return rng.choice(makers)()


def expression(rng: Random, depth: int) -> e.Expression:
    if depth <= 0 or rng.random() < 0.15:
        return atom(rng)
    return rng.choice([_operator, _test, _selector, _form, _subquery, call])(rng, depth - 1)


def expressions(rng: Random, depth: int, least: int = 0) -> tuple[e.Expression, ...]:
    return some(rng, lambda: expression(rng, depth), least, 3)


def _operator(rng: Random, depth: int) -> e.Expression:
    def one() -> e.Expression:
        return expression(rng, depth)

    makers: list[Callable[[], e.Expression]] = [
        lambda: e.Unary(rng.choice(_UNARY), one(), rng.choice(_SCHEMAS)),
        lambda: e.Binary(rng.choice(_BINARY), one(), one(), rng.choice(_SCHEMAS)),
        lambda: e.Binary(rng.choice(_BINARY), one(), one()),
        lambda: e.Not(one()),
        lambda: e.And(expressions(rng, depth, 2)),
        lambda: e.Or(expressions(rng, depth, 2)),
    ]
    return rng.choice(makers)()


def _test(rng: Random, depth: int) -> e.Expression:
    def one() -> e.Expression:
        return expression(rng, depth)

    makers: list[Callable[[], e.Expression]] = [
        lambda: e.IsTest(one(), rng.choice(["NULL", "TRUE", "FALSE", "UNKNOWN"]), flag(rng)),
        lambda: e.IsDistinct(one(), one(), flag(rng)),
        lambda: e.Between(one(), one(), one(), flag(rng), flag(rng)),
        lambda: e.PatternMatch(
            one(),
            one(),
            rng.choice(["LIKE", "ILIKE", "SIMILAR TO"]),
            maybe(rng, one),
            flag(rng),
        ),
        lambda: e.InList(one(), (one(), one()), flag(rng)),
        lambda: e.InList(one(), (_not_a_subquery(rng, depth),), flag(rng)),
    ]
    return rng.choice(makers)()


def _not_a_subquery(rng: Random, depth: int) -> e.Expression:
    """The parser reads `x IN ((SELECT 1))` as it reads `x IN (SELECT 1)`."""
    found = expression(rng, depth)
    return e.NullLiteral() if isinstance(found, e.ScalarSubquery) else found


def _selector(rng: Random, depth: int) -> e.Expression:
    def one() -> e.Expression:
        return expression(rng, depth)

    makers: list[Callable[[], e.Expression]] = [
        lambda: e.Cast(one(), data_type(rng)),
        lambda: e.Collate(one(), name(rng)),
        lambda: e.Subscript(one(), one()),
        lambda: e.Subscript(one(), e.Slice(maybe(rng, one), maybe(rng, one))),
        lambda: e.FieldAccess(one(), identifier(rng)),
        lambda: e.RowStar(one()),
    ]
    return rng.choice(makers)()


def _form(rng: Random, depth: int) -> e.Expression:
    def one() -> e.Expression:
        return expression(rng, depth)

    makers: list[Callable[[], e.Expression]] = [
        lambda: e.Case(
            maybe(rng, one),
            some(rng, lambda: e.CaseBranch(one(), one()), 1),
            maybe(rng, one),
        ),
        lambda: e.ArrayConstructor(expressions(rng, depth)),
        lambda: e.ListConstructor(expressions(rng, depth)),
        lambda: e.MapConstructor(some(rng, lambda: (one(), one()))),
        lambda: e.RowConstructor(expressions(rng, depth)),
    ]
    return rng.choice(makers)()


def _subquery(rng: Random, depth: int) -> e.Expression:
    inner = query(rng, depth - 1)
    operator = rng.choice([*_BINARY, "~~", "!~~*"])
    schema = rng.choice(_SCHEMAS)
    makers: list[Callable[[], e.Expression]] = [
        lambda: e.ScalarSubquery(inner),
        lambda: e.Exists(inner),
        lambda: e.ArraySubquery(inner),
        lambda: e.InSubquery(expression(rng, depth), inner, flag(rng)),
        lambda: e.AnyAll(expression(rng, depth), operator, "ANY", inner, schema),
        lambda: e.AnyAll(
            expression(rng, depth), operator, "ALL", _not_a_subquery(rng, depth), schema
        ),
    ]
    return rng.choice(makers)()


def call(rng: Random, depth: int) -> e.FunctionCall:
    kind = rng.randrange(3)
    if kind == 0 and rng.random() < 0.2:
        moment_and_zone = (expression(rng, depth), expression(rng, depth))
        return e.FunctionCall(e.Name(("timezone",)), moment_and_zone)
    if kind == 0:
        return e.FunctionCall(name(rng), expressions(rng, depth))
    filter_ = maybe(rng, lambda: expression(rng, depth))
    over = maybe(rng, lambda: window(rng, depth))
    if kind == 1:
        return e.FunctionCall(name(rng), star=True, filter_=filter_, over=over)
    return e.FunctionCall(
        name(rng),
        expressions(rng, depth, 1),
        distinct=flag(rng),
        order_by=order_by(rng, depth),
        filter_=filter_,
        over=over,
        ignore_nulls=over is not None and rng.random() < 0.2,
    )


def window(rng: Random, depth: int) -> e.Window:
    if rng.random() < 0.3:
        return e.Window(base=identifier(rng), bare=True)
    return _definition(rng, depth)


def _definition(rng: Random, depth: int) -> e.Window:
    return e.Window(
        maybe(rng, lambda: identifier(rng)),
        expressions(rng, depth),
        order_by(rng, depth),
        maybe(rng, lambda: _frame(rng)),
    )


def _frame(rng: Random) -> e.WindowFrame:
    def bound() -> e.FrameBound:
        if rng.random() < 0.3:
            return e.FrameBound("CURRENT ROW")
        offset = maybe(rng, lambda: e.NumberLiteral("10"))
        return e.FrameBound(rng.choice(["PRECEDING", "FOLLOWING"]), offset)

    return e.WindowFrame(rng.choice(["ROWS", "RANGE", "GROUPS"]), bound(), maybe(rng, bound))


def order_by(rng: Random, depth: int, least: int = 0) -> tuple[q.OrderItem, ...]:
    def item() -> q.OrderItem:
        return q.OrderItem(expression(rng, depth), flag(rng), rng.choice([None, True, False]))

    return some(rng, item, least)


def query(rng: Random, depth: int) -> q.Query:
    body = _body(rng, depth)
    limit = maybe(rng, lambda: expression(rng, depth))
    if rng.random() < 0.4 and not isinstance(body, q.Query):
        return q.Query(body)
    tables = some(rng, lambda: _common_table(rng, depth), 1)
    found = q.Query(
        body,
        maybe(rng, lambda: q.With(tables, flag(rng))),
        order_by(rng, depth),
        limit,
        maybe(rng, lambda: expression(rng, depth)),
    )
    return found if has_clauses(found) or not isinstance(body, q.Query) else body


def has_clauses(node: q.Query) -> bool:
    """The parser drops parentheses that do nothing: no query is a bare wrapper of another."""
    clauses = (node.with_, node.limit, node.offset)
    return bool(node.order_by) or any(clause is not None for clause in clauses)


def _common_table(rng: Random, depth: int) -> q.CommonTable:
    return q.CommonTable(identifier(rng), columns(rng), query(rng, depth - 1))


def _body(rng: Random, depth: int) -> q.QueryBody:
    kind = rng.randrange(6) if depth > 0 else rng.randrange(2)
    if kind == 0:
        width = rng.randint(1, 2)
        rows = some(rng, lambda: some(rng, lambda: expression(rng, depth), width, width), 1)
        return q.Values(rows)
    if kind == 2:
        operator = rng.choice(_SET_OPERATORS)
        return q.SetOperation(operator, flag(rng), some(rng, lambda: _body(rng, depth - 1), 2, 3))
    if kind == 3:
        nested = query(rng, depth - 1)
        return nested if has_clauses(nested) else nested.body
    return _select(rng, depth)


def _select(rng: Random, depth: int) -> q.Select:
    distinct_on = expressions(rng, depth - 1) if rng.random() < 0.2 else ()
    return q.Select(
        some(rng, lambda: select_item(rng, depth)),
        some(rng, lambda: table(rng, depth - 1)),
        maybe(rng, lambda: expression(rng, depth)),
        expressions(rng, depth - 1),
        maybe(rng, lambda: expression(rng, depth - 1)),
        some(rng, lambda: q.NamedWindow(identifier(rng), _definition(rng, depth - 1)), 0, 1),
        bool(distinct_on) or flag(rng),
        distinct_on,
    )


def select_item(rng: Random, depth: int) -> q.SelectItem:
    if rng.random() < 0.2:
        return q.SelectItem(e.Star())
    return q.SelectItem(expression(rng, depth), maybe(rng, lambda: identifier(rng)))


def table(rng: Random, depth: int) -> q.TableExpression:
    alias = maybe(rng, lambda: q.TableAlias(identifier(rng), columns(rng)))
    kind = rng.randrange(7) if depth > 0 else 0
    if kind == 1:
        return q.Subquery(query(rng, depth - 1), alias, flag(rng))
    if kind == 2:
        calls = some(rng, lambda: call(rng, depth - 1), 1)
        return q.FunctionTable(calls, alias, flag(rng), flag(rng))
    if kind == 3:
        return _join(rng, depth - 1, alias)
    if kind == 4:
        return q.ShowTable(c.ShowObjectsStatement(c.ShowKind.CLUSTERS), alias)
    return q.TableRef(name(rng), alias)


def _join(rng: Random, depth: int, alias: q.TableAlias | None) -> q.Join:
    left, right = table(rng, depth), table(rng, depth)
    if rng.random() < 0.2:
        return q.Join("CROSS", left, right, None, alias)
    constraints: list[q.JoinConstraint] = [
        q.JoinOn(expression(rng, depth)),
        q.JoinUsing(columns(rng, 1), maybe(rng, lambda: identifier(rng))),
        q.JoinNatural(),
    ]
    constraint = rng.choice(constraints)
    return q.Join(rng.choice(["INNER", "LEFT", "RIGHT", "FULL"]), left, right, constraint, alias)
