"""Whether a pattern is found in a text: a deterministic automaton, built as it is needed."""

from functools import lru_cache
from typing import Final, TypeAlias

from evertide.expr.regex.program import Accept, Assert, Fork, Match, Program, Save
from evertide.expr.regex.syntax import Anchor

State: TypeAlias = frozenset[int]
# Transitions are forgotten when there are more: patterns can have exponentially many states.
MAX_TRANSITIONS: Final = 20_000


class Automaton:
    """Only for programs that do not look at words or lines."""

    def __init__(self, program: Program) -> None:
        self._instructions = program.instructions
        self._size = 0
        self._transitions: dict[State, dict[str, State]] = {}
        self._start = self._closure({0}, at_start=True)
        self._later_start = self._closure({0}, at_start=False)

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches some part of the text."""
        state = self._start
        if -1 in state:
            return True
        for character in text:
            row = self._transitions.get(state)
            following = None if row is None else row.get(character)
            if following is None:
                following = self._step(state, character)
            state = following
            if -1 in state:
                return True
        return self._matches_at_end(state, at_start=not text)

    def _step(self, state: State, character: str) -> State:
        accepted = {
            position + 1
            for position in state
            if position >= 0 and self._accepts(position, character)
        }
        following = self._closure(accepted, at_start=False) | self._later_start
        if self._size >= MAX_TRANSITIONS:
            self._transitions.clear()
            self._size = 0
        self._transitions.setdefault(state, {})[character] = following
        self._size += 1
        return following

    def _accepts(self, position: int, character: str) -> bool:
        instruction = self._instructions[position]
        return isinstance(instruction, Accept) and instruction.characters.accepts(character)

    def _closure(self, positions: set[int], *, at_start: bool, at_end: bool = False) -> State:
        """The instructions that wait for a character or for the end; -1 stands for a match."""
        pending = list(positions)
        seen: set[int] = set()
        waiting: set[int] = set()
        while pending:
            position = pending.pop()
            if position in seen:
                continue
            seen.add(position)
            match self._instructions[position]:
                case Fork(first, second):
                    pending += (first, second)
                case Save():
                    pending.append(position + 1)
                case Match():
                    waiting.add(-1)
                case Assert(Anchor.START):
                    if at_start:
                        pending.append(position + 1)
                case Assert():
                    waiting.add(position)
                    if at_end:
                        pending.append(position + 1)
                case Accept():
                    waiting.add(position)
        return frozenset(waiting)

    def _matches_at_end(self, state: State, *, at_start: bool) -> bool:
        ends = {
            position + 1
            for position in state
            if position >= 0 and isinstance(self._instructions[position], Assert)
        }
        return -1 in self._closure(ends, at_start=at_start, at_end=True)


@lru_cache(maxsize=256)
def automaton(program: Program) -> Automaton:
    """The automaton of a program; what it learns from one text serves the next."""
    return Automaton(program)
