"""Functions of text. Lengths and positions count characters, from 1."""

import hashlib
from collections.abc import Callable
from typing import Final

from evertide.expr.data_errors import SubstringError
from evertide.expr.functions.build import partial, total
from evertide.expr.functions.reserved_words import RESERVED_WORDS
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import BPCHAR
from evertide.vocab.errors import InvalidParameterValue, NumericOutOfRange, ProgramLimitExceeded
from evertide.vocab.sql_type import BOOL, INT4, INT8, TEXT

# One call may not make more text than this: a few of them in a row would use up the memory.
MAX_CHARACTERS: Final = 100 * 1024 * 1024
_LAST_SURROGATE: Final = 0xDFFF
_FIRST_SURROGATE: Final = 0xD800


def check_length(characters: int) -> None:
    """Refuse to make so much text in one call."""
    if characters > MAX_CHARACTERS:
        raise ProgramLimitExceeded("requested length too large")


def _concatenate(left: str, right: str) -> str:
    return left + right


def substring(text: str, start: int, length: int | None = None) -> str:
    """A part of text; a start before the text counts, so that the part may be shorter."""
    if length is None:
        return text[max(start - 1, 0) :]
    if length < 0:
        raise SubstringError("negative substring length not allowed")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _left(text: str, count: int) -> str:
    return text[:count]


def _right(text: str, count: int) -> str:
    if count == -(2**31):
        return text  # PostgreSQL negates it and gets it back
    if count < 0:
        return text[-count:]
    return text[max(len(text) - count, 0) :]


def _trim(text: str, characters: str = " ") -> str:
    return text.strip(characters) if characters else text


def _trim_left(text: str, characters: str = " ") -> str:
    return text.lstrip(characters) if characters else text


def _trim_right(text: str, characters: str = " ") -> str:
    return text.rstrip(characters) if characters else text


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    check_length(len(text) + text.count(old) * max(len(new) - len(old), 0))
    return text.replace(old, new)


def _position(text: str, part: str) -> int:
    return text.find(part) + 1


def split_part(text: str, delimiter: str, field: int) -> str:
    """The n-th field, from the end if n is negative; empty if there is none."""
    if field == 0:
        raise InvalidParameterValue("field position must be greater than zero")
    fields = text.split(delimiter) if delimiter else [text]
    index = field - 1 if field > 0 else len(fields) + field
    return fields[index] if 0 <= index < len(fields) else ""


def _repeat(text: str, count: int) -> str:
    check_length(len(text) * max(count, 0))
    return text * max(count, 0)


