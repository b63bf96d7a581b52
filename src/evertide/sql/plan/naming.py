"""The name a result column gets when it has no alias: PostgreSQL's rules."""

from evertide.sql.syntax.expression import (
    ArrayConstructor,
    ArraySubquery,
    ArrayType,
    Case,
    Cast,
    Collate,
    DataType,
    Exists,
    Expression,
    FieldAccess,
    FunctionCall,
    ListConstructor,
    ListType,
    MapConstructor,
    MapType,
    Name,
    RowConstructor,
    ScalarSubquery,
    Star,
    Subscript,
    TypedLiteral,
    TypeName,
)
from evertide.sql.syntax.query import Query, Select, SelectItem, SetOperation

NAMELESS = "?column?"
_PG_NAMES = {
    "boolean": "bool",
    "smallint": "int2",
    "int": "int4",
    "integer": "int4",
    "bigint": "int8",
    "real": "float4",
    "float": "float8",
    "decimal": "numeric",
    "dec": "numeric",
}


def column_name(item: SelectItem) -> str:
    """The name of an output column."""
    return item.alias if item.alias is not None else expression_name(item.expression)


def expression_name(node: Expression) -> str:
    """What an expression is called where nothing names it."""
    name, _ = _named(node)
    return name or NAMELESS


def _named(node: Expression) -> tuple[str | None, bool]:
    """A name, and whether it is a good one: a cast or CASE takes over only a good name."""
    match node:
        case Name(parts=parts) | FunctionCall(name=Name(parts=parts)):
            return parts[-1], True
        case FieldAccess(field_name=field_name):
            return field_name, True
        case Subscript(operand=operand) | Collate(operand=operand):
            return _named(operand)
        case Cast(operand=operand, target=target):
            inner, good = _named(operand)
            return (inner, True) if good else (_type_name(target), False)
        case TypedLiteral(target=target):
            return _type_name(target), False
        case Case(otherwise=otherwise):
            inner, good = (None, False) if otherwise is None else _named(otherwise)
            return (inner, True) if good else ("case", False)
        case Exists():
            return "exists", True
        case ScalarSubquery(query=query):
            return _query_name(query)
        case ArrayConstructor() | ArraySubquery():
            return "array", True
        case ListConstructor():
            return "list", True
        case MapConstructor():
            return "map", True
        case RowConstructor():
            return "row", True
        case _:
            return None, False


def _query_name(query: Query) -> tuple[str | None, bool]:
    """A scalar subquery is called what its only column is called."""
    body = query.body
    while not isinstance(body, Select):
        match body:
            case Query(body=inner):
                body = inner
            case SetOperation(inputs=inputs):
                body = inputs[0]
            case _:
                return "column1", True
    if len(body.items) != 1 or isinstance(body.items[0].expression, Star):
        return None, False
    item = body.items[0]
    return (item.alias, True) if item.alias is not None else _named(item.expression)


def _type_name(target: DataType) -> str:
    match target:
        case TypeName(parts=parts):
            return _PG_NAMES.get(parts[-1], parts[-1])
        case ArrayType(element=element) | ListType(element=element) | MapType(value=element):
            return _type_name(element)
