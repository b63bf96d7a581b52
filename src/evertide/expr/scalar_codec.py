"""Types, datums and scalars as plain values.

Literals are written by their type, so that reading gives back the same representation: 0.0 and
-0.0, NaN, every digit of a numeric. Equal bytes therefore mean the same expression, which Python's
equality of the trees does not (0.0 == -0.0).
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeAlias, assert_never, cast

import msgspec

from evertide.expr.functions.row import AggregateFunction, ScalarFunction
from evertide.expr.relation import Types
from evertide.expr.scalar import (
    And,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    IsNull,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    Scalar,
    SessionCall,
)
from evertide.vocab.datum import Datum, Interval, Row
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

# Kinds whose datums are not plain as they are.
_CHANGED = frozenset({Kind.NUMERIC, Kind.INTERVAL, Kind.ARRAY, Kind.LIST, Kind.MAP, *RANGE_BASES})
# What msgpack can hold.
Plain: TypeAlias = "bool | int | float | str | bytes | list[Plain] | None"
# Finds a row of the function table by its signature.
FunctionLookup: TypeAlias = Callable[[str], ScalarFunction | AggregateFunction]


class UnreadablePlan(ValueError):
    """Bytes that are no plan of this version: another program's, or damaged."""


def scalar_key(scalar: Scalar) -> bytes:
    """Equal for the same expression only; usable where Python's equality is too lax."""
    return msgspec.msgpack.encode(plain_scalar(scalar))


def plain_type(sql_type: SqlType) -> Plain:
    """A type; its kind alone where it has nothing else."""
    if sql_type == SqlType(sql_type.kind):
        return sql_type.kind.value
    if sql_type.fields is not None:
        return [sql_type.kind.value, [[name, plain_type(field)] for name, field in sql_type.fields]]
    element = None if sql_type.element is None else plain_type(sql_type.element)
    return [sql_type.kind.value, sql_type.precision, sql_type.scale, sql_type.length, element]


def read_type(plain: Plain) -> SqlType:
    """Inverse of plain_type."""
    match plain:
        case str(kind):
            return SqlType(Kind(kind))
        case [
            str(kind),
            (int() | None) as precision,
            (int() | None) as scale,
            (int() | None) as length,
            element,
        ]:
            inside = None if element is None else read_type(element)
            return SqlType(Kind(kind), precision, scale, length, inside)
        case [str(kind), list(fields)]:
            pairs = [as_list(field) for field in fields]
            return SqlType(
                Kind(kind), fields=tuple((as_str(pair[0]), read_type(pair[1])) for pair in pairs)
            )
        case _:
            raise UnreadablePlan(f"not a type: {plain!r}")


def plain_types(types: Types) -> Plain:
    """Types in order."""
    return [plain_type(sql_type) for sql_type in types]


def read_types(plain: Plain) -> Types:
    """Inverse of plain_types."""
    return tuple(read_type(sql_type) for sql_type in as_list(plain))


def plain_datum(sql_type: SqlType, datum: Datum) -> Plain:
    """A datum of this type."""
    match sql_type.kind:
        case _ if datum is None:
            return None
        case Kind.NUMERIC:
            return str(datum)
        case Kind.INTERVAL:
            return list(cast(Interval, datum))
        case Kind.ARRAY | Kind.LIST:
            assert sql_type.element is not None, "an array or list has an element type"
            parts = cast("tuple[Datum, ...]", datum)
            if sql_type.element.kind not in _CHANGED:
                return cast("list[Plain]", list(parts))
            return [plain_datum(sql_type.element, part) for part in parts]
        case kind if kind in RANGE_BASES:
            lower, upper, *ends = cast("tuple[Datum, ...]", datum)
            bounds = [plain_datum(RANGE_BASES[kind], bound) for bound in (lower, upper)]
            return [*bounds, *cast("list[Plain]", ends)]
        case Kind.MAP:
            assert sql_type.element is not None, "a map has a value type"
            pairs = cast("tuple[tuple[str, Datum], ...]", datum)
            return [[key, plain_datum(sql_type.element, value)] for key, value in pairs]
        case Kind.RECORD:
            given = zip(sql_type.fields or (), cast("tuple[Datum, ...]", datum), strict=True)
            return [plain_datum(field, part) for (_, field), part in given]
        case _:
            return cast(Plain, datum)


def read_datum(sql_type: SqlType, plain: Plain) -> Datum:
    """Inverse of plain_datum."""
    match sql_type.kind:
        case _ if plain is None:
            return None
        case Kind.NUMERIC:
            return Decimal(as_str(plain))
        case Kind.INTERVAL:
            return Interval(*(as_int(part) for part in as_list(plain)))
        case Kind.ARRAY | Kind.LIST:
            assert sql_type.element is not None, "an array or list has an element type"
            return tuple([read_datum(sql_type.element, part) for part in as_list(plain)])
        case kind if kind in RANGE_BASES:
            low, high, *ends = as_list(plain)
            bounds = [read_datum(RANGE_BASES[kind], bound) for bound in (low, high)]
            return (*bounds, *(end is True for end in ends))
        case Kind.MAP:
            assert sql_type.element is not None, "a map has a value type"
            entries = [as_list(entry) for entry in as_list(plain)]
            return tuple([(as_str(e[0]), read_datum(sql_type.element, e[1])) for e in entries])
        case Kind.RECORD:
            given = zip(sql_type.fields or (), as_list(plain), strict=True)
            return tuple([read_datum(field, part) for (_, field), part in given])
        case _:
            if isinstance(plain, list):
                raise UnreadablePlan(f"not a value of type {sql_type}: {plain!r}")
            return plain


