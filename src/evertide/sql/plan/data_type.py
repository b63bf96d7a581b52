"""Type names to types."""

from typing import assert_never

from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import ArrayType, DataType, ListType, MapType, TypeName
from evertide.vocab.datum import NUMERIC_DIGITS
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    SqlSyntaxError,
    UndefinedObject,
)
from evertide.vocab.sql_type import Kind, SqlType, array_of

_SYNONYMS: dict[str, Kind] = {
    "boolean": Kind.BOOL,
    "smallint": Kind.INT2,
    "int": Kind.INT4,
    "integer": Kind.INT4,
    "bigint": Kind.INT8,
    "real": Kind.FLOAT4,
    "float": Kind.FLOAT8,
    "double": Kind.FLOAT8,
    "decimal": Kind.NUMERIC,
    "dec": Kind.NUMERIC,
    "string": Kind.TEXT,
    "bytes": Kind.BYTEA,
    "json": Kind.JSONB,
}
# No value is of these types unless something around it says more.
_NOT_NAMEABLE = {Kind.ARRAY, Kind.LIST, Kind.MAP, Kind.RECORD, Kind.UNKNOWN}
_NAMED: dict[str, Kind] = {
    **{kind.value: kind for kind in Kind if kind not in _NOT_NAMEABLE},
    **_SYNONYMS,
}
_TYPE_SCHEMAS = {"pg_catalog", "mz_catalog"}
MOST_CHARACTERS = 10_485_760
MICROSECOND_DIGITS = 6


def resolve_type(node: DataType) -> SqlType:
    """The type that a type name means."""
    match node:
        case TypeName():
            return _named_type(node)
        case ArrayType(element=element, dimensions=dimensions):
            if dimensions > 1:
                raise FeatureNotSupported(
                    "arrays of several dimensions are not supported", position=position_of(node.at)
                )
            return array_of(resolve_type(element))
        case ListType(element=element):
            return SqlType(Kind.LIST, element=resolve_type(element))
        case MapType(value=value):
            return SqlType(Kind.MAP, element=resolve_type(value))
        case _:
            assert_never(node)


def _named_type(node: TypeName) -> SqlType:
    *schema, name = node.parts
    kind = _NAMED.get(name)
    if name.startswith("_") and name[1:] in _NAMED:
        return array_of(SqlType(_NAMED[name[1:]]))
    if schema and name in _SYNONYMS:  # words of the grammar, which no schema holds
        kind = None
    if [*schema, name][-2:] in (["record"], ["pg_catalog", "record"]):
        raise InvalidParameterValue(
            "cannot reference pseudo type pg_catalog.record", position=position_of(node.at)
        )
    if kind is None or (schema and schema[-1] not in _TYPE_SCHEMAS):
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
    """Only the full precision is a type here: nothing would cut values to less."""
    if not 0 <= digits <= MICROSECOND_DIGITS:
        raise InvalidParameterValue(
            f"precision for type {kind.value} must be between 0 and {MICROSECOND_DIGITS}",
            position=position_of(node.at),
        )
    if digits < MICROSECOND_DIGITS:
        raise FeatureNotSupported(
            f"type {kind.value}({digits}) is not supported",
            hint=f"Use {kind.value}, which keeps microseconds.",
            position=position_of(node.at),
        )
    return SqlType(kind)
