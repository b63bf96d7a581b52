"""The text of search_path: schemas by name, one after the other, in quotes where they need them."""

import re
from collections.abc import Sequence
from typing import Final

from evertide.sql.printer.names import quote_ident

# A name in quotes, which are doubled within; or whatever is there up to the next comma.
_PART: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]*))(?:,|$)')


def variable_text(variable: str, values: Sequence[str]) -> str:
    """A variable's text by the values that a statement gives: a schema's name may hold a comma."""
    if variable.lower() != "search_path":
        return ", ".join(values)
    return ", ".join(quote_ident(value) for value in values)


def listed_schemas(text: str) -> tuple[str, ...]:
    """The names in such a text, without quotes.

    >>> listed_schemas('public, "a,""b", c d')
    ('public', 'a,"b', 'c d')
    """
    found: list[str] = []
    for part in _PART.finditer(text):
        quoted, plain = part.groups()
        found.append(plain.strip() if quoted is None else quoted.replace('""', '"'))
    return tuple(filter(None, found))
