"""What is stored: tables, and views that follow from them."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from evertide.dataflow.description import Derived, Import, hold_owner
from evertide.persist.state import ShardChange, create, existing, initial_state, set_hold
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import Timestamp
from tests.sim.history import DESC, Rows

Inputs: TypeAlias = Mapping[ShardId, Rows]
Definition: TypeAlias = Callable[[Inputs], Rows]

# A table that is never dropped, with the counter that everybody increments.
COUNTERS: Final = ShardId("counters")


def count_kinds(inputs: Inputs) -> Rows:
    """SELECT kind, count(*) ... GROUP BY kind."""
    counts: Counter[str] = Counter()
    for rows in inputs.values():
        for row, diff in rows.items():
            counts[str(row[0])] += diff
    return Counter({(kind, count, 0): 1 for kind, count in counts.items() if count})


def odd_rows(inputs: Inputs) -> Rows:
    """SELECT ... WHERE value is odd."""
    found: Rows = Counter()
    for rows in inputs.values():
        for row, diff in rows.items():
            if row[1] in (1, 3):
                found[row] += diff
    return found


def in_every_input(inputs: Inputs) -> Rows:
    """A join of all inputs on the whole row."""
    first, *others = inputs.values()
    found: Rows = Counter()
    for row, diff in first.items():
        for other in others:
            diff *= other[row]
        if diff:
            found[row] = diff
    return found


DEFINITIONS: Final[tuple[Definition, ...]] = (count_kinds, odd_rows, in_every_input)


@dataclass(frozen=True, slots=True)
class Table:
    """A table; its upper is that of all tables."""

    shard_id: ShardId

    @property
    def imported(self) -> Import:
        return Import(GlobalId(self.shard_id), self.shard_id, DESC, is_table=True)


@dataclass(frozen=True, slots=True)
class View:
    """A view and all the definitions it will ever have, each with its GlobalId."""

    shard_id: ShardId
    inputs: tuple[ShardId, ...]
    definitions: Mapping[GlobalId, Definition]
    as_of: Timestamp

    @property
    def first(self) -> GlobalId:
        """The definition that it was created with."""
        return next(iter(self.definitions))

    @property
    def imported(self) -> Import:
        inputs = tuple(Table(shard_id).imported for shard_id in self.inputs)
        derived = Derived(inputs, self.as_of, self.first)
        return Import(self.first, self.shard_id, DESC, is_table=False, derived=derived)

    @property
    def owner(self) -> str:
        """Of the holds on its inputs: those stay when the definition changes."""
        return hold_owner(self.first)

    def create(self, since_lag: int) -> list[ShardChange]:
        """What CREATE MATERIALIZED VIEW does to shards."""
        first = initial_state(since=self.as_of, writer=self.first, since_lag=since_lag)
        hold = partial(set_hold, owner=self.owner, hold_ts=self.as_of)
        return [
            create(self.shard_id, first),
            *(ShardChange(shard_id, existing(hold)) for shard_id in self.inputs),
        ]

    def next_writer(self, writer: GlobalId) -> GlobalId | None:
        """The definition that replaces this one."""
        writers = list(self.definitions)
        following = writers.index(writer) + 1
        return writers[following] if following < len(writers) else None


Collection: TypeAlias = Table | View
