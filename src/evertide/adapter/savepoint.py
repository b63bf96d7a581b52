"""How a block was at some point."""

from collections.abc import Mapping
from dataclasses import dataclass

from evertide.adapter.temporary.objects import Held
from evertide.adapter.variables import SavedVariables
from evertide.vocab.ids import ShardId


@dataclass(frozen=True, slots=True)
class Savepoint:
    """How many changes of each table a block had (None: it had not begun to write) and how many of
    objects, which cursors, the values of variables, and temporary objects with their rows."""

    name: str
    changes: Mapping[ShardId, int] | None
    steps: int
    cursors: frozenset[str]
    variables: SavedVariables
    temporary: Held
