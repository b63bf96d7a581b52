"""Where constants stood: a constant is read only once its type is known, far from its text."""

from evertide.expr.scalar import Literal


class Origins:
    """Offsets of constants of no type yet, which are told apart by identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Literal, int]] = {}

    def remember(self, literal: Literal, at: int) -> Literal:
        """Keep the offset; the literal is kept too, so that its id is not given to another."""
        self._known[id(literal)] = (literal, at)
        return literal

    def at_of(self, literal: Literal, otherwise: int) -> int:
        """Where this very constant stood, or what is known instead."""
        return self._known.get(id(literal), (literal, otherwise))[1]
