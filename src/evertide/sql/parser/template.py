"""What statements that differ in their constants alone have in common; pure.

Programs send the same few INSERTs, UPDATEs and DELETEs again and again, each with values of its
own. Such a text is told apart into a text with parameters and their values by one pattern. Whether
it means the same is not for this file to say: whoever uses it must plan both and compare.
"""

import re
from dataclasses import dataclass
from typing import Final

# Longer texts have ways of their own (literal_rows.py).
MOST_CHARACTERS: Final = 1_000
MOST_CONSTANTS: Final = 40
_INT4: Final = 1 << 31
_INT8: Final = 1 << 63

_STARTS = re.compile(r"[ \n\t\r]*(?:update|delete|insert)[ \n\t\r]", re.IGNORECASE)
# What may stand for something else than it seems to, or whose numbers are no values.
_LEFT_ALONE = re.compile(r"--|/\*|[$\\;]|\b(?:select|with|table|explain)\b", re.IGNORECASE)
# Quoted names stay as they are; so do constants that belong to what stands before or behind them.
_CONSTANT = re.compile(
    r"""("[^"]*")"""
    r"""|(?<![\w&"'.])'((?:[^']|'')*+)'(?!['\w])"""
    r"""|(?<![\w."'])((?:(?<=[=(,<>][ ])-|(?<=[=(,<>])-)?[0-9]{1,19}"""
    r"""(?:\.[0-9]{1,19})?)(?![\w.])"""
)


@dataclass(frozen=True, slots=True)
class Template:
    """A text with parameters, the kind of each (`s`: text, `i`, `b`: numbers of four and eight
    bytes, `n`: numbers with a point), and what stands for each here."""

    text: str
    kinds: str
    values: tuple[str, ...]


def template_of(text: str) -> Template | None:
    """The template of a short statement that changes rows; None where there is none."""
    if len(text) > MOST_CHARACTERS or _STARTS.match(text) is None or _LEFT_ALONE.search(text):
        return None
    kinds: list[str] = []
    values: list[str] = []

    def parameter(found: re.Match[str]) -> str:
        name, string, number = found.groups()
        if name is not None:
            return str(name)
        if string is not None:
            kinds.append("s")
            values.append(string.replace("''", "'"))
        elif "." in number:
            kinds.append("n")
            values.append(number if number.strip("-0.") else "0")
        else:
            kinds.append(_kind(int(number)))
            values.append(str(int(number)))  # -0 is 0, also where it becomes a float
        return f"${len(values)}"

    made = _CONSTANT.sub(parameter, text)
    if not values or len(values) > MOST_CONSTANTS or "?" in kinds:
        return None
    return Template(made, "".join(kinds), tuple(values))


def _kind(number: int) -> str:
    """A number's type follows from its size."""
    if -_INT4 < number < _INT4:
        return "i"
    return "b" if -_INT8 < number < _INT8 else "?"
