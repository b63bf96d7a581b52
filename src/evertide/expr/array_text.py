"""Arrays, lists and maps as text: `{1,NULL,"a b"}`, `{a=>1}`, with PostgreSQL's quoting.

A list of lists is a tuple of tuples and nested braces.
"""

import re
from collections.abc import Callable

from evertide.vocab.datum import Datum
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidTextRepresentation,
    ProgramLimitExceeded,
)

# Lists may be nested; arrays have one dimension.
MAX_DEPTH = 64

_BLANKS = " \t\n\r\v\f"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BARE = re.compile(r'(?:[^{}",\\]|\\.)+', re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[{}",\\ \t\n\r\v\f]|^$|^null$', re.IGNORECASE)
_BOUNDS = re.compile(r"\s*(?:\[\s*[+-]?\d+\s*(?::\s*[+-]?\d+\s*)?\])+\s*=", re.ASCII)


def quote_element(text: str) -> str:
    """An element's text, quoted where it would otherwise be read differently."""
    if not _NEEDS_QUOTES.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def array_text(elements: Datum, format_element: Callable[[Datum], str]) -> str:
    """An array or list; `format_element` gives the text of a non-NULL element."""
    assert isinstance(elements, tuple), "an array is a tuple"
    parts = []
    for element in elements:
        if element is None:
            parts.append("NULL")
        elif type(element) is tuple:  # an Interval is a tuple too, but an element
            parts.append(array_text(element, format_element))
        else:
            parts.append(quote_element(format_element(element)))
    return f"{{{','.join(parts)}}}"


class ArrayReader:
    """Reads one array literal."""

    def __init__(
        self, text: str, parse_element: Callable[[str], Datum], type_word: str = "array"
    ) -> None:
        self._text = text
        self._position = 0
        self._parse_element = parse_element
        self._type_word = type_word

    def read(self) -> tuple[Datum, ...]:
        """All elements; nested braces give nested tuples."""
        bounds = _BOUNDS.match(self._text)
        if bounds is not None:
            self._position = bounds.end()
        self._skip_blanks()
        elements = self._read_braces(depth=1)
        self._skip_blanks()
        if self._position < len(self._text):
            raise self._malformed()
        return elements

    def _malformed(self) -> InvalidTextRepresentation:
        return InvalidTextRepresentation(f'malformed {self._type_word} literal: "{self._text}"')

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _skip_blanks(self) -> None:
        while self._peek() and self._peek() in _BLANKS:
            self._position += 1

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._position += 1
        return True

    def _read_braces(self, depth: int) -> tuple[Datum, ...]:
        if depth > MAX_DEPTH:
            raise ProgramLimitExceeded(f"list nested deeper than {MAX_DEPTH} levels")
        if not self._take("{"):
            raise self._malformed()
        self._skip_blanks()
        if self._take("}"):
            return ()
        elements = [self._read_element(depth)]
        while self._take(","):
            elements.append(self._read_element(depth))
        if not self._take("}"):
            raise self._malformed()
        return tuple(elements)

    def _read_element(self, depth: int) -> Datum:
        self._skip_blanks()
        element: Datum
        if self._peek() == "{":
            if self._type_word == "array":
                raise FeatureNotSupported("arrays of several dimensions are not supported")
            element = self._read_braces(depth + 1)
        else:
            element = self._read_scalar()
        self._skip_blanks()
        return element

    def _read_scalar(self) -> Datum:
        quoted = _QUOTED.match(self._text, self._position)
        matched = quoted or _BARE.match(self._text, self._position)
        if matched is None:
            raise self._malformed()
        self._position = matched.end()
        if quoted is not None:
            return self._parse_element(_ESCAPE.sub(r"\1", quoted.group(1)))
        bare = matched.group().rstrip(_BLANKS)
        if not bare:
            raise self._malformed()
        if bare.upper() == "NULL":
            return None
        return self._parse_element(_ESCAPE.sub(r"\1", bare))
