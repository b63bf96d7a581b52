"""Pattern trees as programs of four kinds of instructions, plus the end."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, assert_never

from evertide.expr.regex.character_set import CharacterSet
from evertide.expr.regex.syntax import (
    Alternatives,
    Anchor,
    Group,
    Node,
    Options,
    Repeat,
    Sequence,
    invalid,
    parse,
)

MAX_INSTRUCTIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Accept:
    """Take a character of the set and go on with the next instruction."""

    characters: CharacterSet


@dataclass(frozen=True, slots=True)
class Assert:
    """Go on if the place is right."""

    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Fork:
    """Go on at both; what the first finds is preferred."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Save:
    """Remember the place in this slot."""

    slot: int


@dataclass(frozen=True, slots=True)
class Match:
    """The pattern has matched."""


Instruction: TypeAlias = Accept | Assert | Fork | Save | Match


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Compared by identity: a pattern is compiled once, and what is learnt of it kept by it.

    Begins at instruction 0. Group n is between slots 2n and 2n + 1; group 0 is the match.
    """

    instructions: tuple[Instruction, ...]
    groups: int
    looks_at_words: bool  # or lines: whether what is around a place matters


@lru_cache(maxsize=256)
def compile_pattern(pattern: str, options: Options) -> Program:
    """The program of a pattern."""
    node, groups = parse(pattern, options)
    compiler = _Compiler()
    compiler.emit(Save(0))
    compiler.node(node)
    compiler.emit(Save(1))
    compiler.emit(Match())
    instructions = tuple(compiler.instructions)
    looks = any(
        isinstance(instruction, Assert) and instruction.anchor not in (Anchor.START, Anchor.END)
        for instruction in instructions
    )
    return Program(instructions, groups, looks)


class _Compiler:
    """Appends instructions; forks are filled in when their targets are known."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []

    def emit(self, instruction: Instruction) -> int:
        if len(self.instructions) >= MAX_INSTRUCTIONS:
            raise invalid("regular expression is too complex")
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def node(self, node: Node) -> None:
        match node:
            case CharacterSet():
                self.emit(Accept(node))
            case Anchor():
                self.emit(Assert(node))
            case Sequence(parts):
                for part in parts:
                    self.node(part)
            case Alternatives(branches):
                self._alternatives(branches)
            case Group(part, number):
                self.emit(Save(2 * number))
                self.node(part)
                self.emit(Save(2 * number + 1))
            case Repeat():
                self._repeat(node)
            case _:
                assert_never(node)

    def _alternatives(self, branches: tuple[Node, ...]) -> None:
        ends = []
        for branch in branches[:-1]:
            fork = self.emit(Fork(0, 0))
            self.node(branch)
            ends.append(self.emit(Fork(0, 0)))
            here = len(self.instructions)
            self.instructions[fork] = Fork(fork + 1, here)
        self.node(branches[-1])
        here = len(self.instructions)
        for end in ends:
            self.instructions[end] = Fork(here, here)

    def _repeat(self, repeat: Repeat) -> None:
        for _ in range(repeat.least):
            self.node(repeat.part)
        if repeat.greatest is None:
            fork = self.emit(Fork(0, 0))
            self.node(repeat.part)
            self.emit(Fork(fork, fork))
            self._fill([fork], repeat.greedy)
            return
        forks = []
        for _ in range(repeat.greatest - repeat.least):
            forks.append(self.emit(Fork(0, 0)))
            self.node(repeat.part)
        self._fill(forks, repeat.greedy)

    def _fill(self, forks: list[int], greedy: bool) -> None:
        """Each fork goes into the part that follows it, or past all of them."""
        here = len(self.instructions)
        for fork in forks:
            self.instructions[fork] = Fork(fork + 1, here) if greedy else Fork(here, fork + 1)
