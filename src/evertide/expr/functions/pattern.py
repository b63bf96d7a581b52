"""LIKE and ILIKE. Matching takes time proportional to text times pattern, whatever they are."""

import re
from functools import lru_cache
from typing import Final, TypeAlias

from evertide.expr.data_errors import InvalidEscapeSequence
from evertide.expr.functions.build import Body, partial
from evertide.expr.functions.type_groups import BPCHAR
from evertide.vocab.sql_type import BOOL, TEXT

# A pattern between percent signs: of fixed length, so that its leftmost place is always the best.
Piece: TypeAlias = re.Pattern[str]


@lru_cache(maxsize=1024)
def _pieces(pattern: str) -> tuple[Piece, ...]:
    """The pattern cut at its percent signs; one piece only if it has none."""
    pieces: list[str] = [""]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append("")
        elif character == "_":
            pieces[-1] += "."
        elif character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise InvalidEscapeSequence("LIKE pattern must not end with escape character")
            pieces[-1] += re.escape(escaped)
        else:
            pieces[-1] += re.escape(character)
    return tuple(re.compile(piece, re.DOTALL) for piece in pieces)


def like(text: str, pattern: str) -> bool:
    """Whether text matches: the first piece at the start, the last at the end, others in between.

    >>> like("abcd", "a%_d"), like("abcd", "a%e"), like("a%", "a\\\\%"), like("", "%")
    (True, False, True, True)
    """
    pieces = _pieces(pattern)
    if len(pieces) == 1:
        return pieces[0].fullmatch(text) is not None
    start = pieces[0].match(text)
    if start is None:
        return False
    position = start.end()
    for piece in pieces[1:-1]:
        found = piece.search(text, position)
        if found is None:
            return False
        position = found.end()
    return _ends_with(text, position, pieces[-1])


def _ends_with(text: str, position: int, piece: Piece) -> bool:
    """Pieces have one length each, so there is one place where the last can stand."""
    length = _length(piece.pattern)
    start = len(text) - length
    return start >= position and piece.fullmatch(text, start) is not None


@lru_cache(maxsize=1024)
def _length(escaped: str) -> int:
    return len(re.sub(r"\\(.)", r"\1", escaped, flags=re.DOTALL))


def _like_ignoring_case(text: str, pattern: str) -> bool:
    return like(text.lower(), pattern.lower())


def like_escape(pattern: str, escape: str) -> str:
    """A pattern with another escape character, rewritten to have the usual one.

    >>> like_escape("a!%b\\\\", "!")
    'a\\\\%b\\\\\\\\'
    """
    if len(escape) > 1:
        raise InvalidEscapeSequence("invalid escape string")
    if escape == "\\":
        return pattern
    result = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            result.append("\\" if escaped is None else "\\" + escaped)
        else:
            result.append("\\\\" if character == "\\" else character)
    return "".join(result)


def _unlike(text: str, pattern: str) -> bool:
    return not like(text, pattern)


def _unlike_ignoring_case(text: str, pattern: str) -> bool:
    return not _like_ignoring_case(text, pattern)


_BODIES: Final[dict[str, Body]] = {
    "~~": like,
    "!~~": _unlike,
    "~~*": _like_ignoring_case,
    "!~~*": _unlike_ignoring_case,
}

ROWS: Final = (
    *(partial(name, (TEXT, TEXT), BOOL, body) for name, body in _BODIES.items()),
    # Patterns see the padding of a char(n), unlike comparisons.
    *(partial(name, (BPCHAR, TEXT), BOOL, body) for name, body in _BODIES.items()),
    partial("like_escape", (TEXT, TEXT), TEXT, like_escape),
)
