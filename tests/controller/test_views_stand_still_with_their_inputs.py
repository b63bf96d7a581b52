"""Goal: a view counts as known beyond its shard's upper exactly where that cannot be wrong.

Method: random histories of tables and of views over them and over each other, written to real
shards; wherever a look says more than a shard's upper, a model says whether that is true.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec
import pytest

from evertide.controller.stillness import Look, shards_below
from evertide.dataflow.description import Derived, Import
from evertide.persist.state import (
    Batch,
    InlinePart,
    ShardState,
    advance_since,
    append,
    initial_state,
    set_writer,
)
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp

DESC = relation_desc(("a", INT8))
PART = InlinePart(b"", 1)


def table(name: str) -> Import:
    return Import(GlobalId(name), ShardId(name), DESC, is_table=True)


def view(name: str, as_of: int, *inputs: Import, by_time: bool = False) -> Import:
    derived = Derived(inputs, Timestamp(as_of), GlobalId(name), by_time)
    return Import(GlobalId(name), ShardId(name), DESC, is_table=False, derived=derived)


def written(state: ShardState, *times: int) -> ShardState:
    """A table's shard after writes at these times."""
    for at in times:
        batch = Batch(state.upper, Timestamp(at + 1), MIN_TS, (PART,))
        state = msgspec.structs.replace(
            state, upper=Timestamp(at + 1), batches=(*state.batches, batch)
        )
    return state


def view_state(name: str, as_of: int, upper: int) -> ShardState:
    first = initial_state(since=Timestamp(as_of), writer=GlobalId(name))
    if upper == as_of:
        return first
    after = append(first, lower=Timestamp(as_of), upper=Timestamp(upper), writer=GlobalId(name),
                   parts=(PART,))  # fmt: skip
    assert isinstance(after, ShardState)
    return after


T = table("t")
V = view("v", 10, T)


def upper_of_v(t: ShardState, v: ShardState, tables_upper: int = 100) -> Timestamp:
    return Look({T.shard_id: t, V.shard_id: v}, Timestamp(tables_upper)).upper(V)


def test_a_view_is_known_as_far_as_inputs_that_stand_still() -> None:
    t = written(initial_state(), 5, 19)
    assert upper_of_v(t, view_state("v", 10, 20)) == 100
    assert upper_of_v(t, view_state("v", 10, 90)) == 100


def test_a_change_at_the_very_upper_counts() -> None:
    assert upper_of_v(written(initial_state(), 20), view_state("v", 10, 20)) == 20
    assert upper_of_v(written(initial_state(), 19), view_state("v", 10, 20)) == 100


def test_not_before_it_is_hydrated() -> None:
    assert upper_of_v(initial_state(), view_state("v", 10, 10)) == 10


def test_not_while_another_version_has_its_shard() -> None:
    t, v = written(initial_state(), 5), view_state("v", 10, 20)
    for pending in (True, False):
        taken = set_writer(v, writer=GlobalId("v2"), expected_upper=Timestamp(20), pending=pending)
        assert isinstance(taken, ShardState)
        assert upper_of_v(t, taken) == 20
    back = set_writer(v, writer=GlobalId("v"), expected_upper=Timestamp(20), pending=True)
    assert isinstance(back, ShardState)
    assert upper_of_v(t, back) == 20


def test_whoever_reads_an_earlier_version_knows_as_much_as_others() -> None:
    """Which version writes the shard counts, not by whose columns it is read."""
    t, v = written(initial_state(), 5), view_state("v", 10, 20)
    derived = Derived((T,), Timestamp(10), GlobalId("v2"))
    older = replace(V, derived=derived)
    assert Look({T.shard_id: t, V.shard_id: v}, Timestamp(100)).upper(older) == 20
    taken = set_writer(v, writer=GlobalId("v2"), expected_upper=Timestamp(20), pending=False)
    assert isinstance(taken, ShardState)
    assert Look({T.shard_id: t, V.shard_id: taken}, Timestamp(100)).upper(older) == 100


