"""jsonb: text to Python values and back to the one canonical text.

A JSON value is None, bool, Decimal (settled), str, list or dict. The canonical text has no blanks,
keys in byte order (the last of equal keys wins) and numbers as numeric prints them, so that equal
values are equal text.
"""

import json
from decimal import Decimal
from json.encoder import encode_basestring
from typing import TypeAlias

from evertide.expr.data_errors import UntranslatableCharacter
from evertide.expr.numeric_value import numeric_text, parse_numeric
from evertide.vocab.errors import InvalidTextRepresentation, NumericOutOfRange, StatementTooComplex

Json: TypeAlias = "bool | Decimal | str | list[Json] | dict[str, Json] | None"

MAX_DEPTH = 128


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(
    parse_float=parse_numeric, parse_int=parse_numeric, parse_constant=_refuse_constant
)


_CANONICAL_DECODER = json.JSONDecoder(parse_float=Decimal, parse_int=Decimal)


def load_json(text: str) -> Json:
    """The value that JSON text stands for."""
    try:
        value: Json = _DECODER.decode(text)
    except RecursionError:
        raise _too_deep() from None
    except NumericOutOfRange as problem:
        raise NumericOutOfRange(
            f"invalid input syntax for type jsonb: {problem.message} at line 1"
        ) from None
    except ValueError as problem:
        raise InvalidTextRepresentation(
            f'invalid input syntax for type jsonb: {_explanation(problem, text)}: "{text}"'
        ) from None
    _check(value, MAX_DEPTH)
    if "\\u" in text:
        _check_characters(value)
    return value


# Python's words for what is wrong, in the peer's: inside the text, and where it ends too early.
_EXPLANATIONS = {
    "Expecting value": ("expected value", "a value"),
    "Expecting property name": ("key must be a string", "an object"),
    "Illegal trailing comma": ("trailing comma", "an object"),
    "Expecting ',' delimiter": ("expected `,`", "a list"),
    "Expecting ':' delimiter": ("expected `:`", "an object"),
    "Unterminated string": ("EOF while parsing a string", "a string"),
    "Invalid control character": ("control character found while parsing a string", "a string"),
    "Invalid \\": ("invalid escape", "a string"),
    "Extra data": ("trailing characters", "a value"),
}


def _explanation(problem: ValueError, text: str) -> str:
    if not isinstance(problem, json.JSONDecodeError):
        return str(problem)
    inside, unfinished = next(
        (words for start, words in _EXPLANATIONS.items() if problem.msg.startswith(start)),
        (problem.msg, "a value"),
    )
    if problem.pos < len(text.rstrip()) and not inside.startswith("EOF"):
        return f"{inside} at line {problem.lineno} column {problem.colno}"
    return f"EOF while parsing {unfinished} at line {problem.lineno} column {problem.colno - 1}"


def _too_deep() -> StatementTooComplex:
    return StatementTooComplex(f"jsonb nested deeper than {MAX_DEPTH} levels")


def _check(value: Json, depth: int) -> None:
    if not isinstance(value, list | dict):
        return
    if depth == 0:
        raise _too_deep()
    for inner in value if isinstance(value, list) else value.values():
        _check(inner, depth - 1)


def _check_characters(value: Json) -> None:
    """Escapes can spell what text cannot hold: NUL and halves of surrogate pairs."""
    if isinstance(value, str):
        if "\0" in value:
            raise UntranslatableCharacter("unsupported Unicode escape sequence")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise InvalidTextRepresentation(
                "invalid input syntax for type jsonb: lone surrogate in Unicode escape"
            )
    elif isinstance(value, list):
        for inner in value:
            _check_characters(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_characters(key)
            _check_characters(inner)


def dump_json(value: Json) -> str:
    """The canonical text of a JSON value.

    >>> dump_json(load_json('{"b": 1.50, "a": [true, null], "b": 100e-1}'))
    '{"a":[true,null],"b":10}'
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return numeric_text(value)
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, list):
        return f"[{','.join(map(dump_json, value))}]"
    # Code point order is the byte order of UTF-8.
    pairs = (f"{encode_basestring(key)}:{dump_json(value[key])}" for key in sorted(value))
    return f"{{{','.join(pairs)}}}"


def parse_jsonb(text: str) -> str:
    """The canonical text of the value that JSON text stands for."""
    return dump_json(load_json(text))


def read_canonical(text: str) -> Json:
    """The value of text that is canonical already: no need to check it again."""
    value: Json = _CANONICAL_DECODER.decode(text)
    return value
