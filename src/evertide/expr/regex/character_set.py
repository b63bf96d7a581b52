"""Sets of characters: what one step of a pattern accepts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

Test: TypeAlias = Callable[[str], bool]


def is_word(character: str) -> bool:
    """Whether a character is part of a word: a letter, a digit or the underscore."""
    return character.isalnum() or character == "_"


def _is_punctuation(character: str) -> bool:
    return character.isprintable() and not character.isalnum() and not character.isspace()


CLASSES: Final[dict[str, Test]] = {
    "alpha": str.isalpha,
    "digit": str.isdecimal,
    "alnum": str.isalnum,
    "lower": str.islower,
    "upper": str.isupper,
    "space": str.isspace,
    "blank": lambda character: character in " \t",
    "punct": _is_punctuation,
    "print": lambda character: character.isprintable(),
    "graph": lambda character: character.isprintable() and not character.isspace(),
    "cntrl": lambda character: ord(character) < 32 or 127 <= ord(character) < 160,
    "xdigit": lambda character: character in "0123456789abcdefABCDEF",
    "word": is_word,
    "ascii": str.isascii,
}


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """Ranges and classes; `negated` turns the whole round. Folded: case does not matter."""

    ranges: tuple[tuple[str, str], ...] = ()
    classes: tuple[tuple[str, bool], ...] = ()  # (name, negated)
    negated: bool = False
    folded: bool = False

    def accepts(self, character: str) -> bool:
        """Whether the character is in the set."""
        found = self._holds(character)
        if not found and self.folded:
            found = self._holds(character.lower()) or self._holds(character.upper())
        return found != self.negated

    def _holds(self, text: str) -> bool:
        if len(text) != 1:  # some characters change case into two
            return False
        if any(low <= text <= high for low, high in self.ranges):
            return True
        return any(CLASSES[name](text) != negated for name, negated in self.classes)


ANY: Final = CharacterSet(negated=True)
NOT_NEWLINE: Final = CharacterSet(ranges=(("\n", "\n"),), negated=True)
