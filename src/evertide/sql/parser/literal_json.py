"""Lists of constants turned into JSON, which is read many times faster than any grammar of ours.

A long list of constants differs from JSON in its parentheses, its quotes and little else, so the
whole text is changed at once. Whatever else stands in it is no JSON afterwards, and is left to the
grammar: text that this file accepts means to the grammar what it means here.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

_QUOTE: Final = ord("'")
# Stand for the two quotes that mean one within a string, while all other quotes are changed.
_PAIR: Final = b"\x01\x02"
_NO_JSON: Final = 0
_CONTROLS: Final = bytes(code for code in range(32) if chr(code) not in "\t\n\r")
_BREAKS: Final = {b"\n": b"\\n", b"\t": b"\\t", b"\r": b"\\r"}


def _table() -> npt.NDArray[np.uint8]:
    """What becomes of a byte outside of strings, and 256 further on what does within them."""
    outside = np.arange(256, dtype=np.uint8)
    for upper in range(ord("A"), ord("Z") + 1):
        outside[upper] = upper + 32  # NULL, TRUE and FALSE, and the E of numbers
    for blank in b"\t\n\r":
        outside[blank] = ord(" ")
    for code in b'[]{}:"\\':
        outside[code] = _NO_JSON
    outside[ord("(")], outside[ord(")")] = ord("["), ord("]")
    both = np.concatenate([outside, np.arange(256, dtype=np.uint8)])
    both[_QUOTE] = both[256 + _QUOTE] = ord('"')
    return both


_CHANGED: Final = _table()
_STRUCTURE: Final = np.zeros(512, dtype=np.uint8)
_STRUCTURE[[ord("("), ord(")"), ord(",")]] = list(b"(),")
# Numpy is the quicker way for texts that are longer than this, whose pieces would be many.
_SHORT_BYTES: Final = 16 * 1024
_CHANGED_OUTSIDE: Final = bytes(
    [*_CHANGED[:_QUOTE].tolist(), _QUOTE, *_CHANGED[_QUOTE + 1 : 256].tolist()]
)
_NO_STRUCTURE: Final = bytes(code for code in range(256) if code not in b"(),")
# Numbers and strings that hold nothing which means something outside of them, nor need an escape:
# most lists are that, and then no byte has to know where it stands. Something stands between two
# strings, else they are one that holds a quote.
_PLAIN = re.compile(rb"""[0-9 .,()\-]*+(?:'[^'(),\\"\x00-\x1f]*+'[0-9 .,()\-]++)*+""")
_CHANGED_PLAIN: Final = bytes.maketrans(b"()'", b'[]"')


class _Row(msgspec.Struct, array_like=True):
    """Takes any array and looks at it no further than to see that it is JSON."""


class _OneCell(msgspec.Struct, array_like=True):
    """The same with one value at least: commas alone do not tell none from one."""

    first: msgspec.Raw


_rows = msgspec.json.Decoder(list[_Row])
_rows_of_one = msgspec.json.Decoder(list[_OneCell])


@dataclass(frozen=True, slots=True)
class JsonRows:
    """An array of arrays of one length."""

    encoded: bytes
    width: int
    count: int


def rows_as_json(source: str) -> JsonRows | None:
    """`(1, 'a'), (2, NULL)` as JSON; None: these are not rows of constants, all of one length."""
    changed = _change(source)
    if changed is None:
        return None
    encoded, structure = changed
    row = structure[: structure.find(b")") + 1]
    count = structure.count(b"(")
    if structure != b",".join([row] * count):
        return None
    encoded = b"[" + encoded + b"]"
    try:
        (_rows_of_one if row == b"()" else _rows).decode(encoded)
    except msgspec.DecodeError:
        return None
    return JsonRows(encoded, len(row) - 1, count)


def _change(source: str) -> tuple[bytes, bytes] | None:
    """The text with every byte changed, and its parentheses and commas outside of strings."""
    raw = source.encode()
    if _PLAIN.fullmatch(raw) is not None:
        return raw.translate(_CHANGED_PLAIN), raw.translate(None, _NO_STRUCTURE)
    if len(raw.translate(None, _CONTROLS)) != len(raw):
        return None
    if b"\\" in raw:
        raw = raw.replace(b"\\", b"\\\\")
    if b'"' in raw:
        raw = raw.replace(b'"', b'\\"')
    doubled = b"''" in raw
    if not doubled and len(raw) <= _SHORT_BYTES:
        return _change_short(raw)
    text = np.frombuffer(raw, np.uint8)
    if doubled:
        text = _mark_pairs(text)
    inside = np.cumsum(text == _QUOTE, dtype=np.uint8)
    codes = (inside & 1).astype(np.uint16)
    codes <<= 8
    codes |= text
    encoded = _CHANGED.take(codes).tobytes()
    structure = _STRUCTURE.take(codes).tobytes().translate(None, b"\0")
    encoded = _escaped(encoded)
    return encoded.replace(_PAIR, b"'") if doubled else encoded, structure


def _change_short(raw: bytes) -> tuple[bytes, bytes]:
    """The same where no string holds a quote: every other piece between quotes is one."""
    pieces = raw.split(b"'")
    outside = b"'".join(pieces[::2])
    pieces[::2] = outside.translate(_CHANGED_OUTSIDE).split(b"'")
    return _escaped(b'"'.join(pieces)), outside.translate(None, _NO_STRUCTURE)


def _escaped(encoded: bytes) -> bytes:
    """With breaks as they are written in strings; outside of these there are none left."""
    for found, escaped in _BREAKS.items():
        if found in encoded:
            encoded = encoded.replace(found, escaped)
    return encoded


def _mark_pairs(text: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Two quotes mean one where the first would end a string: every other quote does, or would."""
    quotes = np.flatnonzero(text == _QUOTE)
    ends, starts = quotes[1:-1:2], quotes[2::2]
    pairs = ends[starts == ends + 1]
    marked = text.copy()
    marked[pairs], marked[pairs + 1] = _PAIR[0], _PAIR[1]
    return marked
