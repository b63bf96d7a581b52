"""Where a pattern matches: all alternatives are followed at once, the preferred one wins."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from evertide.expr.regex.automaton import automaton
from evertide.expr.regex.character_set import is_word
from evertide.expr.regex.program import Accept, Assert, Fork, Match, Program, Save
from evertide.expr.regex.syntax import Anchor
from evertide.vocab.errors import ProgramLimitExceeded

Slots: TypeAlias = tuple[int, ...]  # -1: not reached
# Instructions that may be looked at for one text; far more than a second's work.
MAX_WORK: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """A match: group n of the text, or None where the group took no part."""

    text: str
    slots: Slots

    @property
    def start(self) -> int:
        return self.slots[0]

    @property
    def end(self) -> int:
        return self.slots[1]

    def group(self, number: int) -> str | None:
        start, end = self.slots[2 * number], self.slots[2 * number + 1]
        return None if start < 0 or end < 0 else self.text[start:end]


def is_found(program: Program, text: str) -> bool:
    """Whether the pattern matches some part of the text."""
    if program.looks_at_words:
        return find(program, text) is not None
    _check_work(program, text)
    return automaton(program).found_in(text)


def find(program: Program, text: str, start: int = 0) -> Found | None:
    """The leftmost match that begins at or after a place."""
    _check_work(program, text)
    return _Search(program, text).run(start)


def _check_work(program: Program, text: str) -> None:
    if len(program.instructions) * len(text) > MAX_WORK:
        raise ProgramLimitExceeded("regular expression is too complex for a text of this length")


class _Search:
    """One run over one text. Threads are kept in order of preference."""

    def __init__(self, program: Program, text: str) -> None:
        self._instructions = program.instructions
        self._text = text
        self._empty: Slots = (-1,) * (2 * program.groups + 2)

    def run(self, start: int) -> Found | None:
        threads: dict[int, Slots] = {}
        best: Slots | None = None
        for place in range(start, len(self._text) + 1):
            if best is None:
                self._add(threads, 0, self._empty, place)
            if not threads:
                break
            matched, threads = self._advance(threads, place)
            best = matched or best
        return None if best is None else Found(self._text, best)

    def _advance(
        self, threads: dict[int, Slots], place: int
    ) -> tuple[Slots | None, dict[int, Slots]]:
        """Threads after the one that matches are worth less and end."""
        following: dict[int, Slots] = {}
        character = self._text[place : place + 1]
        for position, slots in threads.items():
            match self._instructions[position]:
                case Match():
                    return slots, following
                case Accept(characters) if character and characters.accepts(character):
                    self._add(following, position + 1, slots, place + 1)
        return None, following

    def _add(self, threads: dict[int, Slots], position: int, slots: Slots, place: int) -> None:
        """Follow everything that takes no character; a place reached twice keeps the first."""
        pending = [(position, slots)]
        while pending:
            position, slots = pending.pop()
            if position in threads:
                continue
            instruction = self._instructions[position]
            threads[position] = slots
            match instruction:
                case Fork(first, second):
                    pending += ((second, slots), (first, slots))
                case Save(slot):
                    changed = (*slots[:slot], place, *slots[slot + 1 :])
                    pending.append((position + 1, changed))
                case Assert(anchor) if self._holds(anchor, place):
                    pending.append((position + 1, slots))

    def _holds(self, anchor: Anchor, place: int) -> bool:
        text = self._text
        before = place > 0 and is_word(text[place - 1])
        after = place < len(text) and is_word(text[place])
        match anchor:
            case Anchor.START:
                return place == 0
            case Anchor.END:
                return place == len(text)
            case Anchor.LINE_START:
                return place == 0 or text[place - 1] == "\n"
            case Anchor.LINE_END:
                return place == len(text) or text[place] == "\n"
            case Anchor.WORD_START:
                return after and not before
            case Anchor.WORD_END:
                return before and not after
            case Anchor.WORD_EDGE:
                return before != after
            case Anchor.NO_WORD_EDGE:
                return before == after