def plain_row(types: Types, row: Row) -> Plain:
    """A row's datums in order."""
    return [plain_datum(sql_type, datum) for sql_type, datum in zip(types, row, strict=True)]


def read_row(types: Types, plain: Plain) -> Row:
    """Inverse of plain_row."""
    return tuple(
        [read_datum(sql_type, part) for sql_type, part in zip(types, as_list(plain), strict=True)]
    )


def plain_scalar(scalar: Scalar) -> Plain:
    """A scalar as nested lists, each starting with the name of its kind."""
    match scalar:
        case ColumnRef(index=index, type=sql_type):
            return ["column", index, plain_type(sql_type)]
        case OuterColumn(depth=depth, index=index, type=sql_type, nullable=nullable):
            return ["outer", depth, index, plain_type(sql_type), nullable]
        case Literal(value=value, type=sql_type):
            return ["literal", plain_datum(sql_type, value), plain_type(sql_type)]
        case Parameter(index=index, type=sql_type):
            return ["parameter", index, plain_type(sql_type)]
        case SessionCall(name=name, type=sql_type):
            return ["session", name, plain_type(sql_type)]
        case Call(function=function, arguments=arguments, type=sql_type):
            return ["call", function.signature, plain_scalars(arguments), plain_type(sql_type)]
        case And(arguments):
            return ["and", plain_scalars(arguments)]
        case Or(arguments):
            return ["or", plain_scalars(arguments)]
        case Case(branches=branches, otherwise=otherwise, type=sql_type):
            pairs: Plain = [plain_scalars(branch) for branch in branches]
            return ["case", pairs, plain_scalar(otherwise), plain_type(sql_type)]
        case Coalesce(arguments=arguments, type=sql_type):
            return ["coalesce", plain_scalars(arguments), plain_type(sql_type)]
        case IsNull(argument):
            return ["isnull", plain_scalar(argument)]
        case _:
            assert_never(scalar)


def read_scalar(plain: Plain, functions: FunctionLookup) -> Scalar:
    """Inverse of plain_scalar."""
    match plain:
        case ["column", int(index), sql_type]:
            return ColumnRef(index, read_type(sql_type))
        case ["outer", int(depth), int(index), sql_type, bool(nullable)]:
            return OuterColumn(depth, index, read_type(sql_type), nullable)
        case ["literal", value, sql_type]:
            literal_type = read_type(sql_type)
            return Literal(read_datum(literal_type, value), literal_type)
        case ["parameter", int(index), sql_type]:
            return Parameter(index, read_type(sql_type))
        case ["session", str(name), sql_type]:
            return SessionCall(name, read_type(sql_type))
        case ["call", str(signature), arguments, sql_type]:
            function = functions(signature)
            assert isinstance(function, ScalarFunction), f"{signature} is an aggregate"
            return Call(function, read_scalars(arguments, functions), read_type(sql_type))
        case ["and", arguments]:
            return And(read_scalars(arguments, functions))
        case ["or", arguments]:
            return Or(read_scalars(arguments, functions))
        case ["case", list(pairs), otherwise, sql_type]:
            branches = tuple(_read_branch(pair, functions) for pair in pairs)
            return Case(branches, read_scalar(otherwise, functions), read_type(sql_type))
        case ["coalesce", arguments, sql_type]:
            return Coalesce(read_scalars(arguments, functions), read_type(sql_type))
        case ["isnull", argument]:
            return IsNull(read_scalar(argument, functions))
        case _:
            raise UnreadablePlan(f"not a scalar: {plain!r}")


def plain_scalars(scalars: Sequence[Scalar]) -> Plain:
    """Scalars in order."""
    return [plain_scalar(scalar) for scalar in scalars]


def read_scalars(plain: Plain, functions: FunctionLookup) -> tuple[Scalar, ...]:
    """Inverse of plain_scalars."""
    return tuple([read_scalar(scalar, functions) for scalar in as_list(plain)])


def _read_branch(plain: Plain, functions: FunctionLookup) -> tuple[Scalar, Scalar]:
    condition, value = read_scalars(plain, functions)
    return condition, value


def as_list(plain: Plain) -> list[Plain]:
    """The list that must be here."""
    if not isinstance(plain, list):
        raise UnreadablePlan(f"not a list: {plain!r}")
    return plain


def as_int(plain: Plain) -> int:
    """The integer that must be here."""
    if not isinstance(plain, int):
        raise UnreadablePlan(f"not an integer: {plain!r}")
    return plain


def as_str(plain: Plain) -> str:
    """The text that must be here."""
    if not isinstance(plain, str):
        raise UnreadablePlan(f"not text: {plain!r}")
    return plain


def as_ints(plain: Plain) -> tuple[int, ...]:
    """The list of integers that must be here."""
    return tuple([as_int(part) for part in as_list(plain)])


def optional_int(plain: Plain) -> int | None:
    """The integer that may be here."""
    return None if plain is None else as_int(plain)
