"""Text that is broken into lines only where it does not fit.

A document is text, a possible break, or several documents in a row. Those of a group stay on one
line if all of it fits there; else each break that belongs to the group itself is one. Parts that
are groups are decided by themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

WIDTH: Final = 100
INDENT: Final = 4


@dataclass(frozen=True, slots=True)
class Break:
    """A new line, or this text where the group stays on one."""

    flat: str = " "


@dataclass(frozen=True, slots=True)
class Nested:
    """New lines within begin further to the right."""

    inner: "Doc"


@dataclass(frozen=True, slots=True)
class Group:
    inner: "Doc"


Doc: TypeAlias = "str | Break | Nested | Group | tuple[Doc, ...]"

LINE: Final = Break()
EMPTY: Final = Break("")


def titled(title: str, inner: Doc) -> Doc:
    """A word, and what belongs to it behind it or below it."""
    return Group((title, Nested((LINE, inner))))


def separated(parts: Sequence[Doc], between: Doc) -> Doc:
    """The parts with something between them."""
    found: list[Doc] = []
    for number, part in enumerate(parts):
        found.extend((between, part) if number else (part,))
    return tuple(found)


def laid_out(doc: Doc, width: int = WIDTH) -> str:
    """The text, with as few breaks as fit.

    >>> laid_out(titled("AS", Group(("SELECT 1", LINE, "FROM t"))), width=12)
    'AS\\n    SELECT 1\\n    FROM t'
    """
    lines: list[str] = []
    column = 0
    # What is still to come, the next last: how far it is indented, and whether it stays flat.
    waiting: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while waiting:
        indent, flat, part = waiting.pop()
        match part:
            case str():
                lines.append(part)
                column += len(part)
            case Break(flat=text) if flat:
                lines.append(text)
                column += len(text)
            case Break():
                lines.append("\n" + " " * indent)
                column = indent
            case Nested(inner=inner):
                waiting.append((indent + INDENT, flat, inner))
            case Group(inner=inner):
                fits = flat or _fits(width - column, inner, waiting)
                waiting.append((indent, fits, inner))
            case _:
                waiting.extend((indent, flat, one) for one in reversed(part))
    return "".join(lines)


def _fits(room: int, doc: Doc, after: Sequence[tuple[int, bool, Doc]]) -> bool:
    """Whether a flat document, and what follows it up to the next break, fits into the room."""
    waiting: list[tuple[bool, Doc]] = [(True, doc)]
    behind = len(after)
    while room >= 0:
        if not waiting:
            if behind == 0:
                return True
            behind -= 1
            _, flat, rest = after[behind]
            waiting.append((flat, rest))
        flat, part = waiting.pop()
        match part:
            case str():
                room -= len(part)
            case Break(flat=text) if flat:
                room -= len(text)
            case Break():
                return True
            case Nested(inner=inner):
                waiting.append((flat, inner))
            case Group(inner=inner):
                # What follows may be broken, unless something around it stays flat.
                waiting.append((flat, inner))
            case _:
                waiting.extend((flat, one) for one in reversed(part))
    return False
