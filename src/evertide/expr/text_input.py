"""Text to datums: what PostgreSQL calls a type's input function."""

import re
from collections.abc import Callable
from functools import lru_cache

from evertide.expr.array_text import ArrayReader, MalformedLiteral
from evertide.expr.datetime_text import (
    parse_date,
    parse_time,
    parse_timestamp,
    parse_timestamptz,
)
from evertide.expr.dimensions import dimension_count, is_nested, regular
from evertide.expr.float_text import parse_float4, parse_float8
from evertide.expr.interval_text import parse_interval
from evertide.expr.json_value import parse_jsonb
from evertide.expr.map_text import parse_map
from evertide.expr.numeric_value import parse_integer, parse_numeric
from evertide.expr.range_text import parse_range
from evertide.expr.type_modifier import (
    fit_bpchar,
    fit_char,
    fit_interval,
    fit_name,
    fit_numeric,
    fit_timestamp,
    fit_varchar,
    round_micros,
)
from evertide.expr.type_names import type_oid
from evertide.vocab.datum import Datum
from evertide.vocab.errors import (
    CharacterNotInRepertoire,
    FeatureNotSupported,
    InvalidDatetimeFormat,
    InvalidParameterValue,
    InvalidTextRepresentation,
    SqlError,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
)
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

Parser = Callable[[str], Datum]

_RANGES: dict[Kind, tuple[int, int]] = {
    Kind.INT2: (-(2**15), 2**15 - 1),
    Kind.INT4: (-(2**31), 2**31 - 1),
    Kind.INT8: (-(2**63), 2**63 - 1),
    Kind.UINT2: (0, 2**16 - 1),
    Kind.UINT4: (0, 2**32 - 1),
    Kind.UINT8: (0, 2**64 - 1),
    Kind.OID: (0, 2**32 - 1),
}
_TRUE = {"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"}
_FALSE = {"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"}
_UUID = re.compile(r"(\{)?((?:[0-9a-f]{4}-?){7}[0-9a-f]{4})(?(1)\})", re.ASCII | re.IGNORECASE)
_BYTEA_ESCAPE = re.compile(rb"\\(\\|[0-3][0-7]{2})?")
_BETWEEN_BYTES = re.compile(r"[ \t\r\n]*(\S\S|\Z)")
_DIGITS = re.compile(r"\s*\d+\s*", re.ASCII)


def parse_text(sql_type: SqlType, text: str) -> Datum:
    """The value of a type that text stands for; modifiers are applied as for an assignment."""
    return parser(sql_type)(text)


@lru_cache(maxsize=512)
def parser(sql_type: SqlType) -> Parser:
    """The function that reads values of a type."""
    if sql_type.kind in (Kind.ARRAY, Kind.LIST):
        return _nested_parser(sql_type)
    if sql_type.kind is Kind.MAP:
        return _map_parser(sql_type)
    if sql_type.kind in RANGE_BASES:
        return parse_range(sql_type)
    if sql_type.kind in _RANGES:
        return _integer_parser(sql_type)
    if sql_type.precision is not None or sql_type.length is not None:
        return _modified_parser(sql_type)
    found = _PARSERS.get(sql_type.kind)
    if found is None:
        raise FeatureNotSupported(f"input of a value of type {sql_type} is not supported")
    return found


def _integer_parser(sql_type: SqlType) -> Parser:
    least, greatest = _RANGES[sql_type.kind]
    name = str(sql_type)
    if sql_type.kind is Kind.OID:  # PostgreSQL takes it from the other end, too
        return lambda text: parse_integer(text, name, -(2**31), greatest) % 2**32
    return lambda text: parse_integer(text, name, least, greatest)


def _modified_parser(sql_type: SqlType) -> Parser:
    length = sql_type.length or 0
    match sql_type.kind:
        case Kind.NUMERIC:
            precision, scale = sql_type.precision or 0, sql_type.scale or 0
            return lambda text: fit_numeric(parse_numeric(text), precision, scale)
        case Kind.VARCHAR:
            return lambda text: fit_varchar(_text(text), length, explicit=False)
        case Kind.BPCHAR:
            return lambda text: fit_bpchar(_text(text), length, explicit=False)
        case Kind.TIME:
            return lambda text: round_micros(parse_time(text), sql_type.precision or 0)
        case Kind.TIMESTAMP:
            return lambda text: fit_timestamp(parse_timestamp(text), sql_type.precision or 0)
        case Kind.TIMESTAMPTZ:
            return lambda text: fit_timestamp(parse_timestamptz(text), sql_type.precision or 0)
        case Kind.INTERVAL:
            return lambda text: fit_interval(parse_interval(text), sql_type.precision or 0)
        case _:
            return _PARSERS[sql_type.kind]


