"""A lookup on its short way."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from evertide.adapter.short_way.recipe import Recipe
from evertide.vocab.datum import Datum, Row
from evertide.vocab.timestamp import Timestamp

# Takes the rows and their timestamp; None: the statement has to go the ordinary way.
Answer: TypeAlias = Callable[[Sequence[Row] | None, Timestamp], None]


class Asked:
    """One lookup that waits for its answer."""

    __slots__ = ("_answer", "parameters", "recipe")

    def __init__(self, recipe: Recipe, parameters: Sequence[Datum], answer: Answer) -> None:
        self.recipe = recipe
        self.parameters = parameters
        self._answer: Answer | None = answer

    def answer(self, rows: Sequence[Row] | None, as_of: Timestamp) -> None:
        """Tell the rows; only the first answer counts."""
        told, self._answer = self._answer, None
        if told is not None:
            told(rows, as_of)

    def forget(self) -> None:
        """Nobody waits any more."""
        self._answer = None


def give_up(asked: Sequence[Asked]) -> None:
    """Leave those that still wait to the ordinary way."""
    for one in asked:
        one.answer(None, Timestamp(0))
