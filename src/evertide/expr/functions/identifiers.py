"""Texts taken apart as names are, and brought into Unicode's forms."""

import re
import string
import unicodedata
from typing import Final, Literal

from evertide.expr.functions.build import partial
from evertide.expr.functions.type_groups import TEXT_ARRAY
from evertide.vocab.datum import Datum
from evertide.vocab.errors import InvalidParameterValue
from evertide.vocab.sql_type import BOOL, TEXT

# Whatever is not ASCII may stand in a name, and stays as it is written.
_PART = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*))\s*')
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_FORMS: Final[dict[str, Literal["NFC", "NFD", "NFKC", "NFKD"]]] = {
    "NFC": "NFC",
    "NFD": "NFD",
    "NFKC": "NFKC",
    "NFKD": "NFKD",
}


def parse_ident(text: str, strict: bool = True) -> tuple[Datum, ...]:
    """The parts of a qualified name; those that are not quoted in lower case.

    >>> parse_ident('Some."Odd Name"')
    ('some', 'Odd Name')
    """
    parts: list[Datum] = []
    position = 0
    while True:
        found = _PART.match(text, position)
        if found is None or found.group(1) == "":
            raise InvalidParameterValue(f'string is not a valid identifier: "{text}"')
        quoted, plain = found.groups()
        parts.append(plain.translate(_LOWER) if quoted is None else quoted.replace('""', '"'))
        position = found.end()
        if text[position : position + 1] != ".":
            break
        position += 1
    if strict and position < len(text):
        raise InvalidParameterValue(f'string is not a valid identifier: "{text}"')
    return tuple(parts)


def normalize(text: str, form: str = "NFC") -> str:
    """The text in one of Unicode's normal forms."""
    found = _FORMS.get(form.upper())
    if found is None:
        raise InvalidParameterValue(f"invalid normalization form: {form}")
    return unicodedata.normalize(found, text)


ROWS: Final = (
    partial("parse_ident", (TEXT,), TEXT_ARRAY, parse_ident),
    partial("parse_ident", (TEXT, BOOL), TEXT_ARRAY, parse_ident),
    partial("normalize", (TEXT,), TEXT, normalize),
    partial("normalize", (TEXT, TEXT), TEXT, normalize),
)
