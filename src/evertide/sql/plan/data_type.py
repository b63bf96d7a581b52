"""Type names to types."""

from dataclasses import replace
from typing import assert_never

from evertide.catalog.objects import NamedType
from evertide.expr.dimensions import MOST_DIMENSIONS, with_dimensions
from evertide.sql.plan.context import QueryContext
from evertide.sql.resolve import find_type, position_of
from evertide.sql.syntax.expression import ArrayType, DataType, ListType, MapType, TypeName
from evertide.sql.type_words import NAMED, SYNONYMS, TYPE_SCHEMAS, is_system_type
from evertide.vocab.datum import NUMERIC_DIGITS
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    ProgramLimitExceeded,
    SqlSyntaxError,
    UndefinedObject,
)
from evertide.vocab.sql_type import Kind, SqlType, array_of

MOST_CHARACTERS = 10_485_760
MICROSECOND_DIGITS = 6


def resolve_type(node: DataType, query: QueryContext) -> SqlType:
    """The type that a type name means; a user's type becomes a dependency."""
    match node:
        case TypeName():
            return _named_type(node, query)
        case ArrayType(element=element, dimensions=dimensions):
            if dimensions > MOST_DIMENSIONS:
                raise ProgramLimitExceeded(
                    f"number of array dimensions ({dimensions}) exceeds the maximum allowed"
                    f" ({MOST_DIMENSIONS})",
                    position=position_of(node.at),
                )
            return with_dimensions(_array_of(resolve_type(element, query), node), dimensions)
        case ListType(element=element):
            return SqlType(Kind.LIST, element=resolve_type(element, query))
        case MapType(key=key, value=value):
            check_map_key(resolve_type(key, query), node.at)
            return SqlType(Kind.MAP, element=resolve_type(value, query))
        case _:
            assert_never(node)


def check_map_key(key: SqlType, at: int) -> None:
    """Text is all that maps are looked up by."""
    if key.kind is not Kind.TEXT:
        raise FeatureNotSupported(
            f"maps whose keys are of type {key} are not supported", position=position_of(at)
        )


def _array_of(element: SqlType, node: ArrayType) -> SqlType:
    if element.kind in (Kind.LIST, Kind.MAP, Kind.RECORD):
        raise FeatureNotSupported(
            f"arrays of type {element} are not supported",
            hint="Use a list.",
            position=position_of(node.at),
        )
    return array_of(element)


def _users_type(node: TypeName, query: QueryContext) -> SqlType | None:
    item = find_type(node.parts, query.plan.names)
    if item is None or not isinstance(item.definition, NamedType):
        return None
    if node.modifiers:
        raise SqlSyntaxError(
            f'type modifier is not allowed for type "{item.name}"', position=position_of(node.at)
        )
    query.dependencies[item.item_id] = None
    return replace(item.definition.type.to_sql_type(), name=item.name)


def _named_type(node: TypeName, query: QueryContext) -> SqlType:
    *schema, name = node.parts
    if not is_system_type(node.parts):
        found = _users_type(node, query)
        if found is not None:
            return found
    kind = NAMED.get(name)
    if name.startswith("_") and name[1:] in NAMED:
        return array_of(SqlType(NAMED[name[1:]]))
    if schema and name in SYNONYMS:  # words of the grammar, which no schema holds
        kind = None
    if [*schema, name][-2:] in (["record"], ["pg_catalog", "record"]):
        raise InvalidParameterValue(
            "cannot reference pseudo type pg_catalog.record", position=position_of(node.at)
        )
    if kind is None or (schema and schema[-1] not in TYPE_SCHEMAS):
        raise UndefinedObject(
            f'type "{".".join(node.parts)}" does not exist', position=position_of(node.at)
        )
    if node.fields and node.fields != "DAY TO SECOND":
        raise FeatureNotSupported(
            f"interval {node.fields} as a type is not supported",
            hint="Use plain interval.",
            position=position_of(node.at),
        )
    return _with_modifiers(kind, node)


def _with_modifiers(kind: Kind, node: TypeName) -> SqlType:
    match kind, node.modifiers:
        case _, ():
            return SqlType(kind)
        case Kind.NUMERIC, (precision, *rest) if len(rest) < 2:
            return _numeric(precision, rest[0] if rest else 0, node)
        case ((Kind.VARCHAR | Kind.BPCHAR), (length,)):
            return _characters(kind, length, node)
        case (Kind.FLOAT8, (bits,)) if node.parts[-1] == "float" and 0 < bits < 54:
            return SqlType(Kind.FLOAT4 if bits < 25 else Kind.FLOAT8)
        case ((Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME | Kind.INTERVAL), (digits,)):
            return _fractional(kind, digits, node)
        case _:
            raise SqlSyntaxError(
                f'type modifier is not allowed for type "{node.parts[-1]}"',
                position=position_of(node.at),
            )


def _numeric(precision: int, scale: int, node: TypeName) -> SqlType:
    if not 1 <= precision <= NUMERIC_DIGITS:
        raise InvalidParameterValue(
            f"precision for type numeric must be between 1 and {NUMERIC_DIGITS}",
            position=position_of(node.at),
        )
    if not 0 <= scale <= precision:
        raise InvalidParameterValue(
            f"scale for type numeric must be between 0 and precision {precision}",
            position=position_of(node.at),
        )
    return SqlType(Kind.NUMERIC, precision=precision, scale=scale)


def _characters(kind: Kind, length: int, node: TypeName) -> SqlType:
    if not 1 <= length <= MOST_CHARACTERS:
        raise InvalidParameterValue(
            f"length for type {SqlType(kind)} must be between 1 and {MOST_CHARACTERS}",
            position=position_of(node.at),
        )
    return SqlType(kind, length=length)


def _fractional(kind: Kind, digits: int, node: TypeName) -> SqlType:
    """Times and intervals with so many digits after the second."""
    if not 0 <= digits <= MICROSECOND_DIGITS:
        raise InvalidParameterValue(
            f"precision for type {kind.value} must be between 0 and {MICROSECOND_DIGITS}",
            position=position_of(node.at),
        )
    return SqlType(kind, precision=digits)
