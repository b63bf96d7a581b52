"""Maps as text: `{a=>1,b=>NULL}`. A map datum is a tuple of (key, value) pairs in key order.

What has an equals sign in it is quoted, so that it is not taken for an arrow.
"""

import re
from collections.abc import Callable

from evertide.expr.array_text import BLANKS, braces_end, escape_element, quote_element
from evertide.vocab.datum import Datum
from evertide.vocab.errors import InvalidTextRepresentation

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_KEY = re.compile(rf'\s*({_QUOTED}|[^{{}}",\\\s=]+)\s*=>\s*', re.DOTALL | re.ASCII)
_VALUE = re.compile(rf'({_QUOTED}|[^{{}}",\\]+)', re.DOTALL)
_END = re.compile(r"\s*([,}])", re.ASCII)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def map_text(pairs: Datum, format_value: Callable[[Datum], str], *, braced: bool = False) -> str:
    """A map; `format_value` gives the text of a value that is not NULL.

    `braced`: that text has braces of its own, and is not quoted.
    """
    assert isinstance(pairs, tuple), "a map is a tuple of pairs"
    parts = []
    for pair in pairs:
        assert isinstance(pair, tuple), "a map is a tuple of pairs"
        key, value = pair
        shown = "NULL" if value is None else format_value(value)
        quoted = shown if braced or value is None else _quoted(shown)
        parts.append(f"{_quoted(str(key))}=>{quoted}")
    return f"{{{','.join(parts)}}}"


def parse_map(
    text: str, parse_value: Callable[[str], Datum], *, braced: bool = False
) -> tuple[Datum, ...]:
    """The pairs of a map in key order; the last of equal keys wins."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        raise _malformed(text)
    if stripped[1:].strip() == "}":
        return ()
    pairs: dict[str, Datum] = {}
    position, closed = 1, False
    while not closed:
        key = _KEY.match(stripped, position)
        if key is None:
            raise _malformed(text)
        value, position = _read_value(stripped, key.end(), braced=braced)
        end = _END.match(stripped, position)
        if not value or end is None:
            raise _malformed(text)
        is_null = value.upper() == "NULL"
        pairs[_unquote(key.group(1))] = None if is_null else parse_value(_unquote(value))
        position, closed = end.end(), end.group(1) == "}"
    if position < len(stripped):
        raise _malformed(text)
    return tuple((key, pairs[key]) for key in sorted(pairs))


def _read_value(text: str, start: int, *, braced: bool) -> tuple[str, int]:
    """A value's text and where it ends; empty: there is none."""
    if braced and text[start : start + 1] == "{":
        end = braces_end(text, start)
        return ("", start) if end is None else (text[start:end], end)
    found = _VALUE.match(text, start)
    return ("", start) if found is None else (found.group().rstrip(BLANKS), found.end())


def _quoted(text: str) -> str:
    return f'"{escape_element(text)}"' if "=" in text else quote_element(text)


def _unquote(text: str) -> str:
    return _ESCAPE.sub(r"\1", text[1:-1]) if text.startswith('"') else text


def _malformed(text: str) -> InvalidTextRepresentation:
    return InvalidTextRepresentation(f'invalid input syntax for type map: "{text}"')
