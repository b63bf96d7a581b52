"""Rows as text: `(1,"a b",)`; a field that is NULL has no text at all."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from evertide.vocab.datum import Datum

# A field with any of these, or none at all, is quoted.
_SPECIAL: Final = re.compile(r'[\s"\\(),]')


def record_text(datum: Datum, formatters: Sequence[Callable[[Datum], str]]) -> str:
    """A row's output form.

    >>> record_text((1, None, "", "a b"), [str] * 4)
    '(1,,"","a b")'
    """
    assert isinstance(datum, tuple), "a row is a tuple"
    shown = [
        "" if field is None else _quoted(write(field))
        for field, write in zip(datum, formatters, strict=True)
    ]
    return f"({','.join(shown)})"


def _quoted(text: str) -> str:
    if text and not _SPECIAL.search(text):
        return text
    doubled = text.replace("\\", "\\\\").replace('"', '""')
    return f'"{doubled}"'
