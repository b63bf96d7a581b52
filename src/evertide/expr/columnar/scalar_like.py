"""LIKE with a constant pattern: the cheapest Arrow function that does what the pattern says."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

# From an array of text to one of booleans, NULL where the text is.
Test: TypeAlias = Callable[[pa.Array], pa.Array]
# The characters between percent signs; None for any one character.
Piece: TypeAlias = tuple[str | None, ...]

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def like_test(pattern: str) -> Test | None:
    """Whether text matches the pattern; None for one that is an error."""
    pieces = _pieces(pattern)
    if pieces is None:
        return None
    if any(None in piece for piece in pieces):
        return _by_regex(pieces)
    texts = ["".join(character or "" for character in piece) for piece in pieces]
    if len(texts) == 1:
        return lambda text: pc.equal(text, texts[0])
    first, *between, last = texts
    between = [text for text in between if text]
    if not between:
        return _by_ends(first, last)
    if len(between) == 1 and not first and not last:
        return lambda text: pc.match_substring(text, between[0])
    return _by_regex(pieces)


def _pieces(pattern: str) -> list[Piece] | None:
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append([])
        elif character == "_":
            pieces[-1].append(None)
        elif character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                return None
            pieces[-1].append(escaped)
        else:
            pieces[-1].append(character)
    return [tuple(piece) for piece in pieces]


def _by_ends(first: str, last: str) -> Test:
    """Begins and ends so, and is long enough for both."""
    least = len(first.encode()) + len(last.encode())

    def test(text: pa.Array) -> pa.Array:
        if not last:
            return pc.starts_with(text, first)
        if not first:
            return pc.ends_with(text, last)
        ends = pc.and_(pc.starts_with(text, first), pc.ends_with(text, last))
        return pc.and_(ends, pc.greater_equal(pc.binary_length(text), least))

    return test


def _by_regex(pieces: Sequence[Piece]) -> Test:
    """In time proportional to the text: Arrow's regular expressions do not go back."""
    inner = ".*".join("".join(map(_one, piece)) for piece in pieces)
    expression = rf"(?s)\A{inner}\z"
    return lambda text: pc.match_substring_regex(text, expression)


def _one(character: str | None) -> str:
    if character is None:
        return "."
    return character if character in _PLAIN else rf"\x{{{ord(character):x}}}"