def _fill(length: int, fill: str) -> str:
    check_length(length)
    return (fill * (length // len(fill) + 1))[:length] if fill and length > 0 else ""


def _pad_left(text: str, length: int, fill: str = " ") -> str:
    kept = text[: max(length, 0)]
    return _fill(length - len(kept), fill) + kept


def _pad_right(text: str, length: int, fill: str = " ") -> str:
    kept = text[: max(length, 0)]
    return kept + _fill(length - len(kept), fill)


def initcap(text: str) -> str:
    """Each word with a capital; words are runs of letters and digits.

    >>> initcap("hi THOMAS o'neil 3rd")
    "Hi Thomas O'Neil 3rd"
    """
    result = []
    inside = False
    for character in text:
        result.append(character.lower() if inside else character.upper())
        inside = character.isalnum()
    return "".join(result)


def _translate(text: str, old: str, new: str) -> str:
    mapping: dict[str, str] = {}
    for index, character in enumerate(old):
        mapping.setdefault(character, new[index : index + 1])
    return "".join(mapping.get(character, character) for character in text)


def overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    """Text with so many characters from `start` on replaced; as many as the new ones by default."""
    if start <= 0:
        raise SubstringError("negative substring length not allowed")
    end = start + (len(new) if length is None else length)
    if end > 2**31 - 1:
        raise NumericOutOfRange("integer out of range")
    return text[: start - 1] + new + text[max(end - 1, 0) :]


def _character(code: int) -> str:
    if code < 0:
        raise InvalidParameterValue(f"requested character too large for encoding: {code}")
    if code == 0:
        raise ProgramLimitExceeded("null character not permitted")
    if code > 0x10FFFF:
        raise ProgramLimitExceeded(f"requested character too large for encoding: {code}")
    if _FIRST_SURROGATE <= code <= _LAST_SURROGATE:
        raise ProgramLimitExceeded(f"requested character not valid for encoding: {code}")
    return chr(code)


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _concat(*parts: str | None) -> str:
    return "".join(part for part in parts if part is not None)


def _concat_with_separator(separator: str | None, *parts: str | None) -> str | None:
    if separator is None:
        return None
    return separator.join(part for part in parts if part is not None)


def quote_identifier(text: str) -> str:
    """An identifier as SQL must write it."""
    plain = text.isascii() and text.replace("_", "a").isalnum() and text == text.lower()
    if plain and text and not text[0].isdigit() and text not in RESERVED_WORDS:
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def quote_literal(text: str) -> str:
    """Text as an SQL literal."""
    doubled = text.replace("'", "''")
    if "\\" in doubled:
        escaped = doubled.replace("\\", "\\\\")
        return f" E'{escaped}'".lstrip()
    return f"'{doubled}'"


def _quote_nullable(text: str | None) -> str:
    return "NULL" if text is None else quote_literal(text)


_LENGTH: Final = "char_length({0})"
_TAKE: Final = (TEXT, INT4)


def _lengths() -> list[ScalarFunction]:
    names = ("length", "char_length", "character_length")
    return [
        *(total(name, (TEXT,), INT4, len, _LENGTH) for name in names),
        total("octet_length", (TEXT,), INT4, lambda text: len(text.encode()), "octet_length({0})"),
        # The padding of a char(n) has bytes, although it has no length.
        total(
            "octet_length", (BPCHAR,), INT4, lambda text: len(text.encode()), "octet_length({0})"
        ),
        total("bit_length", (TEXT,), INT4, lambda text: 8 * len(text.encode())),
    ]


def _trims() -> list[ScalarFunction]:
    bodies: dict[str, tuple[Callable[..., str], str]] = {
        "btrim": (_trim, "trim({0})"),
        "trim": (_trim, "trim({0})"),
        "ltrim": (_trim_left, "ltrim({0})"),
        "rtrim": (_trim_right, "rtrim({0})"),
    }
    return [
        row
        for name, (body, spark) in bodies.items()
        for row in (
            total(name, (TEXT,), TEXT, body, spark),
            total(name, (TEXT, TEXT), TEXT, body),
        )
    ]


def _parts() -> list[ScalarFunction]:
    # Spark counts positions in 32 bits; no text is longer.
    tail = (
        "CASE WHEN {1} < 1 THEN {0} WHEN {1} <= 2147483647L "
        "THEN substring({0}, cast({1} as int)) WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN '' END"
    )
    return [
        *(total(name, (TEXT, INT8), TEXT, substring, tail) for name in ("substring", "substr")),
        *(partial(name, (TEXT, INT8, INT8), TEXT, substring) for name in ("substring", "substr")),
        total("left", _TAKE, TEXT, _left),
        total("right", _TAKE, TEXT, _right),
        partial("split_part", (TEXT, TEXT, INT8), TEXT, split_part),
        partial("overlay", (TEXT, TEXT, INT4), TEXT, overlay),
        partial("overlay", (TEXT, TEXT, INT4, INT4), TEXT, overlay),
    ]


def _tests() -> list[ScalarFunction]:
    both = (TEXT, TEXT)
    return [
        *(total(name, both, INT4, _position) for name in ("position", "strpos")),
        total("starts_with", both, BOOL, str.startswith, "startswith({0}, {1})"),
        total("^@", both, BOOL, str.startswith, "startswith({0}, {1})"),
    ]


ROWS: Final = (
    *_lengths(),
    *_trims(),
    *_parts(),
    *_tests(),
    total("lower", (TEXT,), TEXT, str.lower),
    total("upper", (TEXT,), TEXT, str.upper),
    total("initcap", (TEXT,), TEXT, initcap),
    total("reverse", (TEXT,), TEXT, lambda text: text[::-1], "reverse({0})"),
    total("||", (TEXT, TEXT), TEXT, _concatenate, "concat({0}, {1})"),
    partial("replace", (TEXT, TEXT, TEXT), TEXT, _replace),
    total("translate", (TEXT, TEXT, TEXT), TEXT, _translate),
    partial("repeat", _TAKE, TEXT, _repeat),
    partial("lpad", _TAKE, TEXT, _pad_left),
    partial("lpad", (TEXT, INT4, TEXT), TEXT, _pad_left),
    partial("rpad", _TAKE, TEXT, _pad_right),
    partial("rpad", (TEXT, INT4, TEXT), TEXT, _pad_right),
    partial("chr", (INT4,), TEXT, _character),
    total("ascii", (TEXT,), INT4, _ascii),
    total("md5", (TEXT,), TEXT, _md5, "md5(cast({0} as binary))"),
    total("quote_ident", (TEXT,), TEXT, quote_identifier),
    total("quote_literal", (TEXT,), TEXT, quote_literal),
    ScalarFunction("quote_nullable", (TEXT,), TEXT, _quote_nullable, strict=False),
    ScalarFunction("concat", (TEXT,), TEXT, _concat, strict=False, variadic=True),
    ScalarFunction(
        "concat_ws", (TEXT, TEXT), TEXT, _concat_with_separator, strict=False, variadic=True
    ),
)