def _nested_parser(sql_type: SqlType) -> Parser:
    assert sql_type.element is not None, "an array has an element type"
    parse_element, word = parser(sql_type.element), sql_type.kind.value
    if is_nested(sql_type):
        return _dimensions_parser(sql_type, parse_element)
    braced = sql_type.element.is_braced
    return lambda text: ArrayReader(text, parse_element, word, braced=braced).read()


def _dimensions_parser(sql_type: SqlType, parse_element: Parser) -> Parser:
    count = dimension_count(sql_type)

    def parse(text: str) -> Datum:
        try:
            found = regular(ArrayReader(text, parse_element, braced=True).read(), count)
        except MalformedLiteral:  # some part of it, perhaps: the whole is what was written
            raise MalformedLiteral(f'malformed array literal: "{text}"') from None
        if found is None:  # or there is a NULL where an array should be
            raise MalformedLiteral(
                f'malformed array literal: "{text}"',
                detail="Multidimensional arrays must have sub-arrays with matching dimensions.",
            )
        return found

    return parse


def _map_parser(sql_type: SqlType) -> Parser:
    assert sql_type.element is not None, "a map has a value type"
    parse_value, braced = parser(sql_type.element), sql_type.element.is_braced
    return lambda text: parse_map(text, parse_value, braced=braced)


def _text(text: str) -> str:
    if "\0" in text:
        raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    return text


def _name(text: str) -> str:
    return fit_name(_text(text))


def _char(text: str) -> str:
    return fit_char(_text(text))


def _bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise InvalidTextRepresentation(f'invalid input syntax for type boolean: "{text}"')


def _uuid(text: str) -> bytes:
    matched = _UUID.fullmatch(text)
    if matched is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type uuid: "{text}"')
    return bytes.fromhex(matched.group(2).replace("-", ""))


def _bytea(text: str) -> bytes:
    return _bytea_hex(text[2:]) if text.startswith("\\x") else _bytea_escaped(text)


def _bytea_hex(digits: str) -> bytes:
    # Blanks may stand between bytes, not in one.
    digits = _BETWEEN_BYTES.sub(r"\1", digits)
    for digit in digits:
        if digit not in "0123456789abcdefABCDEF":
            raise InvalidParameterValue(f'invalid hexadecimal digit: "{digit}"')
    if len(digits) % 2:
        raise InvalidParameterValue("invalid hexadecimal data: odd number of digits")
    return bytes.fromhex(digits)


def _bytea_escaped(text: str) -> bytes:
    def unescape(matched: re.Match[bytes]) -> bytes:
        code = matched.group(1)
        if code is None:
            raise InvalidTextRepresentation("invalid input syntax for type bytea")
        return code if code == b"\\" else bytes([int(code, 8)])

    return _BYTEA_ESCAPE.sub(unescape, text.encode())


def _mz_timestamp(text: str) -> int:
    """Milliseconds, or a timestamp."""
    if _DIGITS.fullmatch(text):
        return parse_integer(text, "mz_timestamp", 0, 2**63 - 1)
    try:
        return parse_timestamptz(text) // 1000
    except InvalidDatetimeFormat:
        message = f'invalid input syntax for type mz_timestamp: "{text}"'
        raise InvalidTextRepresentation(message) from None


def _registered(word: str, missing: type[SqlError]) -> Parser:
    """Names of catalog objects are resolved where the catalog is known; here only their numbers."""

    def parse(text: str) -> int:
        if text == "-":
            return 0
        if _DIGITS.fullmatch(text):
            return parse_integer(text, "oid", *_RANGES[Kind.OID])
        raise missing(f'{word} "{text}" does not exist')

    return parse


def _regtype(text: str) -> int:
    if text == "-":
        return 0
    if _DIGITS.fullmatch(text):
        return parse_integer(text, "oid", *_RANGES[Kind.OID])
    oid = type_oid(text)
    if oid is None:
        raise UndefinedObject(f'type "{text}" does not exist')
    return oid


_PARSERS: dict[Kind, Parser] = {
    Kind.BOOL: _bool,
    Kind.FLOAT4: parse_float4,
    Kind.FLOAT8: parse_float8,
    Kind.NUMERIC: parse_numeric,
    Kind.TEXT: _text,
    Kind.VARCHAR: _text,
    Kind.BPCHAR: _text,
    Kind.UNKNOWN: _text,
    Kind.NAME: _name,
    Kind.CHAR: _char,
    Kind.BYTEA: _bytea,
    Kind.DATE: parse_date,
    Kind.TIME: parse_time,
    Kind.TIMESTAMP: parse_timestamp,
    Kind.TIMESTAMPTZ: parse_timestamptz,
    Kind.INTERVAL: parse_interval,
    Kind.UUID: _uuid,
    Kind.JSONB: parse_jsonb,
    Kind.REGCLASS: _registered("relation", UndefinedTable),
    Kind.REGPROC: _registered("function", UndefinedFunction),
    Kind.REGTYPE: _regtype,
    Kind.MZ_TIMESTAMP: _mz_timestamp,
}
