"""Functions of bytea and uuid."""

import base64
import binascii
import hashlib
from typing import Final

from evertide.expr.data_errors import ArraySubscriptError, SubstringError
from evertide.expr.functions.build import Body, partial, total
from evertide.expr.text_input import parse_text
from evertide.vocab.errors import InvalidParameterValue, InvalidTextRepresentation
from evertide.vocab.sql_type import BYTEA, INT4, INT8, TEXT

_BASE64_LINE: Final = 76


def _concatenate(left: bytes, right: bytes) -> bytes:
    return left + right


def _unrecognized(encoding: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"invalid encoding name '{encoding}'")


def encode(value: bytes, encoding: str) -> str:
    """Bytes as text."""
    match encoding.lower():
        case "hex":
            return value.hex()
        case "base64":
            text = base64.b64encode(value).decode()
            lines = (text[i : i + _BASE64_LINE] for i in range(0, len(text), _BASE64_LINE))
            return "\n".join(lines)
        case "escape":
            return "".join(map(_escaped, value))
    raise _unrecognized(encoding)


def _escaped(byte: int) -> str:
    """Only zero and bytes outside ASCII need an escape; the backslash is doubled."""
    if byte == 0x5C:
        return "\\\\"
    return f"\\{byte:03o}" if byte == 0 or byte > 0x7F else chr(byte)


def decode(text: str, encoding: str) -> bytes:
    """Inverse of encode."""
    match encoding.lower():
        case "hex":
            decoded = parse_text(BYTEA, "\\x" + text)
            assert isinstance(decoded, bytes)
            return decoded
        case "base64":
            return _decode_base64(text)
        case "escape":
            decoded = parse_text(BYTEA, text) if not text.startswith("\\x") else None
            if not isinstance(decoded, bytes):
                raise InvalidTextRepresentation("invalid input syntax for type bytea")
            return decoded
    raise _unrecognized(encoding)


def _decode_base64(text: str) -> bytes:
    compact = "".join(text.split())
    for symbol in compact:
        if not (symbol.isascii() and (symbol.isalnum() or symbol in "+/=")):
            raise InvalidParameterValue(
                f'invalid symbol "{symbol}" found while decoding base64 sequence'
            )
    try:
        return base64.b64decode(compact, validate=True)
    except binascii.Error:
        raise InvalidParameterValue("invalid base64 end sequence") from None


def _get_byte(value: bytes, index: int) -> int:
    if not 0 <= index < len(value):
        raise ArraySubscriptError(f"index {index} out of valid range, 0..{len(value) - 1}")
    return value[index]


def _get_bit(value: bytes, index: int) -> int:
    """Bits count from the lowest of the first byte."""
    if not 0 <= index < 8 * len(value):
        raise ArraySubscriptError(f"index {index} out of valid range, 0..{8 * len(value) - 1}")
    return value[index // 8] >> (index % 8) & 1


def _set_byte(value: bytes, index: int, new: int) -> bytes:
    if not 0 <= index < len(value):
        raise ArraySubscriptError(f"index {index} out of valid range, 0..{len(value) - 1}")
    return value[:index] + bytes([new & 0xFF]) + value[index + 1 :]


def _set_bit(value: bytes, index: int, new: int) -> bytes:
    if not 0 <= index < 8 * len(value):
        raise ArraySubscriptError(f"index {index} out of valid range, 0..{8 * len(value) - 1}")
    if new not in (0, 1):
        raise InvalidParameterValue("new bit must be 0 or 1")
    byte, bit = value[index // 8], 1 << (index % 8)
    return _set_byte(value, index // 8, byte | bit if new else byte & ~bit)


def _bit_count(value: bytes) -> int:
    return int.from_bytes(value).bit_count()


def _substring(value: bytes, start: int, length: int | None = None) -> bytes:
    if length is None:
        return value[max(start - 1, 0) :]
    if length < 0:
        raise SubstringError("negative substring length not allowed")
    return value[max(start - 1, 0) : max(start - 1 + length, 0)]


def _md5(value: bytes) -> str:
    return hashlib.md5(value, usedforsecurity=False).hexdigest()


_DIGESTS: Final[dict[str, Body]] = {
    "sha224": lambda value: hashlib.sha224(value).digest(),
    "sha256": lambda value: hashlib.sha256(value).digest(),
    "sha384": lambda value: hashlib.sha384(value).digest(),
    "sha512": lambda value: hashlib.sha512(value).digest(),
}

ROWS: Final = (
    total("length", (BYTEA,), INT4, len, "octet_length({0})"),
    total("octet_length", (BYTEA,), INT4, len, "octet_length({0})"),
    total("bit_length", (BYTEA,), INT4, lambda value: 8 * len(value)),
    total("||", (BYTEA, BYTEA), BYTEA, _concatenate, "concat({0}, {1})"),
    partial("encode", (BYTEA, TEXT), TEXT, encode),
    partial("decode", (TEXT, TEXT), BYTEA, decode),
    partial("get_byte", (BYTEA, INT4), INT4, _get_byte),
    partial("get_bit", (BYTEA, INT8), INT4, _get_bit),
    partial("set_byte", (BYTEA, INT4, INT4), BYTEA, _set_byte),
    partial("set_bit", (BYTEA, INT8, INT4), BYTEA, _set_bit),
    total("bit_count", (BYTEA,), INT8, _bit_count),
    *(total(name, (BYTEA, INT8), BYTEA, _substring) for name in ("substring", "substr")),
    *(partial(name, (BYTEA, INT8, INT8), BYTEA, _substring) for name in ("substring", "substr")),
    total("md5", (BYTEA,), TEXT, _md5, "md5({0})"),
    *(total(name, (BYTEA,), BYTEA, body) for name, body in _DIGESTS.items()),
)
