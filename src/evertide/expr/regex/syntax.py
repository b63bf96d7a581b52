"""Patterns as text to patterns as trees: PostgreSQL's advanced regular expressions.

Back references and lookaround are refused: they cannot be matched in linear time.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from evertide.expr.data_errors import InvalidRegularExpression
from evertide.expr.regex.character_set import ANY, CLASSES, NOT_NEWLINE, CharacterSet

MAX_REPEAT: Final = 1000
MAX_DEPTH: Final = 100


class Anchor(Enum):
    """A condition on a place between characters."""

    START = "start of text"
    END = "end of text"
    LINE_START = "start of line"
    LINE_END = "end of line"
    WORD_START = "start of word"
    WORD_END = "end of word"
    WORD_EDGE = "edge of word"
    NO_WORD_EDGE = "inside or outside a word"


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    branches: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`greatest` None: any number."""

    part: "Node"
    least: int
    greatest: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A group whose text is kept; numbered from 1."""

    part: "Node"
    number: int


Node: TypeAlias = CharacterSet | Anchor | Sequence | Alternatives | Repeat | Group

_OPTIONS: Final = re.compile(r"\(\?([bceimnpqstwx]+)\)")
_BOUND: Final = re.compile(r"\{(\d+)(?:(,)(\d*))?\}", re.ASCII)
_CODE: Final = re.compile(r"x([0-9a-fA-F]{1,8})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")
_CONTROL: Final = {
    "t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b", "0": "\0",
}  # fmt: skip
_CLASS_ESCAPES: Final = {
    "d": ("digit", False), "D": ("digit", True), "s": ("space", False), "S": ("space", True),
    "w": ("word", False), "W": ("word", True),
}  # fmt: skip
_ANCHOR_ESCAPES: Final = {
    "A": Anchor.START, "Z": Anchor.END, "z": Anchor.END, "m": Anchor.WORD_START,
    "M": Anchor.WORD_END, "y": Anchor.WORD_EDGE, "b": Anchor.WORD_EDGE,
    "Y": Anchor.NO_WORD_EDGE, "B": Anchor.NO_WORD_EDGE,
}  # fmt: skip


def invalid(problem: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(f"invalid regular expression: {problem}")


@dataclass(frozen=True, slots=True)
class Options:
    """How a pattern is read; the pattern itself may begin with `(?i)` and change it."""

    ignore_case: bool = False
    by_line: bool = False  # . and [^x] stop at newlines, ^ and $ match at them


def parse(pattern: str, options: Options) -> tuple[Node, int]:
    """The tree of a pattern, and how many groups it has."""
    reader = _Reader(pattern, options)
    return reader.read(), reader.groups


class _Reader:
    """Reads one pattern by recursive descent."""

    def __init__(self, pattern: str, options: Options) -> None:
        embedded = _OPTIONS.match(pattern)
        self._pattern = pattern
        self._position = 0 if embedded is None else embedded.end()
        letters = "" if embedded is None else embedded.group(1)
        self._folded = _switched(options.ignore_case, letters, on="i", off="c")
        self._by_line = _switched(options.by_line, letters, on="nm", off="s")
        self._depth = 0
        self.groups = 0

    def read(self) -> Node:
        node = self._alternatives()
        if self._peek():
            raise invalid("parentheses () not balanced")
        return node

    def _peek(self) -> str:
        return self._pattern[self._position : self._position + 1]

    def _take(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._position):
            return False
        self._position += len(text)
        return True

    def _next(self) -> str:
        character = self._peek()
        self._position += 1
        return character

    def _alternatives(self) -> Node:
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def _sequence(self) -> Node:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quantified(self) -> Node:
        part = self._atom()
        in_parentheses = self._pattern[self._position - 1] == ")"
        bounds = self._quantifier()
        if bounds is None:
            return part
        if isinstance(part, Anchor) and not in_parentheses:
            raise invalid("quantifier operand invalid")
        least, greatest = bounds
        greedy = not self._take("?")
        if self._quantifier() is not None:
            raise invalid("quantifier operand invalid")
        return Repeat(part, least, greatest, greedy)

    def _quantifier(self) -> tuple[int, int | None] | None:
        for symbol, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(symbol):
                return bounds
        matched = _BOUND.match(self._pattern, self._position)
        if matched is None:
            return None
        self._position = matched.end()
        return _checked_bounds(*matched.groups())

    def _atom(self) -> Node:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return self._bracket()
            case ".":
                return NOT_NEWLINE if self._by_line else ANY
            case "^":
                return Anchor.LINE_START if self._by_line else Anchor.START
            case "$":
                return Anchor.LINE_END if self._by_line else Anchor.END
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise invalid("quantifier operand invalid")
            case "{" if self._peek().isdigit():
                raise invalid("quantifier operand invalid")
            case _:
                return self._literal(character)

    def _literal(self, character: str) -> CharacterSet:
        return CharacterSet(((character, character),), folded=self._folded)

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise invalid("regular expression is too complex")
        number = None
        if self._take("?:"):
            pass
        elif self._take("?P<") or (self._peek() == "?" and self._named()):
            self._position = self._pattern.find(">", self._position) + 1
            self.groups += 1
            number = self.groups
        elif self._take("?"):
            raise invalid("lookaround and options inside are not supported")
        else:
            self.groups += 1
            number = self.groups
        part = self._alternatives()
        if not self._take(")"):
            raise invalid("parentheses () not balanced")
        self._depth -= 1
        return part if number is None else Group(part, number)

    def _named(self) -> bool:
        following = self._pattern[self._position + 2 : self._position + 3]
        return following not in ("=", "!", "") and self._take("?<")

    def _escape(self) -> Node:
        character = self._next()
        if not character:
            raise invalid("invalid escape \\ sequence")
        if character in _CLASS_ESCAPES:
            return CharacterSet(classes=(_CLASS_ESCAPES[character],))
        if character in _ANCHOR_ESCAPES:
            return _ANCHOR_ESCAPES[character]
        return self._literal(self._escaped_character(character))

    def _escaped_character(self, character: str) -> str:
        if character in _CONTROL:
            return _CONTROL[character]
        code = _CODE.match(self._pattern, self._position - 1)
        if code is not None:
            self._position = code.end()
            number = int(next(filter(None, code.groups())), 16)
            if number > 0x10FFFF:
                raise invalid("invalid escape \\ sequence")
            return chr(number)
        if character.isalnum() and character.isascii():
            what = "back references are" if character.isdigit() else f"\\{character} is"
            raise invalid(f"invalid escape \\ sequence: {what} not supported")
        return character

    def _bracket(self) -> CharacterSet:
        negated = self._take("^")
        ranges: list[tuple[str, str]] = [("\n", "\n")] if negated and self._by_line else []
        classes: list[tuple[str, bool]] = []
        first = True
        while first or self._peek() != "]":
            if not self._peek():
                raise invalid("brackets [] not balanced")
            self._bracket_item(ranges, classes)
            first = False
        self._position += 1
        return CharacterSet(tuple(ranges), tuple(classes), negated, self._folded)

    def _bracket_item(self, ranges: list[tuple[str, str]], classes: list[tuple[str, bool]]) -> None:
        if self._take("[:"):
            classes.append(self._named_class())
            return
        if self._peek() == "\\":
            escaped = self._pattern[self._position + 1 : self._position + 2]
            if escaped in _CLASS_ESCAPES:
                self._position += 2
                classes.append(_CLASS_ESCAPES[escaped])
                return
        low = self._bracket_character()
        following = self._pattern[self._position + 1 : self._position + 2]
        if self._peek() != "-" or following in ("]", ""):
            ranges.append((low, low))
            return
        self._position += 1
        high = self._bracket_character()
        if high < low:
            raise invalid("invalid character range")
        ranges.append((low, high))

    def _bracket_character(self) -> str:
        if self._peek() == "[" and self._pattern[self._position + 1 :][:1] in (".", "="):
            raise invalid("invalid collating element")
        character = self._next()
        if character != "\\":
            return character
        escaped = self._next()
        if not escaped:
            raise invalid("invalid escape \\ sequence")
        return "\b" if escaped == "b" else self._escaped_character(escaped)

    def _named_class(self) -> tuple[str, bool]:
        end = self._pattern.find(":]", self._position)
        name = self._pattern[self._position : end] if end >= 0 else ""
        if name.removeprefix("^") not in CLASSES:
            raise invalid("invalid character class")
        self._position = end + 2
        return name.removeprefix("^"), name.startswith("^")


def _switched(initial: bool, letters: str, *, on: str, off: str) -> bool:
    """The last of the letters that concern an option decides."""
    for letter in letters:
        if letter in on or letter in off:
            initial = letter in on
        elif letter not in "icnmste":
            raise invalid("invalid embedded option")
    return initial


def _checked_bounds(least: str, comma: str | None, greatest: str | None) -> tuple[int, int | None]:
    low = int(least[:9])
    high = low if comma is None else int(greatest[:9]) if greatest else None
    if low > MAX_REPEAT or (high is not None and (high > MAX_REPEAT or high < low)):
        raise invalid("invalid repetition count(s)")
    return low, high
