"""Maps as text: `{a=>1,b=>NULL}`. A map datum is a tuple of (key, value) pairs in key order."""

import re
from collections.abc import Callable

from evertide.expr.array_text import quote_element
from evertide.vocab.datum import Datum
from evertide.vocab.errors import InvalidTextRepresentation

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PAIR = re.compile(
    rf'\s*({_QUOTED}|[^{{}}",\\\s=]+)\s*=>\s*({_QUOTED}|[^{{}}",\\]+?)\s*([,}}])', re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def map_text(pairs: Datum, format_value: Callable[[Datum], str]) -> str:
    """A map; `format_value` gives the text of a value that is not NULL."""
    assert isinstance(pairs, tuple), "a map is a tuple of pairs"
    parts = []
    for pair in pairs:
        assert isinstance(pair, tuple), "a map is a tuple of pairs"
        key, value = pair
        shown = "NULL" if value is None else quote_element(format_value(value))
        parts.append(f"{quote_element(str(key))}=>{shown}")
    return f"{{{','.join(parts)}}}"


def parse_map(text: str, parse_value: Callable[[str], Datum]) -> tuple[Datum, ...]:
    """The pairs of a map in key order; the last of equal keys wins."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        raise _malformed(text)
    if stripped[1:].strip() == "}":
        return ()
    pairs: dict[str, Datum] = {}
    position, closed = 1, False
    while not closed:
        matched = _PAIR.match(stripped, position)
        if matched is None:
            raise _malformed(text)
        key, value, end = matched.groups()
        pairs[_unquote(key)] = None if value.upper() == "NULL" else parse_value(_unquote(value))
        position, closed = matched.end(), end == "}"
    if position < len(stripped):
        raise _malformed(text)
    return tuple((key, pairs[key]) for key in sorted(pairs))


def _unquote(text: str) -> str:
    return _ESCAPE.sub(r"\1", text[1:-1]) if text.startswith('"') else text


def _malformed(text: str) -> InvalidTextRepresentation:
    return InvalidTextRepresentation(f'invalid input syntax for type map: "{text}"')
