"""format(): text with places for values, identifiers and literals."""

import re
from typing import Final

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.text import quote_identifier, quote_literal
from evertide.vocab.errors import InvalidParameterValue, NullValueNotAllowed
from evertide.vocab.sql_type import TEXT

# %[position$][-][width]type, where the width is a number, * or *position$.
_PLACE: Final = re.compile(
    r"%(?:(?P<position>\d+)\$)?(?P<left>-*)(?P<width>\*(?:(?P<width_at>\d+)\$)?|\d+)?(?P<kind>.?)",
    re.DOTALL,
)
_KINDS: Final = "sIL"


class _Arguments:
    """The arguments, and which comes next where a place names none."""

    def __init__(self, values: tuple[str | None, ...]) -> None:
        self._values = values
        self._next = 0

    def take(self, position: str | None) -> str | None:
        """The argument at this position, from 1, or the next; the one after it comes next."""
        if position is not None:
            if int(position) == 0:
                raise InvalidParameterValue(
                    "format specifies argument 0, but arguments are numbered from 1"
                )
            self._next = int(position) - 1
        if self._next >= len(self._values):
            raise InvalidParameterValue("too few arguments for format()")
        value = self._values[self._next]
        self._next += 1
        return value


def format_values(template: str | None, *values: str | None) -> str | None:
    """The template with its places filled.

    >>> format_values("%s of %I is %L%%, [%-4s|%3s]", "x", "My t", "it's", "a", "b")
    'x of "My t" is \\'it\\'\\'s\\'%, [a   |  b]'
    """
    if template is None:
        return None
    arguments = _Arguments(values)
    written: list[str] = []
    end = 0
    while (start := template.find("%", end)) >= 0:
        written.append(template[end:start])
        found = _PLACE.match(template, start)
        assert found is not None, "every part of a place may be missing"
        end = found.end()
        written.append(_filled(found, arguments))
    return "".join(written) + template[end:]


def _filled(found: re.Match[str], arguments: _Arguments) -> str:
    kind = found["kind"]
    if kind == "%" and found.group() == "%%":
        return "%"
    if not kind:
        raise InvalidParameterValue(
            "unterminated format() type specifier", hint='For a single "%" use "%%".'
        )
    if kind not in _KINDS:
        raise InvalidParameterValue(
            f'unrecognized format() type specifier "{kind}"',
            hint='For a single "%" use "%%".',
        )
    width = _width(found, arguments)
    value = _shown(kind, arguments.take(found["position"]))
    if found["left"] or width < 0:
        return value.ljust(abs(width))
    return value.rjust(width)


def _width(found: re.Match[str], arguments: _Arguments) -> int:
    width = found["width"]
    if width is None:
        return 0
    if not width.startswith("*"):
        return int(width)
    given = arguments.take(found["width_at"])
    try:
        return int(given or 0)
    except ValueError:
        raise InvalidParameterValue(f'invalid input syntax for type integer: "{given}"') from None


def _shown(kind: str, value: str | None) -> str:
    match kind, value:
        case "s", _:
            return value or ""
        case "I", None:
            raise NullValueNotAllowed("null values cannot be formatted as an SQL identifier")
        case "I", str(name):
            return quote_identifier(name)
        case _, None:
            return "NULL"
        case _, str(text):
            return quote_literal(text)


ROWS: Final = (
    # The template comes first; all are text, so one row says it.
    ScalarFunction(
        "format", (TEXT,), TEXT, format_values, strict=False, fallible=True, variadic=True
    ),
)
