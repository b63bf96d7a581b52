"""Arrays and lists as text: `{1,NULL,"a b"}`, with PostgreSQL's quoting.

What has braces of its own, a list or a map, stands in them as it is: `{{1},{2,3}}`.
"""

import re
from collections.abc import Callable

from evertide.vocab.datum import Datum
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidTextRepresentation,
)

BLANKS = " \t\n\r\v\f"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BARE = re.compile(r'(?:[^{}",\\]|\\.)+', re.DOTALL)
_BRACE = re.compile(r'[{}]|"(?:[^"\\]|\\.)*"|\\.', re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[{}",\\ \t\n\r\v\f]|^$|^null$', re.IGNORECASE)
_BOUNDS = re.compile(r"\s*(?:\[\s*[+-]?\d+\s*(?::\s*[+-]?\d+\s*)?\])+\s*=", re.ASCII)


def quote_element(text: str) -> str:
    """An element's text, quoted where it would otherwise be read differently."""
    if not _NEEDS_QUOTES.search(text):
        return text
    return f'"{escape_element(text)}"'


def escape_element(text: str) -> str:
    """What stands between an element's quotes."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def array_text(
    elements: Datum, format_element: Callable[[Datum], str], *, braced: bool = False
) -> str:
    """An array or list; `format_element` gives the text of a non-NULL element.

    `braced`: that text has braces of its own, and is not quoted.
    """
    assert isinstance(elements, tuple), "an array is a tuple"
    parts = []
    for element in elements:
        if element is None:
            parts.append("NULL")
        else:
            shown = format_element(element)
            parts.append(shown if braced else quote_element(shown))
    return f"{{{','.join(parts)}}}"


def braces_end(text: str, start: int) -> int | None:
    """Where the braces that open at `start` are closed; quoted ones do not count."""
    depth = 0
    for found in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if not depth:
            return found.end()
    return None


class MalformedLiteral(InvalidTextRepresentation):
    """The braces, commas and quotes are at fault, not some element."""


class ArrayReader:
    """Reads one array literal."""

    def __init__(
        self,
        text: str,
        parse_element: Callable[[str], Datum],
        type_word: str = "array",
        *,
        braced: bool = False,
    ) -> None:
        self._text = text
        self._position = 0
        self._parse_element = parse_element
        self._type_word = type_word
        # Elements have braces of their own.
        self._braced = braced

    def read(self) -> tuple[Datum, ...]:
        """All elements."""
        bounds = _BOUNDS.match(self._text)
        if bounds is not None:
            self._position = bounds.end()
        self._skip_blanks()
        elements = self._read_braces()
        self._skip_blanks()
        if self._position < len(self._text):
            raise self._malformed()
        return elements

    def _malformed(self) -> MalformedLiteral:
        return MalformedLiteral(f'malformed {self._type_word} literal: "{self._text}"')

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _skip_blanks(self) -> None:
        while self._peek() and self._peek() in BLANKS:
            self._position += 1

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._position += 1
        return True

    def _read_braces(self) -> tuple[Datum, ...]:
        if not self._take("{"):
            raise self._malformed()
        self._skip_blanks()
        if self._take("}"):
            return ()
        elements = [self._read_element()]
        while self._take(","):
            elements.append(self._read_element())
        if not self._take("}"):
            raise self._malformed()
        return tuple(elements)

    def _read_element(self) -> Datum:
        self._skip_blanks()
        element = self._read_nested() if self._peek() == "{" else self._read_scalar()
        self._skip_blanks()
        return element

    def _read_nested(self) -> Datum:
        if not self._braced:
            if self._type_word == "array":
                raise FeatureNotSupported(
                    "an array of several dimensions has a type that says so",
                    hint="Write the type with as many brackets, for example integer[][].",
                )
            raise self._malformed()
        start, end = self._position, braces_end(self._text, self._position)
        if end is None:
            raise self._malformed()
        self._position = end
        return self._parse_element(self._text[start:end])

    def _read_scalar(self) -> Datum:
        quoted = _QUOTED.match(self._text, self._position)
        matched = quoted or _BARE.match(self._text, self._position)
        if matched is None:
            raise self._malformed()
        self._position = matched.end()
        if quoted is not None:
            return self._parse_element(_ESCAPE.sub(r"\1", quoted.group(1)))
        bare = matched.group().rstrip(BLANKS)
        if not bare:
            raise self._malformed()
        if bare.upper() == "NULL":
            return None
        return self._parse_element(_ESCAPE.sub(r"\1", bare))
