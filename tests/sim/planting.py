"""Bugs that are planted into the code which the simulation runs, one at a time.

Each is one that somebody might make. The simulation must notice every one of them: they are what
shows that its silence means something.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias
from unittest import mock

from tests.sim.shape import Shape

Focus: TypeAlias = Callable[[Shape], Shape]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One bug; `patches` are (where, name, what stands there instead)."""

    name: str
    patches: tuple[tuple[object, str, Any], ...]
    # Scenarios in which it can show: what is rare elsewhere is frequent there.
    focus: Focus
    # Where the search begins: seeds before it are known to miss the bug, and were long in doing so.
    first_seed: int = 0

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The code with the bug."""
        with ExitStack() as stack:
            for where, name, what in self.patches:
                stack.enter_context(mock.patch.object(where, name, what))
            yield


def mutation(
    *places: tuple[object, str], focus: Focus = lambda shape: shape, first_seed: int = 0
) -> Callable[[Callable[[Any], Any]], Mutation]:
    """Plant it in these places: what is decorated gets what stands there, and makes another."""

    def plant(make: Callable[[Any], Any]) -> Mutation:
        patches = tuple((where, name, make(getattr(where, name))) for where, name in places)
        return Mutation(make.__name__, patches, focus, first_seed)

    return plant


def seeds_for(planted: Mutation, count: int) -> Iterator[int]:
    """All of so many seeds, the likeliest first."""
    return ((planted.first_seed + number) % count for number in range(count))


def mutations_in(module: Mapping[str, object]) -> list[Mutation]:
    """Those that a module defines."""
    return [found for found in module.values() if isinstance(found, Mutation)]
