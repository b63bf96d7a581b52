"""Rows as text: `(1,"a b",)`; a field that is NULL has no text at all."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from evertide.vocab.datum import Datum
from evertide.vocab.errors import ProgramLimitExceeded

# Quotes are doubled by each row around them: a few dozen rows in each other would fill any memory.
MOST_CHARACTERS: Final = 64 * 1024 * 1024
# A field with any of these, or none at all, is quoted.
_SPECIAL: Final = re.compile(r'[\s"\\(),]')


def record_text(datum: Datum, formatters: Sequence[Callable[[Datum], str]]) -> str:
    """A row's output form; raises SqlError where it would be too long.

    >>> record_text((1, None, "", "a b"), [str] * 4)
    '(1,,"","a b")'
    """
    assert isinstance(datum, tuple), "a row is a tuple"
    shown: list[str] = []
    left = MOST_CHARACTERS
    for field, write in zip(datum, formatters, strict=True):
        text = "" if field is None else _quoted(write(field), left)
        left -= len(text)
        shown.append(text)
    return f"({','.join(shown)})"


def _quoted(text: str, most: int) -> str:
    """A field's text; how long that will be is known before it is made."""
    if len(text) + text.count("\\") + text.count('"') > most:
        raise ProgramLimitExceeded(
            f"the text of a row may have {MOST_CHARACTERS} characters at most",
            hint="Select its fields one by one.",
        )
    if text and not _SPECIAL.search(text):
        return text
    doubled = text.replace("\\", "\\\\").replace('"', '""')
    return f'"{doubled}"'