def test_not_if_time_itself_changes_it() -> None:
    """Nor is what follows from it known further than it."""
    timely = view("v", 10, T, by_time=True)
    above = view("w", 10, timely)
    states = {
        T.shard_id: written(initial_state(), 5),
        timely.shard_id: view_state("v", 10, 20),
        above.shard_id: view_state("w", 10, 15),
    }
    look = Look(states, Timestamp(100))
    assert look.upper(timely) == 20
    states[above.shard_id] = view_state("w", 10, 20)
    assert Look(states, Timestamp(100)).upper(above) == 20


def test_not_where_history_may_have_been_merged() -> None:
    t = advance_since(written(initial_state(), 5, 40), to=Timestamp(20))
    emptied = msgspec.structs.replace(t, batches=())
    assert upper_of_v(emptied, view_state("v", 10, 20)) == 20
    assert upper_of_v(emptied, view_state("v", 10, 21)) == 100


def test_a_view_without_inputs_is_known_for_ever() -> None:
    constant = view("v", 10)
    look = Look({constant.shard_id: view_state("v", 10, 11)}, Timestamp(50))
    assert look.upper(constant) == EMPTY_FRONTIER


def test_what_many_views_share_is_looked_at_once() -> None:
    """A tower of views, each of which reads the one below it twice."""
    top, states = T, {T.shard_id: written(initial_state(), 5)}
    for level in range(60):
        top = view(f"v{level}", 10, top, top)
        states[top.shard_id] = view_state(f"v{level}", 10, 20)
    assert len(shards_below(top)) == 61
    assert Look(states, Timestamp(100)).upper(top) == 100


@dataclass
class World:
    """Tables and views with their true change times."""

    rng: random.Random
    states: dict[ShardId, ShardState] = field(default_factory=dict)
    # When each collection changes; a view may change whenever one of its inputs does.
    changes: dict[ShardId, set[int]] = field(default_factory=dict)

    def add_table(self, name: str) -> Import:
        times = sorted(self.rng.sample(range(1, 40), self.rng.randrange(4)))
        made = table(name)
        self.states[made.shard_id] = written(initial_state(), *times)
        self.changes[made.shard_id] = set(times)
        return made

    def add_view(self, name: str, inputs: Sequence[Import]) -> Import:
        as_of = self.rng.randrange(1, 20)
        made = view(name, as_of, *inputs)
        may = set().union(*(self.changes[i.shard_id] for i in inputs))
        mine = {at for at in may if self.rng.random() < 0.7} | {as_of}
        upper = self.rng.randrange(as_of, 42)
        self.changes[made.shard_id] = mine
        state = initial_state(since=Timestamp(as_of), writer=made.global_id)
        lower = as_of
        for at in sorted(t for t in mine if as_of <= t < upper):
            state = _appended(state, made.global_id, lower, at + 1, (PART,))
            lower = at + 1
        if lower < upper:
            state = _appended(state, made.global_id, lower, upper, ())
        self.states[made.shard_id] = state
        return made


def _appended(
    state: ShardState, writer: GlobalId, lower: int, upper: int, parts: tuple[InlinePart, ...]
) -> ShardState:
    after = append(
        state, lower=Timestamp(lower), upper=Timestamp(upper), writer=writer, parts=parts
    )
    assert isinstance(after, ShardState)
    return after


@pytest.mark.parametrize("seed", range(300))
def test_more_is_never_claimed_than_is_true(seed: int) -> None:
    rng = random.Random(seed)
    world = World(rng)
    made = [world.add_table(f"t{n}") for n in range(rng.randrange(1, 4))]
    for number in range(rng.randrange(1, 5)):
        inputs = rng.sample(made, rng.randrange(1, min(3, len(made)) + 1))
        made.append(world.add_view(f"v{number}", inputs))
    look = Look(world.states, Timestamp(41))
    for collection in made:
        if collection.is_table:
            continue
        own = world.states[collection.shard_id].upper
        claimed = look.upper(collection)
        assert claimed >= own
        missed = {at for at in world.changes[collection.shard_id] if own <= at < claimed}
        assert not missed, (seed, collection.shard_id, own, claimed)
